"""The metrics of forwarding: what peers were sent, and what is under way to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError
from eventing.telemetry import metrics, tracing
from eventing.telemetry.metrics import peer_label

_lock = threading.Lock()
_under_way: dict[str, float] = {}  # since when, by label
_told: set[str] = set()


@contextmanager
def request_measured(peer: str, request: wire.Request) -> Iterator[None]:
    """Measure a request to the peer, made within the block."""
    label, began, outcome = peer_label(peer), time.monotonic(), "ok"
    with _lock:
        _under_way.setdefault(label, began)
    try:
        with _span(peer, request):
            yield
    except PeerError as error:
        outcome = error.kind
        raise
    except wire.BadMessage:
        outcome = "invalid"
        raise
    else:
        metrics.FORWARDED.labels(label).inc(sum(len(run.events) for part in request.parts for run in part.runs))
    finally:
        with _lock:
            _under_way.pop(label, None)
            _told.add(label)  # most are over between two looks: the peer is to be told as 0 then, not left out
        metrics.FORWARD_REQUESTS.labels(label, outcome).inc()
        metrics.FORWARD_DURATION.observe(time.monotonic() - began)


def _span(peer: str, request: wire.Request) -> AbstractContextManager[object]:
    """Of the trace of the first event in the request, linked to those of the others."""
    if not tracing.is_on():
        return nullcontext()
    events = [event for part in request.parts for run in part.runs for event in run.events]
    parent, links = tracing.of_events(events)
    attributes: tracing.Attributes = {
        "server.address": peer,
        "messaging.system": "herald",
        "messaging.batch.message_count": len(events),
    }
    return tracing.span("exchange", "client", parent=parent, links=links[1:], attributes=attributes)


def copy_in_flight() -> None:
    """Put into the metrics since when requests have been under way; once a second, in the process that forwards."""
    with _lock:
        under_way = dict(_under_way)
        told = _told | under_way.keys()
    now = time.monotonic()
    for label in told:
        metrics.FORWARD_IN_FLIGHT.labels(label).set(now - under_way[label] if label in under_way else 0.0)
