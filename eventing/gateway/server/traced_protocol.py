"""Herald's uvicorn HTTP protocol where spans are made: without the fast paths that bypass the ASGI application."""

from __future__ import annotations

from typing import Any

from eventing.gateway.server.protocol import HeraldHttpProtocol


class TracedHttpProtocol(HeraldHttpProtocol):
    """Protocol that passes every request through the application, and every answer through its `send`, so that a span
    covers both."""

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._served = cycle
        super(HeraldHttpProtocol, self)._start_asgi_task(cycle, app)

    def answer(self, scope: Any, status: int, headers: list[tuple[bytes, bytes]], content: bytes) -> bool:
        """Return False: never answers directly."""
        return False
