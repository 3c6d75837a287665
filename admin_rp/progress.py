"""How far readers and replicas are: the lags of durable subscriptions, and the vectors of replicas.

For snapshots, and for the samples of RPs whose administrative RP somebody reads. Synchronous: it runs in a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from eventing.conf import config
from eventing.core.events import vectors
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.events.positions import LogState
from eventing.federation.runs import watermarks
from eventing.log import control, federated, keys
from eventing.selectors.rps.replicas import links_of_rps
from eventing.services.administrative_events import timestamp

Lag = dict[str, Any]
"""events, oldest_at, acknowledged of one durable subscription (kinds/subscriptions.py)."""

CURSORS_MAX = 10_000
"""Durable subscriptions of an RP (HERALD_SUBSCRIPTIONS_PER_RP_MAX); beyond it lags are not looked at. In a gateway, so many a
turn are looked at: some 50 ms of a thread's."""

OLDEST_MAX = 100
"""Subscriptions of an RP, the furthest behind, whose oldest event is looked up: one read of Redis each."""


def affordable(rps: Sequence[str]) -> int:
    """How many of these, from the first one, have CURSORS_MAX cursors together at most; the first one in any case.

    Raises redis.RedisError.
    """
    pipeline = control.client().pipeline(transaction=False)
    for rp in rps:
        pipeline.hlen(keys.cursors_key(rp))
    held = list(accumulate(pipeline.execute()))
    return sum(at == 0 or count <= CURSORS_MAX for at, count in enumerate(held))


def lags(rps: Sequence[str]) -> dict[str, dict[str, Lag]]:
    """Per RP, the lag of each durable subscription that has a cursor. Three round trips. Raises redis.RedisError.

    A cursor of an epoch that ended lags by all that the log holds.
    """
    client = control.client()
    states = dict(zip(rps, control.log_states(rps), strict=True))
    pipeline = client.pipeline(transaction=False)
    for rp in rps:
        pipeline.hlen(keys.cursors_key(rp))
    some = [rp for rp, count in zip(rps, pipeline.execute(), strict=True) if 0 < count <= CURSORS_MAX and states[rp]]
    pipeline = client.pipeline(transaction=False)
    for rp in some:
        pipeline.hgetall(keys.cursors_key(rp))
    found = {rp: _lags(cursors, states[rp]) for rp, cursors in zip(some, pipeline.execute(), strict=True)}
    _date(found, states)
    return found


def _lags(cursors: Mapping[bytes, bytes], state: LogState | None) -> dict[str, Lag]:
    assert state is not None  # noqa: S101 - only RPs with a log are asked for
    made: dict[str, Lag] = {}
    for subscription, text in cursors.items():
        cursor = Cursor.parse(text.decode())
        after = cursor.offset if cursor.epoch == state.epoch else 0
        made[subscription.decode()] = {
            "events": state.next - max(state.first, after + 1),
            "oldest_at": None,
            "acknowledged": str(cursor.place),
        }
    return made


def _date(found: Mapping[str, Mapping[str, Lag]], states: Mapping[str, LogState | None]) -> None:
    """Say since when the oldest unacknowledged event is stored."""
    asked: list[Lag] = []
    pipeline = control.client().pipeline(transaction=False)
    for rp, lagging in found.items():
        state = states[rp]
        behind = sorted((lag for lag in lagging.values() if lag["events"]), key=lambda lag: -lag["events"])
        for lag in behind[:OLDEST_MAX]:
            assert state is not None  # noqa: S101 - it has lags
            pipeline.xrange(keys.log_keys(rp)[0], state.next - lag["events"], "+", count=1)
            asked.append(lag)
    for lag, entries in zip(asked, pipeline.execute(), strict=True):
        if entries:
            stored_ms = int(entries[0][0].decode().partition("-")[2])
            lag["oldest_at"] = timestamp(datetime.fromtimestamp(stored_ms / 1000, UTC))


def replicas(rps: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Per RP that is linked with peers, and per domain: `vector` and `behind`, as far as this domain knows them.

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
