"""Traffic: what was taken of each peer and sent to it, counted in Redis for all processes of the domain; shown with the
peer's delivery, and drawn from its differences (eventing/operations/samples/peer_traffic.py).

Redundant copies per event are what the links' trees are judged by (overlay/broadcast.py): `copies` beside `events`.
"""

from __future__ import annotations

from collections.abc import Sequence

from eventing.log import control
from eventing.telemetry import metrics
from eventing.telemetry.metrics import peer_label

NAMES = ("requests", "runs", "events", "copies", "sent")
"""Requests of the peer, the runs in them, the events of these that were new here, and those that were here already; events
that the peer was sent, in requests that it took."""


def count(peer: str, **counts: int) -> None:
    """Add to what was taken of the peer, by NAMES."""
    label = peer_label(peer)
    metrics.RECEIVED_RUNS.labels(label).inc(counts.get("runs", 0))
    metrics.RECEIVED.labels(label).inc(counts.get("events", 0))
    metrics.REDUNDANT.labels(label).inc(counts.get("copies", 0))
    pipeline = control.client().pipeline(transaction=False)
    for name, amount in counts.items():
        if amount:
            pipeline.hincrby(_key(peer), name, amount)
    pipeline.execute()


def count_sent(peer: str, events: int) -> None:
    """Add to what the peer was sent: events of a request that it took."""
    if events:
        control.client().hincrby(_key(peer), "sent", events)


def taken(peer: str) -> dict[str, int]:
    """What was taken of the peer and sent to it since it became one, by NAMES."""
    return totals([peer])[peer]


def totals(peers: Sequence[str]) -> dict[str, dict[str, int]]:
    """The same of several peers, in one round trip."""
    pipeline = control.client().pipeline(transaction=False)
    for peer in peers:
        pipeline.hmget(_key(peer), NAMES)
    found = zip(peers, pipeline.execute(), strict=True)
    return {peer: {name: int(value or 0) for name, value in zip(NAMES, row, strict=True)} for peer, row in found}


def _key(peer: str) -> str:
    return f"herald:peer:{{{peer}}}:traffic"
