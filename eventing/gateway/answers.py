"""The last step of every answer of the edge over HTTP: the headers that all of them carry, and the short way out.

Where the server offers it (our uvicorn protocol), an answer that is whole is written to the transport in one piece. ASGI's
way, two messages through every layer and each header looked at again, costs a publish a tenth of its CPU.
"""

from __future__ import annotations

from typing import Any

from eventing.gateway import http
from eventing.gateway.admission.limits import ACCOUNT, rate_headers
from eventing.gateway.gateway import Gateway
from eventing.gateway.request_ids import HEADER, TELLS_ITSELF


class Answers:
    """An ASGI `send` that adds the RateLimit headers for whoever is counted by then, and the request's id where that is
    left to us."""

    __slots__ = ("_gateway", "_scope", "_send", "_tells_id")

    def __init__(self, gateway: Gateway, scope: http.Scope, send: http.Send) -> None:
        self._gateway = gateway
        self._scope = scope
        self._send = send
        self._tells_id = HEADER in scope and scope["path"].startswith(TELLS_ITSELF)

    async def __call__(self, event: dict[str, Any]) -> None:
        """Pass a message on."""
        if event["type"] == "http.response.start":
            event["headers"] = [*event.get("headers", ()), *self._headers()]
        await self._send(event)

    def whole(self, status: int, headers: http.Headers, content: bytes) -> bool:
        """Send a whole answer at once; False where that is not possible, and nothing has been sent.

        No header may hold what a client has written without its being checked: the server does not look at them again.
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
