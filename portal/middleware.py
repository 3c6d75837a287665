"""Middleware of the console: static files, and the Content-Security-Policy of every page."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from whitenoise.middleware import WhiteNoiseMiddleware

_FIXED = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; connect-src 'self'"
)


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise, answering with the file whole: ours are small, and a stream would be read in a thread of its own."""

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """The answer for one static file."""
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file:
                content = found.file.read()
        response = HttpResponse(content, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response


class ContentSecurityPolicy(MiddlewareMixin):
    """Allows only our own files, nothing inline, live data from this host only; a policy that a view has set stays.

    Events are shown as their publishers wrote them; should one ever slip through as markup, a browser still runs none of it.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Add the policy to `response`."""
        if not response.has_header("Content-Security-Policy"):
            response["Content-Security-Policy"] = _FIXED + _websockets(request)
        return response


def _websockets(request: HttpRequest) -> str:
    """This host's WebSocket origins: older browsers do not count them as 'self'."""
    try:
        host = request.get_host()
    except DisallowedHost:
        return ""
    return f" ws://{host} wss://{host}"
