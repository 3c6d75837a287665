"""Every refusal of the REST interface as an RFC 9457 problem document, whoever raised it: Herald, DRF, Django, a store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt
from redis.exceptions import RedisError
from rest_framework import exceptions

from eventing.conf import config
from eventing.core.errors import (
    Forbidden,
    HeraldError,
    InvalidRequest,
    MethodNotAllowed,
    Moved,
    NotFound,
    RateLimited,
    TooLarge,
    Unauthenticated,
    Unavailable,
    UnsupportedMediaType,
)

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_S = 2
FINDINGS_MAX = 20


def problem(error: HeraldError) -> HttpResponse:
    """The answer for `error`."""
    response = HttpResponse(json.dumps(error.document()), content_type=CONTENT_TYPE, status=error.status)
    if error.retry_after_s is not None:
        response["Retry-After"] = str(error.retry_after_s)
    if error.status == 401:
        response["WWW-Authenticate"] = f'Bearer realm="{config().domain}"'
    return response


def exception_handler(exception: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """DRF's hook: the answer for what a view raised; None for a bug of ours, which becomes a logged 500."""
    error = error_of(exception)
    if error is None:
        return None
    response = problem(error)
    if isinstance(error, Moved):  # without the query, which may hold a token
        response["Location"] = f"{error.extra['to'][0]}{context['request'].path}"
    return response


def error_of(exception: Exception) -> HeraldError | None:
    """`exception` as one of Herald's errors; None if it is none of the foreseen ones."""
    match exception:
        case HeraldError():
            return exception
        case exceptions.ValidationError():
            findings = _findings(exception.detail)
            first = findings[0]
            detail = f"{first['pointer'].lstrip('/').replace('/', '.') or 'The body'}: {first['detail']}"
            return InvalidRequest(detail, errors=findings[:FINDINGS_MAX])
        case exceptions.ParseError():
            return InvalidRequest(str(exception.detail))
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return Unauthenticated("Send a token as `Authorization: Bearer TOKEN` or `?access_token=TOKEN`.")
        case exceptions.PermissionDenied() | PermissionDenied():
            return Forbidden(str(exception) or "This is not allowed to you.")
        case exceptions.NotFound() | Http404():
            return NotFound("There is nothing at this address.")
        case exceptions.MethodNotAllowed():
            return MethodNotAllowed("Use one of the methods in Allow.")
        case exceptions.UnsupportedMediaType():
            return UnsupportedMediaType("Send application/json.")
        case exceptions.Throttled():
            return RateLimited("Too many requests.", retry_after_s=RETRY_AFTER_S)
        case RequestDataTooBig():
            return TooLarge("The request is too large.")
        case SuspiciousOperation():
            return InvalidRequest("The request is malformed.")
        case RedisError():
            return Unavailable("The event log does not answer. Try again in a moment.", retry_after_s=RETRY_AFTER_S)
        case OperationalError() | InterfaceError():
            return Unavailable("The database does not answer. Try again in a moment.", retry_after_s=RETRY_AFTER_S)
    return None


def _findings(detail: Any, pointer: str = "") -> list[dict[str, str]]:
    """DRF's nested error lists, flat: JSON pointer and sentence."""
    if isinstance(detail, Mapping):
        members = [(pointer if name == "non_field_errors" else f"{pointer}/{name}", d) for name, d in detail.items()]
        return [finding for below, d in members for finding in _findings(d, below)]
    if isinstance(detail, Sequence) and not isinstance(detail, str):
        return [finding for d in detail for finding in _findings(d, pointer)]
    return [{"pointer": pointer[:200], "detail": str(detail)}]


@csrf_exempt
def unknown_path(request: HttpRequest, **_: Any) -> HttpResponse:
    """The answer below /api/ where nothing is."""
    return problem(NotFound("There is nothing at this address; /api/v1/schema describes what there is."))


# Django's own handlers (portal/urls.py): what fails outside a view is a problem document for API clients too.


def _for_machines(request: HttpRequest) -> bool:
    return request.path.startswith(("/api/", "/.well-known/"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 400."""
    if _for_machines(request):
        return problem(error_of(exception) or InvalidRequest("The request is malformed."))
    return defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 404."""
    return unknown_path(request) if _for_machines(request) else defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's 500: a bug of ours, logged by Django with its traceback, which the client does not see."""
    if _for_machines(request):
        return problem(HeraldError("The request failed because of a fault here; it has been logged."))
    return defaults.server_error(request)
