"""Which domains hold the newest events of an RP: by the vectors that they said last, against each event's place in its feed."""

from __future__ import annotations

from typing import Any

import msgspec

from eventing.conf import config
from eventing.core.decoding import json_reader, msgpack_reader
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.seals.seals import seal_read
from eventing.core.signing import Signed
from eventing.log import federated
from eventing.log.federated import OWN
from eventing.replication.joining.presenters import replicas_shown
from eventing.rps.models import RendezvousPoint

EVENTS_MAX = 50
"""Events that are looked up in one answer; each costs a look into the log."""

_signed = msgpack_reader(Signed)


class _Envelope(msgspec.Struct):
    """What is shown of an event."""

    id: str
    source: str
    type: str
    time: str | None = None


_envelope = json_reader(_Envelope)


def spread(row: RendezvousPoint, *, limit: int) -> dict[str, Any]:
    """The newest events of an RP, at most EVENTS_MAX, the newest first, and which participants hold each. Raises redis.RedisError.

    `domains` are the participants, each with `held`: whether anything is known of what it holds. Each of `events` is
    `offset`, `cursor`, `id`, `source`, `type`, `time`, `origin` (null where its seal has left), `sequence`, `held` (the
    names of the domains that have it).
    """
    shown = replicas_shown(row)
    known = {one["domain"]: one["vector"] for one in shown if one["link"] or one["domain"] == config().domain}
    domains = [{"domain": one["domain"], "role": one["role"], "known": one["domain"] in known} for one in shown]
    (head,) = federated.heads([row.id])
    if head is None:
        return {"domains": domains, "events": []}
    own = Feed(config().domain, head.epoch).key
    origins: dict[str, str | None] = {own: config().domain}
    events: list[dict[str, Any]] = []
    for offset in range(head.next - 1, max(head.first, head.next - min(limit, EVENTS_MAX)) - 1, -1):
        place = federated.place_of(row.id, offset)
        if place is None:
            break  # it has left the history meanwhile
        feed = own if place.feed_key == OWN else place.feed_key
        if feed not in origins:
            origins[feed] = _origin(row.id, feed, place.sequence)
        held = [domain for domain, vector in known.items() if vector.get(feed, 0) >= place.sequence]
        about = msgspec.structs.asdict(_envelope(place.body))
        at = {"offset": offset, "cursor": str(Cursor(head.epoch, offset)), **about}
        events.append({**at, "origin": origins[feed], "sequence": place.sequence, "held": held})
    return {"domains": domains, "events": events}


def _origin(rp: str, feed: str, sequence: int) -> str | None:
    """The domain whose feed it is, as its seal says."""
    stored = federated.seal_of(rp, feed, sequence)
    return None if stored is None else seal_read(_signed(stored.seal)).origin
