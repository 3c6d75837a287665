"""First and last step of every HTTP request: its id, and the headers of its answer.

The id of a request is the client's `X-Request-Id` if it is well-formed, else a new one; it is returned in
`X-Request-Id`. It is in `scope["herald.request_id"]`, in the origin of the request's acts (core/request_origin.py), and
so in audit entries and log lines. An id serves to find requests, not as proof: clients may choose theirs, and two may
choose the same.

Where the server offers it (Herald's uvicorn protocol), a complete answer is written to the transport in one piece. The
ASGI way, two messages through every layer with each header checked again, costs a tenth of a publish's CPU.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from eventing.client_address import scope_address, trusted_proxies
from eventing.core.request_origin import Origin, current_origin
from eventing.gateway import http
from eventing.gateway.admission.limits import ACCOUNT, rate_headers
from eventing.gateway.gateway import Gateway

_ANSWERS = ("http.response.start", "websocket.accept", "websocket.http.response.start")
HEADER = "herald.request_id_header"
TELLS_ITSELF = ("/api/v1/rps/", "/api/v1/subscriptions/")
"""Paths whose answers get the header from AnswerSender, together with others: each layer of `send` costs the hot path."""

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
        of_request = scope["herald.request_id"] = http.request_id(scope)
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


def _via(scope: http.Scope) -> str:
    if scope["type"] == "websocket":
        return "websocket"
    return "api" if scope["path"].startswith(("/api/", "/.well-known/", "/hooks/", "/websub/")) else "console"


class AnswerSender:
    """ASGI `send` that adds the RateLimit headers of the counted client, and the request's id where no other layer adds it."""

    __slots__ = ("_gateway", "_scope", "_send", "_tells_id")

    def __init__(self, gateway: Gateway, scope: http.Scope, send: http.Send) -> None:
        self._gateway = gateway
        self._scope = scope
        self._send = send
        self._tells_id = HEADER in scope and scope["path"].startswith(TELLS_ITSELF)

    async def __call__(self, event: dict[str, Any]) -> None:
        """Forward a message."""
        if event["type"] == "http.response.start":
            event["headers"] = [*event.get("headers", ()), *self._headers()]
        await self._send(event)

    def whole(self, status: int, headers: http.Headers, content: bytes) -> bool:
        """Send a complete answer at once; False if that is not possible and nothing has been sent.

        No header may contain unchecked text of a client: the server does not check headers again.
        """
        connection = self._scope.get("extensions", {}).get("herald.transport")
        if not self._tells_id or connection is None:
            return False
        sent: bool = connection.answer(self._scope, status, [*headers, *self._headers()], content)
        return sent

    def _headers(self) -> http.Headers:
        scope = self._scope
        headers: http.Headers = [scope[HEADER]] if self._tells_id else []
        account = scope.get(ACCOUNT)
        if account is not None:
            publishing = scope["method"] == "POST" and scope["path"].endswith("/events")
            headers += rate_headers(self._gateway.limits, account, publishing)
        return headers
