"""uvicorn's HTTP protocol of ours where spans are made: without its short ways, which pass by the ASGI application."""

from __future__ import annotations

from typing import Any

from eventing.gateway.server.protocol import HeraldHttpProtocol


class TracedHttpProtocol(HeraldHttpProtocol):
    """Every request goes through the application, and every answer by its `send`, so that a span sees both."""

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._served = cycle
        super(HeraldHttpProtocol, self)._start_asgi_task(cycle, app)

    def answer(self, scope: Any, status: int, headers: list[tuple[bytes, bytes]], content: bytes) -> bool:
        """Never at once."""
        return False
