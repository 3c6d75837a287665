"""Access records of requests that Django serves (eventing/gateway/recording.py): the operation, by URL name and method
as in the audit, the principal, and the RP. Never the path or the query.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from django.utils.functional import SimpleLazyObject, empty

from eventing.access.verification.request_users import ApiUser
from eventing.conf import config
from eventing.core.principals import Principal
from eventing.gateway.recording import Access, access
from eventing.records.rows import rp_or_nothing
from portal.console.auditing import ACTIONS, PROBLEM_BYTES_MAX, VERBS

_PROBLEM = "urn:herald:problem:"

Answer = Callable[[HttpRequest], Any]


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
        of.reason = _reason(response)
    elif not of.rp:
        shape = getattr(response, "data", None)
        of.rp = rp_or_nothing(str(getattr(shape, "rp", "") or getattr(shape, "id", "")))
    _say_who(of, getattr(request, "user", None))


def _reason(response: HttpResponseBase) -> str:
    """Return the code of the answer's problem document; `http-STATUS` for other answers."""
    kind = response.get("Content-Type", "")
    if isinstance(response, HttpResponse) and kind.startswith("application/problem+json"):
        try:
            said = str(json.loads(response.content[:PROBLEM_BYTES_MAX])["type"])
        except (ValueError, KeyError, TypeError):
            said = ""
        if said.startswith(_PROBLEM):
            return said.removeprefix(_PROBLEM)
    return f"http-{response.status_code}"


def _say_who(of: Access, user: Any) -> None:
    if isinstance(user, SimpleLazyObject):
        # The session was not loaded, so no view needed it, and SQL must not be queried here.
        user = None if user.__dict__.get("_wrapped", empty) is empty else user._wrapped
    if isinstance(user, ApiUser):
        of.principal = user.principal
    elif user is not None and user.is_authenticated:
        of.client = "console"
        of.principal = Principal(config().domain, user.get_username(), False, 0.0, {})
