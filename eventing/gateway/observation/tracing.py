"""Spans of the gateway, made only where spans are sent: of HTTP requests here, of flushes for the hub.

A request's span continues its `traceparent` header. A publish over HTTP then takes the ordinary path, not the fast
path, so that its span is current when it is passed to the appender. A flush has a span if its events state a trace
(their `traceparent` attribute); most have none, and cost a search in their bytes.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from eventing.gateway import http
from eventing.gateway.recording import access
from eventing.peering.wire.endpoints import HANDLERS
from eventing.telemetry import tracing

UNTRACED = ("/livez", "/readyz", "/metrics", "/static/")
"""Paths that probes and browsers request all the time."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

Application = Callable[[http.Scope, http.Receive, http.Send], Awaitable[None]]
_HOT = re.compile(r"/api/v1/(rps|subscriptions)/.+/(events|stream|ack)")


class Traced:
    """ASGI application around `application` that makes a span of each HTTP request."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Serve one connection's scope. A WebSocket has no span: it may last for days."""
        if scope["type"] != "http" or scope["path"].startswith(UNTRACED):
            await self._application(scope, receive, send)
            return
        parent = tracing.carried_by(http.header(scope, b"traceparent") or "", http.header(scope, b"tracestate") or "")
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        with tracing.span(method, "server", parent=parent, attributes={"http.request.method": method}) as span:
            status = 0

            async def send_seen(event: dict[str, Any]) -> None:
                nonlocal status
                if event["type"] == "http.response.start":
                    status = event["status"]
                await send(event)

            try:
                await self._application(scope, receive, send_seen)
            finally:
                if span is not None:
                    _set_attributes(span, scope, method, status)


def _set_attributes(span: Any, scope: http.Scope, method: str, status: int) -> None:
    """Set the attributes known at the request's end. Never its path or query: those of the console may contain a credential."""
    of = access(scope)
    span.update_name(f"{method} {_route(scope['path']) or of.operation or 'console'}")
    found = {
        "http.response.status_code": status,
        "herald.request_id": scope.get("herald.request_id") or http.request_id(scope),
        "herald.operation": of.operation,
        "herald.rp": of.rp,
        "herald.events": of.events,
    }
    span.set_attributes({name: value for name, value in found.items() if value})
    if status >= 500:
        from opentelemetry.trace import StatusCode

        span.set_status(StatusCode.ERROR)


def _route(path: str) -> str:
    found = _HOT.fullmatch(path)
    if found is not None:
        return f"/api/v1/{found[1]}/{{id}}/{found[2]}"
    return path if path in HANDLERS else ""  # else clients could name spans by requesting unknown paths


def flush_span(rp: str, events: list[bytes], readers: int, offset: int) -> AbstractContextManager[object]:
    """Return the span of a channel's flush, for a flush with readers and traced events.

    Args:
        events: those to be written.
        readers: live followers.
        offset: of the first event.
    """
    parent, links = tracing.of_events(events) if readers else (None, [])
    if parent is None:
        return nullcontext()
    attributes: tracing.Attributes = {
        "messaging.system": "herald",
        "messaging.operation.type": "deliver",
        "messaging.destination.name": rp,
        "messaging.batch.message_count": len(events),
        "herald.readers": readers,
        "herald.offset": offset,
    }
    return tracing.span("deliver", "consumer", parent=parent, links=links[1:], attributes=attributes)
