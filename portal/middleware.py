"""Middleware of the console: security headers of every answer, static files, and how long sessions last."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import logout
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin
from whitenoise.middleware import WhiteNoiseMiddleware

from portal.accounts.services.sessions import session_ends_at, session_note
from portal.bundle import FOLDER, PREFIX

_PAGES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; connect-src 'self'"
)
_BUILT = re.compile(r"[\w.]+-[A-Z0-9]{8}\.(js|css)")
"""Files of the console with the hash of their content in their names."""
_DATA = "default-src 'none'; frame-ancestors 'none'"
HSTS_S = 365 * 86_400
PERMISSIONS = ", ".join(
    f"{feature}=()"
    for feature in (
        "accelerometer",
        "camera",
        "display-capture",
        "geolocation",
        "gyroscope",
        "microphone",
        "midi",
        "payment",
        "usb",
    )
)
"""Browser features that no page uses. Writing to the clipboard stays allowed: the copy buttons use it."""


class SecurityHeaders(MiddlewareMixin):
    """Outermost middleware, so that every answer has the headers, including errors of other middleware; headers set by
    a view stay.

    The policy allows a page only our own files, nothing inline (so it needs no nonces), live data from this host only.
    Events are shown as their publishers wrote them; should one ever slip through as markup, a browser still runs none of it.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Add the headers to `response`."""
        headers = {
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Permissions-Policy": PERMISSIONS,
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "X-Frame-Options": "DENY",
            "Content-Security-Policy": _PAGES + _websockets(request) if _is_page(response) else _DATA,
        }
        if settings.HERALD.base_url.startswith("https:"):
            headers["Strict-Transport-Security"] = f"max-age={HSTS_S}"
        for name, value in headers.items():
            response.headers.setdefault(name, value)
        return response


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise that answers with whole files: they are small, and a stream would need a thread.

    Files are listed at the start, those of the console also later: one that is built while the domain runs is served to
    pages that name it.
    """

    def __call__(self, request: HttpRequest) -> Any:
        """Serve one request."""
        folder, _, name = request.path_info.rpartition("/")
        if (
            f"{folder}/" == f"{self.static_prefix}{PREFIX}"
            and request.path_info not in self.files
            and _BUILT.fullmatch(name)
        ):
            file = FOLDER / name
            if file.is_file():
                self.add_file_to_dictionary(request.path_info, str(file))
        return super().__call__(request)

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


class SessionLife:
    """Ends a session that has lasted long enough, and writes down now and then that one is in use. After authentication."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Serve one request; one without the session's cookie costs nothing here."""
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            if timezone.now().timestamp() > session_ends_at(request.session):
                logout(request)
            else:
                session_note(request, request.user)
        return self._get_response(request)


def _is_page(response: HttpResponseBase) -> bool:
    kind = response.headers.get("Content-Type", "")
    return kind.startswith("text/html") or not kind


def _websockets(request: HttpRequest) -> str:
    """This host's WebSocket origins: older browsers do not count them as 'self'."""
    try:
        host = request.get_host()
    except DisallowedHost:
        return ""
    return f" ws://{host} wss://{host}"
