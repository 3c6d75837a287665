"""Traffic: counts per peer of what was received and sent, in Redis for all processes of the domain; shown with the
peer's delivery, and sampled (eventing/operations/samples/peer_traffic.py).

Broadcast trees are judged by redundant copies per event (overlay/broadcast.py): `copies` beside `events`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eventing.store import keys
from eventing.store.client import client
from eventing.store.keys import peer_key
from eventing.telemetry import metrics
from eventing.telemetry.metrics import peer_label

NAMES = ("requests", "runs", "events", "copies", "sent")
"""Requests received from the peer, the runs in them, the new events of these, and the duplicate ones; events sent to
the peer in requests that it acknowledged.
"""


def count(peer: str, **counts: int) -> None:
    """Add to the counts of the peer, by NAMES."""
    label = peer_label(peer)
    metrics.RECEIVED_RUNS.labels(label).inc(counts.get("runs", 0))
    metrics.RECEIVED.labels(label).inc(counts.get("events", 0))
    metrics.REDUNDANT.labels(label).inc(counts.get("copies", 0))
    pipeline = client().pipeline(transaction=False)
    for name, amount in counts.items():
        if amount:
            pipeline.hincrby(peer_key(peer, "traffic"), name, amount)
    pipeline.execute()


def count_sent(peer: str, events: int) -> None:
    """Add an acknowledged request's events to the count of events sent to the peer."""
    if events:
        client().hincrby(peer_key(peer, "traffic"), "sent", events)


def taken(peer: str) -> dict[str, int]:
    """Return the peer's counts since it became a peer, by NAMES."""
    return totals([peer])[peer]


def totals(peers: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the counts of several peers, in one round trip."""
    pipeline = client().pipeline(transaction=False)
    for peer in peers:
        pipeline.hmget(peer_key(peer, "traffic"), NAMES)
    found = zip(peers, pipeline.execute(), strict=True)
    return {peer: {name: int(value or 0) for name, value in zip(NAMES, row, strict=True)} for peer, row in found}


def samples_keep(rows: Mapping[str, str], kept_s: int) -> None:
    """Store the last sample of traffic with each peer for `kept_s`."""
    pipeline = client().pipeline()
    pipeline.hset(keys.PEERS_TRAFFIC_KEY, items=[part for pair in rows.items() for part in pair])
    pipeline.expire(keys.PEERS_TRAFFIC_KEY, kept_s)
    pipeline.execute()


def samples_kept() -> dict[str, bytes]:
    """Return the last samples, by peer."""
    kept: Any = client().hgetall(keys.PEERS_TRAFFIC_KEY)
    return {peer.decode(): row for peer, row in kept.items()}
