"""Progress of readers and replicas: the lags of durable subscriptions, and the vectors of replicas.

For snapshots, and for the samples of watched RPs. Synchronous: runs in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from eventing.conf import config
from eventing.core.events import vectors
from eventing.core.events.feeds import Feed
from eventing.core.timestamps import timestamp
from eventing.log import control, federated, watermarks
from eventing.log.lags import lags as read_lags
from eventing.replication.selectors.replicas import links_of_rps
from eventing.subscriptions.selectors.losses import asked_at

Lag = dict[str, Any]
"""Members events, lost, oldest_at, acknowledged of one durable subscription (subscriptions/events.py)."""

CURSORS_MAX = 10_000
"""Durable subscriptions of an RP (HERALD_SUBSCRIPTIONS_PER_RP_MAX); beyond it lags are not read. In a gateway, the most
in a turn: some 50 ms of a thread's time.
"""


def affordable(rps: Sequence[str]) -> int:
    """Return how many of these RPs, from the first, have CURSORS_MAX cursors together at most; at least one.

    Raises redis.RedisError.
    """
    held = accumulate(control.subscription_counts(rps))
    return sum(at == 0 or count <= CURSORS_MAX for at, count in enumerate(held))


def lags(rps: Sequence[str]) -> dict[str, dict[str, Lag]]:
    """Return per RP the lag of each durable subscription. RPs beyond CURSORS_MAX subscriptions in all are left out, by
    id.

    A cursor of an earlier epoch lags by all events that the log received since. Raises redis.RedisError.
    """
    asked = asked_at(rps, CURSORS_MAX + 1)
    beyond = asked[-1].rp if len(asked) > CURSORS_MAX else None
    made: dict[str, dict[str, Lag]] = {rp: {} for rp in rps if beyond is None or rp < beyond}
    asked = [one for one in asked if one.rp in made]
    for one, found in zip(asked, read_lags(asked), strict=True):
        made[one.rp][one.id] = {
            "events": found.lag.events,
            "lost": found.lag.lost,
            "oldest_at": None if found.oldest_ms is None else _moment(found.oldest_ms),
            "acknowledged": str(found.cursor.place),
        }
    return made


def _moment(at_ms: int) -> str:
    return timestamp(datetime.fromtimestamp(at_ms / 1000, UTC))


def replicas(rps: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return per RP that is linked with peers, and per domain: `vector` and `behind`, as far as known here.

    Raises redis.RedisError.
    """
    me = config().domain
    linked = links_of_rps(rps)
    shared = [rp for rp in rps if rp in linked]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    known = {
        peer: watermarks.links_read(peer, shared) for peer in sorted({one for of in linked.values() for one in of})
    }
    for rp, head in zip(shared, federated.heads(shared), strict=True):
        if head is None:
            continue
        held = {**head.foreign, Feed(me, head.epoch).key: head.own}
        found[rp] = {me: {"vector": held, "behind": 0}}
        for peer in linked[rp]:
            link = known[peer][rp]
            behind = vectors.distance(link.theirs, held) if link.met else None
            found[rp][peer] = {"vector": dict(link.theirs), "behind": behind}
    return found
