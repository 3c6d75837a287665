"""Metrics of forwarding: events sent to peers, and requests in flight."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from eventing.core.container import per_process
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError
from eventing.telemetry import metrics, tracing
from eventing.telemetry.metrics import peer_label


class _InFlight:
    """Requests of this process to peers, held under `lock`.

    Attributes:
        since: begin of those in flight, monotonic seconds, by label.
        shown: labels that the metrics have.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.since: dict[str, float] = {}
        self.shown: set[str] = set()


_in_flight = per_process(_InFlight)


@contextmanager
def request_measured(peer: str, request: wire.ExchangeRequest) -> Iterator[None]:
    """Measure a request to the peer, made within the block."""
    label, began, outcome, in_flight = peer_label(peer), time.monotonic(), "ok", _in_flight()
    with in_flight.lock:
        in_flight.since.setdefault(label, began)
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
        with in_flight.lock:
            in_flight.since.pop(label, None)
            in_flight.shown.add(label)  # most end between two copies: the metric is then 0, not absent
        metrics.FORWARD_REQUESTS.labels(label, outcome).inc()
        metrics.FORWARD_DURATION.observe(time.monotonic() - began)


def _span(peer: str, request: wire.ExchangeRequest) -> AbstractContextManager[object]:
    """Return a span in the trace of the first event in the request, linked to those of the others."""
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
    """Write the metrics of requests in flight; once a second, in the process that forwards."""
    in_flight = _in_flight()
    with in_flight.lock:
        since = dict(in_flight.since)
        shown = in_flight.shown | since.keys()
    now = time.monotonic()
    for label in shown:
        metrics.FORWARD_IN_FLIGHT.labels(label).set(now - since[label] if label in since else 0.0)
