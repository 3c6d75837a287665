"""POST /api/v1/rps/{rp}/events: one event, or a batch."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

from eventing.core.cloudevents import Event
from eventing.core.cloudevents_http import parse_http
from eventing.core.cursors import Cursor
from eventing.core.errors import InvalidEvent
from eventing.edge import http
from eventing.edge.access import require
from eventing.edge.gateway import Gateway
from eventing.edge.limits import account_of, bytes_of, caller
from eventing.edge.recording import access
from eventing.log.scripts import Appended

_encode = msgspec.json.Encoder().encode


def _make_id() -> str:
    return str(uuid.uuid4())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


async def publish(gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send, reference: str) -> None:
    """Answer 201 once the event is as durable as the RP's acknowledgement level asks."""
    principal = await caller(gateway, scope)
    descriptor = gateway.descriptors.peek(reference) or await gateway.descriptors.get(reference)
    access(scope).rp = descriptor.id
    require(descriptor, principal, "publish")
    gateway.refuse_foreign_admin(descriptor)
    config = gateway.config
    body = await http.body(scope, receive, config.batch_bytes_max, config.request_timeout_s)
    events, batch = parse_http(
        scope["headers"],
        body,
        bytes_max=config.event_bytes_max,
        events_max=config.batch_events_max,
        make_id=_make_id,
        now=_now,
        default_source=f"/{config.domain}/principals/{quote(principal.identity, safe='')}",
    )
    if not events:
        raise InvalidEvent("A batch holds at least one event.")
    size = bytes_of(events)
    access(scope).published(len(events), size)
    gateway.limits.publish(account_of(scope), descriptor.id, len(events), size)
    appended = await gateway.appender.append_and_wait(descriptor, events)
    await http.answer_json(send, 201, published(events, appended, batch))


def published(events: list[Event], appended: Appended, batch: bool) -> dict[str, Any]:
    """What a publisher is answered: where its event is, or its events are."""
    last = appended.offsets[-1]
    place = {"epoch": appended.epoch, "offset": last, "cursor": str(Cursor(appended.epoch, last))}
    if not batch:
        return {**place, "id": events[0].id, "source": events[0].source, "duplicate": appended.duplicates[0]}
    results = [
        {"offset": offset, "duplicate": duplicate}
        for offset, duplicate in zip(appended.offsets, appended.duplicates, strict=True)
    ]
    return {**place, "results": results}
