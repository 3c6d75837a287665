"""Logging in at the identity provider: the way there and the way back."""

from __future__ import annotations

import logging
from typing import Any

import jwt
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from eventing.audit.refusals import refusals
from eventing.audit.services import audit_record
from eventing.conf import config
from eventing.core.errors import HeraldError, Unauthenticated
from portal.console.accounts.addresses import address_of
from portal.console.accounts.sessions import log_in
from portal.console.accounts.throttling import attempt_provider, provider_succeeded
from portal.console.oidc.backend import Backend, callback_url
from portal.console.oidc.provider import directory
from portal.console.pages import words
from portal.console.pages.access import principal_of

STATE_S = 600
"""Whoever does not come back from the provider within this begins again."""

BACKEND = "portal.console.oidc.backend.Backend"
CODE_CHARS_MAX = 4096
log = logging.getLogger(__name__)


class _Begin(OIDCAuthenticationRequestView):  # type: ignore[misc]
    """The library's way there, with the provider's address as discovered and ours as set."""

    def __init__(self, **kwargs: Any) -> None:
        super(OIDCAuthenticationRequestView, self).__init__(**kwargs)
        self.OIDC_OP_AUTH_ENDPOINT = directory.provider().authorization_endpoint
        self.OIDC_RP_CLIENT_ID = config().oidc_client_id

    @staticmethod
    def get_settings(attr: str, *args: Any) -> Any:
        fixed = {"OIDC_RP_SCOPES": "openid profile email", "OIDC_USE_PKCE": True, "OIDC_USE_NONCE": True}
        return fixed[attr] if attr in fixed else Backend.get_settings(attr, *args)

    def get_extra_params(self, request: HttpRequest) -> dict[str, str]:
        return {"redirect_uri": callback_url()}


class _Callback(OIDCAuthenticationCallbackView):  # type: ignore[misc]
    """The library's way back: looks up and spends the state, then has the backend do the rest."""

    get_settings = staticmethod(Backend.get_settings)

    def login_failure(self) -> HttpResponse:
        raise Unauthenticated("This login was not begun in this browser, or too long ago; begin it again.")

    def login_success(self) -> HttpResponse:
        target = self.request.session.pop("oidc_login_next", None)
        self.request.session.pop("oidc_states", None)
        log_in(self.request, self.user, backend=BACKEND)
        audit_record(action="login", principal=principal_of(self.user), details={"by": "oidc"})
        return redirect(target or "portal:overview")


@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponseBase:
    """To the provider."""
    if not config().oidc_issuer:
        raise Http404
    attempt = attempt_provider(address=address_of(request))
    if attempt.wait_s:
        response = _refused(
            request, f"Too many logins were begun from here; try again in {words.duration(attempt.wait_s)}.", 429
        )
        response["Retry-After"] = str(attempt.wait_s)
        return response
    try:
        answer: HttpResponseBase = _Begin.as_view()(request)
    except HeraldError as error:
        return _refused(request, error.detail, error.status)
    if not request.user.is_authenticated:
        request.session.set_expiry(STATE_S)
    return answer


@never_cache
@require_GET
def callback(request: HttpRequest) -> HttpResponseBase:
    """Back from the provider: with a code, or with an error that we do not repeat."""
    if not config().oidc_issuer:
        raise Http404
    try:
        if "code" not in request.GET or "state" not in request.GET or len(request.GET["code"]) > CODE_CHARS_MAX:
            raise Unauthenticated("The identity provider did not log you in; begin again.")
        answer: HttpResponseBase = _Callback.as_view()(request)
    except HeraldError as error:
        return _failed(request, error)
    except SuspiciousOperation as error:  # the library's word for a wrong state, nonce, signature or algorithm
        return _failed(request, Unauthenticated(_sentence(error)))
    except (jwt.PyJWTError, KeyError, TypeError, ValueError) as error:
        log.info("an id token was refused: %s", type(error).__name__)
        return _failed(request, Unauthenticated("The identity provider's answer is not valid; begin again."))
    provider_succeeded(address=address_of(request))
    return answer


def _sentence(error: SuspiciousOperation) -> str:
    if "state" in str(error):
        return "This login was not begun in this browser, or it was used already; begin it again."
    return "The identity provider's answer is not valid; begin again."


def _failed(request: HttpRequest, error: HeraldError) -> HttpResponse:
    refusals().note(action="login.failed", error=error)  # counted: a stranger may come here as often as he likes
    return _refused(request, error.detail, error.status)


def _refused(request: HttpRequest, detail: str, status: int) -> HttpResponse:
    return render(request, "portal/login_refused.html", {"detail": detail}, status=status)
