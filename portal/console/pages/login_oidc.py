"""Login at the identity provider: redirect and callback."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from eventing.audit.refusals import refusals
from eventing.audit.services import audit_record
from eventing.conf import config
from eventing.core.errors import ApplicationError, Unauthenticated
from portal.accounts.services.external_users import external_user
from portal.accounts.services.sessions import address_of, log_in
from portal.accounts.services.throttling import attempt_provider, provider_succeeded
from portal.console.oidc import flow
from portal.console.pages import words
from portal.console.pages.access import principal_of

STATE_S = 600
"""Time for a login at the provider; a later return is refused."""

BACKEND = "portal.console.oidc.backend.Backend"
CODE_CHARS_MAX = 4096


@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponseBase:
    """Redirect to the provider."""
    if not config().oidc_issuer:
        raise Http404
    attempt = attempt_provider(address=address_of(request))
    if attempt.wait_s:
        response = _refused(
            request,
            f"Too many logins were begun from your address; try again in {words.duration(attempt.wait_s)}.",
            429,
        )
        response["Retry-After"] = str(attempt.wait_s)
        return response
    target = request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(target, allowed_hosts=None):
        target = ""
    try:
        address = flow.begin(request.session, target)
    except ApplicationError as error:
        return _refused(request, error.detail, error.status)
    if not request.user.is_authenticated:
        request.session.set_expiry(STATE_S)
    return redirect(address)


@never_cache
@require_GET
def callback(request: HttpRequest) -> HttpResponseBase:
    """Handle the provider's redirect: with a code, or with an error, which is not repeated."""
    if not config().oidc_issuer:
        raise Http404
    code, state = request.GET.get("code", ""), request.GET.get("state", "")
    try:
        if not code or not state or len(code) > CODE_CHARS_MAX:
            raise Unauthenticated("The identity provider did not log you in; start the login again.")
        returned = flow.come_back(request.session, state, code)
        user = external_user(returned.claims)
    except ApplicationError as error:
        return _failed(request, error)
    request.session.pop(flow.BEGUN, None)
    log_in(request, user, backend=BACKEND)
    audit_record(action="login", principal=principal_of(user), details={"by": "oidc"})
    provider_succeeded(address=address_of(request))
    return redirect(returned.target or "portal:overview")


def _failed(request: HttpRequest, error: ApplicationError) -> HttpResponse:
    refusals().note(action="login.failed", error=error)  # counted: a stranger may repeat this without limit
    return _refused(request, error.detail, error.status)


def _refused(request: HttpRequest, detail: str, status: int) -> HttpResponse:
    return render(request, "portal/login_refused.html", {"detail": detail}, status=status)
