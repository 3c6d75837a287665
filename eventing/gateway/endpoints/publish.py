"""POST /api/v1/rps/{rp}/events: one event, or a batch."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

from eventing.core.container import memoized
from eventing.core.errors import InvalidEvent
from eventing.core.events.cloudevents import Event
from eventing.core.events.cloudevents_http import EventHead, parse_body, read_head
from eventing.core.events.cursors import Cursor
from eventing.core.principals import Principal
from eventing.gateway import http
from eventing.gateway.admission.access import require
from eventing.gateway.admission.limits import account_of, bytes_of, caller
from eventing.gateway.delivery.redirects import hops_of
from eventing.gateway.gateway import Gateway
from eventing.gateway.recording import access
from eventing.log.scripts import Appended

# 1 KiB each at most.
SOURCES_REMEMBERED = 1024  # bound: cached default sources of publishers; the source is computed again
_VARIANTS = "89ab"
_encode = msgspec.json.Encoder().encode


def make_id() -> str:
    """Make a random UUID (RFC 9562, version 4), at a quarter of the cost of `uuid.uuid4`."""
    digits = os.urandom(16).hex()
    variant = _VARIANTS[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def now_text() -> str:
    """Return the time as RFC 3339 in UTC, with microseconds, at a fraction of the cost of `timestamp`."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(seconds)}.{nanoseconds // 1000:06d}Z"


@memoized(maxsize=2)
def _second(unix_s: int) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@memoized(maxsize=SOURCES_REMEMBERED)
def _default_source(domain: str, identity: str) -> str:
    return f"/{domain}/principals/{quote(identity, safe='')}"


async def publish(gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send, reference: str) -> None:
    """Answer 201 once the events are as durable as the RP's acknowledgement level requires."""
    principal = await caller(gateway, scope)
    descriptor = gateway.descriptors.peek(reference) or await gateway.descriptors.get(reference)
    access(scope).rp = descriptor.id
    require(descriptor, principal, "publish")
    if gateway.reader_moves.active(descriptor.id):
        stated = {"hops": http.header(scope, b"herald-hops") or ""}
        await gateway.redirects.looked_up(descriptor.id)
        gateway.reader_moves.advise(descriptor.id, hops_of(stated), principal.identity)
    if descriptor.audience:
        await gateway.audiences.check(descriptor)
    gateway.require_taken(descriptor)
    body = await http.body(scope, receive, gateway.config.batch_bytes_max, gateway.config.request_timeout_s)
    events, batch = events_of(gateway, principal, read_head(scope["headers"]), body)
    if not events:
        raise InvalidEvent("A batch holds at least one event.")
    size = bytes_of(events)
    access(scope).published(len(events), size)
    gateway.limits.publish(account_of(scope), descriptor.id, len(events), size)
    appended = await gateway.appender.append_and_wait(descriptor, events)
    await http.answer_json(send, 201, published(events, appended, batch))


def events_of(gateway: Gateway, principal: Principal, head: EventHead, body: bytes) -> tuple[list[Event], bool]:
    """Parse the events of a publish, which may be none; the second value is True for a batch. Raises as `parse_body`."""
    config = gateway.config
    return parse_body(
        head,
        body,
        bytes_max=config.event_bytes_max,
        events_max=config.batch_events_max,
        make_id=make_id,
        now=now_text,
        default_source=lambda: _default_source(config.domain, principal.identity),
    )


def published_json(events: list[Event], appended: Appended, batch: bool) -> bytes:
    """Encode `published` as JSON."""
    return _encode(published(events, appended, batch))


def published(events: list[Event], appended: Appended, batch: bool) -> dict[str, Any]:
    """Make the answer to a publisher: the position of its event, or of its events."""
    last = appended.offsets[-1]
    place = {"epoch": appended.epoch, "offset": last, "cursor": str(Cursor(appended.epoch, last))}
    if not batch:
        return {**place, "id": events[0].id, "source": events[0].source, "duplicate": appended.duplicates[0]}
    results = [
        {"offset": offset, "duplicate": duplicate}
        for offset, duplicate in zip(appended.offsets, appended.duplicates, strict=True)
    ]
    return {**place, "results": results}
