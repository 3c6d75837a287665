"""RFC 9457 problem documents for every refusal of the REST interface, raised by Herald, DRF, Django or a store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions

from eventing.conf import config
from eventing.core.errors import (
    ApplicationError,
    Forbidden,
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
from eventing.store.errors import RedisError

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_S = 2
FINDINGS_MAX = 20  # bound: faults of a body in one problem document; the rest is counted in `detail`
POINTER_CHARS_MAX = 200  # bound: characters of a pointer to a fault; the rest is left out


def problem(error: ApplicationError) -> HttpResponse:
    """Make the answer for `error`."""
    response = HttpResponse(json.dumps(error.document()), content_type=CONTENT_TYPE, status=error.status)
    if error.retry_after_s is not None:
        response["Retry-After"] = str(error.retry_after_s)
    if error.status == 401:
        response["WWW-Authenticate"] = f'Bearer realm="{config().domain}"'
    return response


def exception_handler(exception: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """DRF's hook: make the answer for an exception of a view; None for a bug, which becomes a logged 500."""
    error = error_of(exception)
    if error is None:
        return None
    response = problem(error)
    if isinstance(error, Moved):  # without the query, which may contain a token
        response["Location"] = f"{error.extra['to'][0]}{context['request'].path}"
    return response


def error_of(exception: Exception) -> ApplicationError | None:
    """Convert `exception` into one of Herald's errors; None if it is unexpected."""
    match exception:
        case ApplicationError():
            return exception
        case exceptions.ValidationError():
            findings = _findings(exception.detail)
            more = f" There are {len(findings) - 1} more faults; `errors` lists them." if len(findings) > 1 else ""
            return InvalidRequest(f"{_sentence(findings[0])}{more}", errors=findings[:FINDINGS_MAX])
        case exceptions.ParseError():
            return InvalidRequest(str(exception.detail))
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return Unauthenticated("Send a token as `Authorization: Bearer TOKEN` or `?access_token=TOKEN`.")
        case exceptions.PermissionDenied() | PermissionDenied():
            return Forbidden(str(exception) or "The credentials do not allow this operation.")
        case exceptions.NotFound() | Http404():
            return NotFound("There is no resource at this address.")
        case exceptions.MethodNotAllowed():
            return MethodNotAllowed("Use one of the methods in the Allow header.")
        case exceptions.UnsupportedMediaType():
            return UnsupportedMediaType("Send application/json.")
        case exceptions.Throttled():
            return RateLimited("Too many requests. Try again later.", retry_after_s=RETRY_AFTER_S)
        case RequestDataTooBig():
            return TooLarge("The request is too large. Send a smaller one.")
        case SuspiciousOperation():
            return InvalidRequest("The request is malformed.")
        case RedisError():
            return Unavailable("The event log is not responding. Try again in a moment.", retry_after_s=RETRY_AFTER_S)
        case OperationalError() | InterfaceError():
            return Unavailable("The database is not responding. Try again in a moment.", retry_after_s=RETRY_AFTER_S)
    return None


def _findings(detail: Any, pointer: str = "") -> list[dict[str, str]]:
    """Flatten DRF's nested error lists into pairs of JSON pointer and sentence."""
    if isinstance(detail, Mapping):
        members = [
            (pointer if name == "non_field_errors" else f"{pointer}/{_token(name)}", d) for name, d in detail.items()
        ]
        return [finding for below, d in members for finding in _findings(d, below)]
    if isinstance(detail, Sequence) and not isinstance(detail, str):
        indexed = any(
            isinstance(d, Mapping) for d in detail
        )  # of a list of objects: an empty one for each without fault
        parts = [(f"{pointer}/{at}" if indexed else pointer, d) for at, d in enumerate(detail)]
        return [finding for below, d in parts for finding in _findings(d, below)]
    return [{"pointer": pointer[:POINTER_CHARS_MAX], "detail": str(detail)}]


def _token(name: Any) -> str:
    """Escape a member's name for a JSON pointer (RFC 6901)."""
    return str(name).replace("~", "~0").replace("/", "~1")


def _sentence(finding: Mapping[str, str]) -> str:
    """Name the member in front of what is wrong with it, unless that names it already."""
    where = finding["pointer"].lstrip("/").replace("/", ".").replace("~1", "/").replace("~0", "~")
    named = finding["detail"].startswith(where.rpartition(".")[2]) and where
    return finding["detail"] if named else f"{where or 'The body'}: {finding['detail']}"


@csrf_exempt
def unknown_path(request: HttpRequest, **_: Any) -> HttpResponse:
    """Answer requests to unknown paths below /api/."""
    return problem(NotFound("There is no resource at this address; /api/v1/schema lists the available ones."))


# Django's own handlers (portal/urls.py): failures outside a view are problem documents for API clients too.


def _for_machines(request: HttpRequest) -> bool:
    return request.path.startswith(("/api/", "/.well-known/"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Handle Django's 400."""
    if _for_machines(request):
        return problem(error_of(exception) or InvalidRequest("The request is malformed."))
    return defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Handle Django's 404."""
    return unknown_path(request) if _for_machines(request) else defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Handle Django's 500: a bug, logged by Django with its traceback, which the client does not see."""
    if _for_machines(request):
        return problem(ApplicationError("The request failed because of an internal fault, which has been logged."))
    return defaults.server_error(request)
