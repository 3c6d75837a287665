"""Audit and access records of requests that Django serves, from any view or middleware.

Audit of refusals and failures: one place for REST and console alike. What is answered 401, 403 or 429, or refused by
quota, is counted (audit/refusals.py); an act (POST, PATCH, PUT, DELETE) that ends in a 5xx is recorded as failed. What
the code below has recorded itself, in better words, is not recorded again.

Access records (gateway/recording.py): the operation, by URL name and method as in the audit, the principal, and the RP.
Never the path or the query.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.db import Error
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import ResolverMatch
from django.utils.decorators import sync_and_async_middleware
from django.utils.deprecation import MiddlewareMixin
from django.utils.functional import SimpleLazyObject, empty

from eventing.access.verification.request_users import ApiUser, principal_of
from eventing.audit.refusals import STATUSES, is_refusal, refusals
from eventing.audit.services import FAILED, audit_record
from eventing.conf import config
from eventing.core.errors import ApplicationError, Forbidden, RateLimited, Unauthenticated
from eventing.core.principals import Principal
from eventing.core.request_origin import current_origin
from eventing.gateway.recording import Access, access
from eventing.records.rows import rp_or_nothing

ACTS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
VERBS = {
    "GET": "describe",
    "HEAD": "describe",
    "POST": "create",
    "PUT": "update",
    "PATCH": "update",
    "DELETE": "delete",
}
ACTIONS: Mapping[tuple[str, str], str] = {
    ("rps", "GET"): "rp.list",
    ("rps", "POST"): "rp.create",
    ("rp-renewal", "POST"): "rp.renew",
    ("rp-pause", "POST"): "rp.pause",
    ("rp-resumption", "POST"): "rp.resume",
    ("rp-trim", "POST"): "rp.trim",
    ("sessions", "GET"): "session.list",
    ("session", "DELETE"): "session.disconnect",
    ("session-disconnections", "POST"): "session.disconnect",
    ("peer-renewal", "POST"): "peer.renew",
    ("peer-replays", "POST"): "peer.replay",
    ("peer-retries", "POST"): "peer.retry",
    ("leases", "GET"): "lease.list",
    ("alarms", "GET"): "alarm.list",
    ("alarm-acknowledgements", "POST"): "alarm.acknowledge",
    ("watches", "GET"): "watch.list",
    ("watches", "PUT"): "watch.replace",
    ("names", "GET"): "name.list",
    ("subscriptions", "GET"): "subscription.list",
    ("evidence-list", "GET"): "evidence.list",
    ("evidence", "GET"): "evidence.export",
    ("rp-subscriptions", "GET"): "subscription.list",
    ("rp-subscriptions", "POST"): "subscription.create",
    ("subscription-renewal", "POST"): "subscription.renew",
    ("rp-intakes", "GET"): "intake.list",
    ("rp-intakes", "POST"): "intake.create",
    ("intake-renewal", "POST"): "intake.renew",
    ("ws-event-source", "GET"): "wsdl.read",
    ("ws-event-source", "POST"): "subscription.create",
    ("ws-subscription-manager", "GET"): "wsdl.read",
    ("ws-subscription-manager", "POST"): "subscription.manage",
    ("tokens", "POST"): "token.create",
    ("tokens-biscuit", "POST"): "token.biscuit",
    ("keys", "GET"): "key.list",
    ("key-rotations", "POST"): "key.rotate",
    ("key-retirements", "POST"): "key.retire",
    ("revocations", "GET"): "revocation.list",
    ("revocations", "POST"): "revocation.create",
    ("revocation", "DELETE"): "revocation.lift",
    ("policy-explanation", "POST"): "policy.explain",
    ("limits", "GET"): "limits.read",
    ("audit", "GET"): "audit.list",
    ("audit-export", "GET"): "audit.export",
    ("portal:rp-list", "GET"): "rp.list",
    ("portal:rp-create", "GET"): "rp.create",
    ("portal:rp-create", "POST"): "rp.create",
    ("portal:start", "POST"): "rp.create",
    ("portal:start-token", "POST"): "token.create",
    ("portal:rp-renew", "POST"): "rp.renew",
    ("portal:rp-delete", "GET"): "rp.delete",
    ("portal:rp-delete", "POST"): "rp.delete",
    ("portal:user-list", "GET"): "user.list",
    ("portal:user-new", "GET"): "user.invite",
    ("portal:user-new", "POST"): "user.invite",
    ("portal:user", "GET"): "user.describe",
    ("portal:user-role", "POST"): "user.role",
    ("portal:user-link", "POST"): "user.reset",
    ("portal:user-active", "POST"): "user.activate",
    ("portal:user-logout", "POST"): "user.logout-everywhere",
    ("portal:login", "POST"): "login",
    ("portal:login-once", "POST"): "login",
}
"""Action names of requests, by URL name and method, where the URL name is not clear enough."""

PARTS = {
    "reference": "rp",
    "subscription_id": "subscription",
    "intake_id": "intake",
    "kid": "key",
    "revocation_id": "revocation",
    "user_id": "user",
    "session_id": "session",
}
"""Kinds of objects by parameter of a URL; never a one-time link's token."""

DETAIL_CHARS_MAX = 255
PROBLEM_BYTES_MAX = 64 * 1024  # of a problem document that is read for its sentence
_PROBLEM = "urn:herald:problem:"
log = logging.getLogger(__name__)

Answer = Callable[[HttpRequest], Any]


_IN_FORM = "_herald_refusal_of_form"


def refusal_of_form(request: HttpRequest, error: ApplicationError) -> None:
    """Remember that a form was refused with `error`: the status of the page that shows it does not reveal the
    refusal."""
    if is_refusal(error):
        setattr(request, _IN_FORM, error)


class AuditRefusals(MiddlewareMixin):
    """See the module. Stands before everything that may refuse."""

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        """As in Django, but without a change of threads for answers that are no refusals."""
        response: HttpResponseBase = await cast(Awaitable[HttpResponseBase], self.get_response(request))
        if response.status_code >= 400:
            response = await sync_to_async(self.process_response)(request, response)  # it may look the user up
        return response

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Record the answer if it is a refusal or a failed act."""
        status = response.status_code
        if status >= 400 and not current_origin.get().refusal_recorded:
            error = getattr(request, _IN_FORM, None) or _error(response)
            if status in STATUSES or is_refusal(error):
                action, on = _what(request)
                refusals().note(action=action, error=error, principal=_who(request), on=on)
            elif status >= 500 and request.method in ACTS:
                self._failed(request, error)
        return response

    @staticmethod
    def _failed(request: HttpRequest, error: ApplicationError) -> None:
        action, on = _what(request)
        try:
            audit_record(action=action, outcome=FAILED, principal=_who(request), on=on, error=error)
        except Error as fault:  # most likely the very reason of the failure
            log.error("A failed %s is not in the audit, the database does not answer: %s", action, fault)


class _Answered(ApplicationError):
    """An answer's code and sentence, read back."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code  # type: ignore[misc]


_BY_STATUS: dict[int, Callable[[str], ApplicationError]] = {401: Unauthenticated, 403: Forbidden, 429: RateLimited}


def _problem(response: HttpResponseBase) -> tuple[str, str] | None:
    """Return the code and the sentence of the answer's problem document; None for another answer."""
    kind = response.get("Content-Type", "")
    if not (isinstance(response, HttpResponse) and kind.startswith("application/problem+json")):
        return None
    try:
        found: dict[str, Any] = json.loads(response.content[:PROBLEM_BYTES_MAX])
        name, detail = str(found["type"]), str(found.get("detail", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return (name.removeprefix(_PROBLEM), detail[:DETAIL_CHARS_MAX]) if name.startswith(_PROBLEM) else None


def _error(response: HttpResponseBase) -> ApplicationError:
    """Return the error in `response`: code and detail of its problem document, or the meaning of its status."""
    found = _problem(response)
    if found is not None:
        return _Answered(*found)
    make = _BY_STATUS.get(response.status_code, ApplicationError)
    return make(f"Answered with {response.status_code} {response.reason_phrase}.")


def _who(request: HttpRequest) -> Principal | None:
    """Return the principal of a request: bearer of a token or console user; None for a stranger."""
    user: Any = getattr(request, "user", None)
    if isinstance(user, ApiUser):
        return user.principal
    return principal_of(request) if user is not None and user.is_authenticated else None  # type: ignore[arg-type]


def _what(request: HttpRequest) -> tuple[str, tuple[str, str]]:
    """Return the action's name and its object, from the URL."""
    match: ResolverMatch | None = request.resolver_match
    method = str(request.method)
    if match is None or not match.view_name:
        return f"http.{method.lower()}", ("path", request.path)
    action = ACTIONS.get((match.view_name, method))
    if action is None:
        action = f"{match.view_name.replace(':', '.').replace('-', '.')}.{VERBS.get(method, method.lower())}"
    for name, kind in PARTS.items():
        if name in match.kwargs:
            return action, (kind, str(match.kwargs[name]))
    return action, ("", "")


@sync_and_async_middleware
def recording(get_response: Answer) -> Answer:
    """Return the middleware; asynchronous under an asynchronous server, to avoid a change of threads."""
    if _is_async(get_response):

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            response: HttpResponseBase = await cast(Awaitable[HttpResponseBase], get_response(request))
            _fill_in(request, response)
            return response

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = get_response(request)
        _fill_in(request, response)
        return response

    return answer


def _is_async(function: Answer) -> bool:
    return bool(iscoroutinefunction(function))


def _fill_in(request: HttpRequest, response: HttpResponseBase) -> None:
    """Add the data of the answer to the request's record."""
    of = access(getattr(request, "scope", {}))
    match = request.resolver_match
    if match is not None and match.view_name:
        method = str(request.method)
        named = ACTIONS.get((match.view_name, method))
        of.operation = named or f"{match.view_name.replace(':', '.').replace('-', '.')}.{VERBS.get(method, 'other')}"
        of.rp = rp_or_nothing(str(match.kwargs.get("reference", "")))
    if response.status_code >= 400:
        problem = _problem(response)
        of.reason = f"http-{response.status_code}" if problem is None else problem[0]
    elif not of.rp:
        shape = getattr(response, "data", None)
        of.rp = rp_or_nothing(str(getattr(shape, "rp", "") or getattr(shape, "id", "")))
    _say_who(of, getattr(request, "user", None))


def _say_who(of: Access, user: Any) -> None:
    if isinstance(user, SimpleLazyObject):
        # The session was not loaded, so no view needed it, and SQL must not be queried here.
        user = None if user.__dict__.get("_wrapped", empty) is empty else user._wrapped
    if isinstance(user, ApiUser):
        of.principal = user.principal
    elif user is not None and user.is_authenticated:
        of.client = "console"
        of.principal = Principal(config().domain, user.get_username(), False, 0.0, {})
