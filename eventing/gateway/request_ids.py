"""Request ids: the client's `X-Request-Id` if it is well-formed, else a new one; returned in `X-Request-Id`.

The id is in `scope["herald.request_id"]`, in the origin of the request's acts (core/request_origin.py), and so in audit
entries and log lines. An id serves to find requests, not as proof: clients may choose theirs, and two may choose the
same.
"""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from eventing.client_address import scope_address, trusted_proxies
from eventing.core.container import per_process
from eventing.core.request_origin import Origin, current_origin
from eventing.gateway import http

ID_CHARS_MAX = 64  # bound: characters of `X-Request-Id`; the id is replaced by a generated one
_ID = re.compile(rb"[A-Za-z0-9._-]{1,%d}" % ID_CHARS_MAX)
_ANSWERS = ("http.response.start", "websocket.accept", "websocket.http.response.start")
HEADER = "herald.request_id_header"
TELLS_ITSELF = ("/api/v1/rps/", "/api/v1/subscriptions/")
"""Paths whose answers get the header in an inner layer, together with others: each layer of `send` costs the hot path."""


@per_process
def _ids() -> Iterator[str]:
    """New ids: a random prefix of the process, and a number."""
    prefix = f"{secrets.token_hex(5)}-%x"
    return map(prefix.__mod__, itertools.count(1))


Application = Callable[[http.Scope, http.Receive, http.Send], Awaitable[None]]


class RequestIds:
    """ASGI application around `application` that gives each HTTP request and WebSocket handshake its id."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._behind_proxies = bool(trusted_proxies())

    def _address(self, scope: http.Scope) -> str:
        if self._behind_proxies:
            return scope_address(scope)
        client = scope.get("client")
        return client[0] if client else ""

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Serve one connection's scope."""
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        of_request = scope["herald.request_id"] = request_id(scope)
        current_origin.set(Origin(self._address(scope), of_request, _via(scope)))
        header = scope[HEADER] = (b"x-request-id", of_request.encode())
        if scope["type"] == "http" and scope["path"].startswith(TELLS_ITSELF):
            await self._application(scope, receive, send)
            return

        async def send_with_id(message: dict[str, Any]) -> None:
            if message["type"] in _ANSWERS:
                message["headers"] = [*message.get("headers", ()), header]
            await send(message)

        await self._application(scope, receive, send_with_id)


def request_id(scope: http.Scope) -> str:
    """Return the client's id if it is well-formed (others are not used, since ids are written to log lines), else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return value.decode() if _ID.fullmatch(value) else new_request_id()
    return new_request_id()


def new_request_id() -> str:
    """Make an id that no other request has: of this process, counted."""
    return next(_ids())


def _via(scope: http.Scope) -> str:
    if scope["type"] == "websocket":
        return "websocket"
    return "api" if scope["path"].startswith(("/api/", "/.well-known/")) else "console"
