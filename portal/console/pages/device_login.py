"""Login of programs without a browser (RFC 8628): the program's two requests, and the page on which a person approves.

The program's requests are forms and are answered in JSON, as the RFC states; they carry no cookie, so that no site can
send them for somebody.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from eventing.access.selectors.console_users import role_of
from eventing.conf import config
from eventing.core.errors import ApplicationError, RateLimited
from portal.accounts.services import device_logins
from portal.accounts.services.device_logins import DEVICE_S, INTERVAL_S, LEASES_S, PollAnswer, user_code_shown
from portal.accounts.services.sessions import address_of
from portal.accounts.services.throttling import attempt_device
from portal.console.pages import words
from portal.console.pages.access import current_user, page, problem

CODE_CHARS_MAX = 64
LEASE_DEFAULT_S = LEASES_S[1]
_ABOUT = {
    PollAnswer.PENDING: "Nobody has approved the login yet.",
    PollAnswer.SLOW_DOWN: f"Ask again after {INTERVAL_S} seconds or more.",
    PollAnswer.DENIED: "The login was refused.",
    PollAnswer.EXPIRED: "The login has expired, or its token was taken. Begin again.",
}


@csrf_exempt
@never_cache
@require_POST
def codes(request: HttpRequest) -> HttpResponse:
    """Open a request of a program: `client` in the form is its name for people."""
    address = address_of(request)
    attempt = attempt_device(address=address)
    if attempt.wait_s:
        return _refused(RateLimited("Too many logins from your address.", retry_after_s=attempt.wait_s))
    try:
        made = device_logins.device_login_begin(client=request.POST.get("client", ""), address=address)
    except ApplicationError as error:
        return _refused(error)
    at, shown = f"{config().base_url}/login/device", user_code_shown(made.user_code)
    return JsonResponse(
        {
            "device_code": made.device_code,
            "user_code": shown,
            "verification_uri": at,
            "verification_uri_complete": f"{at}?code={shown}",
            "expires_in": DEVICE_S,
            "interval": INTERVAL_S,
        }
    )


@csrf_exempt
@never_cache
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """Answer the token of an approved request, once; else 400 with `error`."""
    found = device_logins.device_login_poll(request.POST.get("device_code", ""))
    if isinstance(found, PollAnswer):
        return JsonResponse({"error": str(found), "error_description": _ABOUT[found]}, status=400)
    return JsonResponse(
        {
            "access_token": found.token,
            "token_type": "Bearer",
            "expires_in": found.granted_s,
            "domain": config().domain,
            "subject": found.subject,
            "admin": found.admin,
        }
    )


@page
@require_http_methods(["GET", "HEAD", "POST"])
def device(request: HttpRequest) -> HttpResponse:
    """Ask for the code, show what asks with it, and approve or refuse that."""
    user = current_user(request)
    code = (request.POST if request.method == "POST" else request.GET).get("code", "")[:CODE_CHARS_MAX]
    context: dict[str, Any] = {"code": code, "role": role_of(user)}
    template = "portal/login_device.html"
    if not code:
        return render(request, template, context)
    attempt = attempt_device(address=address_of(request))
    if attempt.wait_s:
        response = render(request, template, context | {"wait": words.duration(attempt.wait_s)}, status=429)
        response["Retry-After"] = str(attempt.wait_s)
        return response
    found = device_logins.device_login_open(code)
    if found is None:
        return render(request, template, context | {"unknown": True}, status=404)
    attempt.succeeded()
    answer = request.POST.get("answer", "")
    if request.method != "POST" or answer not in ("approve", "refuse"):
        leases = [{"s": one, "shown": words.duration(one), "default": one == LEASE_DEFAULT_S} for one in LEASES_S]
        left_s = max(0, int((found.expires_at - timezone.now()).total_seconds()))
        shown = {"asks": found, "shown": user_code_shown(found.user_code), "leases": leases}
        return render(request, template, context | shown | {"left": words.duration(left_s)})
    lease = request.POST.get("lease_s", "")
    device_logins.device_login_decide(
        user=user,
        code=code,
        approve=answer == "approve",
        lease_s=int(lease) if lease in map(str, LEASES_S) else 0,
        with_role=request.POST.get("rights") == "role",
    )
    return render(request, template, context | {"decided": answer, "asks": found})


def _refused(error: ApplicationError) -> HttpResponse:
    response = problem(error)
    if error.retry_after_s is not None:
        response["Retry-After"] = str(error.retry_after_s)
    return response
