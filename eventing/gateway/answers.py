"""Last step of every HTTP answer of the gateway: common headers, and direct writing.

Where the server offers it (Herald's uvicorn protocol), a complete answer is written to the transport in one piece. The
ASGI way, two messages through every layer with each header checked again, costs a tenth of a publish's CPU.
"""

from __future__ import annotations

from typing import Any

from eventing.gateway import http
from eventing.gateway.admission.limits import ACCOUNT, rate_headers
from eventing.gateway.gateway import Gateway
from eventing.gateway.request_ids import HEADER, TELLS_ITSELF


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
