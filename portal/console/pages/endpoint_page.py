"""The page of one endpoint for the holder of a link to it (eventing/subscriptions/push/services/pages.py), without an account.

The link's token is in the fragment of the address, so no request line and no log contains it. The page's button exchanges it for
a cookie of its own, which is sent to these addresses only, by this site's pages only, and which scripts cannot read. The
console's session counts for nothing here, and this one for nothing elsewhere. Requests go to the same views as those of REST, with
the subscription of the session: no address here names one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from eventing.access.verification.request_users import ApiUser
from eventing.audit.services import REFUSED, audit_record
from eventing.core.errors import ApplicationError, RateLimited, Unauthenticated, Unavailable
from eventing.rest.base import View
from eventing.store.errors import RedisError
from eventing.subscriptions.api.subscriptions import SubscriptionView
from eventing.subscriptions.push.api.deliveries import AttemptsView, DeadLettersView, ReplayView
from eventing.subscriptions.push.api.endpoints import (
    EndpointPauseView,
    EndpointResumeView,
    EndpointSecretView,
    EndpointTestView,
    EndpointView,
)
from eventing.subscriptions.push.services.pages import PAGE_PATH, PageSession, page_close, page_open, page_session
from portal.accounts.services.sessions import address_of
from portal.accounts.services.throttling import attempt_link
from portal.console.pages import words
from portal.console.pages.access import problem

COOKIE = f"herald_endpoint_{settings.HERALD.port}"  # two domains on one host have different ones
_SESSION = "endpoint_page_session"
Answering = Callable[[HttpRequest], HttpResponseBase]


@never_cache
@require_GET
def shell(request: HttpRequest) -> HttpResponse:
    """Show the page, the same for everybody; its script redeems the link, or loads the session's endpoint."""
    return render(request, "portal/endpoint_page.html", {"user": AnonymousUser(), "paths": PAGE_PATH})


def _answered(view: Answering) -> Answering:
    """Decorate a view for the page's script: refusals are problem documents."""

    @never_cache
    @wraps(view)
    def wrapped(request: HttpRequest) -> HttpResponseBase:
        try:
            return view(request)
        except ApplicationError as error:
            return problem(error)
        except RedisError:
            return problem(Unavailable("The data plane does not respond; try again."))

    return wrapped


@sensitive_post_parameters()
@_answered
@require_POST
def open_link(request: HttpRequest) -> HttpResponse:
    """Exchange a link for a session: 204 and its cookie. Raises Unauthenticated, RateLimited."""
    attempt = attempt_link(address=address_of(request))
    if attempt.wait_s:
        raise RateLimited(
            f"Too many failed attempts from your address. Wait {words.duration(attempt.wait_s)}; the link stays valid.",
            retry_after_s=attempt.wait_s,
        )
    try:
        token, session_s, session = page_open(request.POST.get("link", ""))
    except Unauthenticated as error:
        audit_record(action="endpoint.page-opened", outcome=REFUSED, reason=error.detail)
        raise
    attempt.succeeded()
    on = ("subscription", session.subscription)
    audit_record(action="endpoint.page-opened", principal=session.principal, on=on)
    answer = HttpResponse(status=204)
    answer.set_cookie(
        COOKIE,
        token,
        max_age=session_s,
        path=PAGE_PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Strict",
    )
    return answer


@_answered
@require_POST
def close(request: HttpRequest) -> HttpResponse:
    """End the session."""
    page_close(request.COOKIES.get(COOKIE, ""))
    answer = HttpResponse(status=204)
    answer.delete_cookie(COOKIE, path=PAGE_PATH, samesite="Strict")
    return answer


class EndpointPageAuthentication(BaseAuthentication):
    """Authentication by the session that `_own` has found; tokens and the console's session are not read."""

    def authenticate(self, request: Request) -> tuple[ApiUser, None]:
        """Return the user of the page's session."""
        session: PageSession = getattr(request._request, _SESSION)
        return ApiUser(session.principal), None


def _own(view: type[View], method: str) -> Answering:
    """Make the view of the session's own subscription, for this method. Django's middleware checks the CSRF token."""
    served: Any = view.as_view(authentication_classes=[EndpointPageAuthentication], http_method_names=[method.lower()])

    @_answered
    @require_http_methods([method])
    def own(request: HttpRequest) -> HttpResponseBase:
        session = page_session(request.COOKIES.get(COOKIE, ""))
        setattr(request, _SESSION, session)
        answer: HttpResponseBase = served(request, subscription_id=session.subscription)
        return answer

    return own


OWN = {
    "subscription": _own(SubscriptionView, "GET"),
    "endpoint": _own(EndpointView, "GET"),
    "endpoint/pause": _own(EndpointPauseView, "POST"),
    "endpoint/resume": _own(EndpointResumeView, "POST"),
    "endpoint/secret": _own(EndpointSecretView, "POST"),
    "endpoint/test": _own(EndpointTestView, "POST"),
    "attempts": _own(AttemptsView, "GET"),
    "dead-letters": _own(DeadLettersView, "GET"),
    "replay": _own(ReplayView, "POST"),
}
"""Views by their path below the page's."""
