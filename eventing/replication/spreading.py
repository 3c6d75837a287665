"""Spread of an RP's newest events over domains: their last vectors against each event's place in its feed."""

from __future__ import annotations

import msgspec

from eventing.conf import config
from eventing.core.decoding import json_reader, msgpack_reader
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.seals.seals import seal_read
from eventing.core.signing import Signed
from eventing.log import federated
from eventing.log.scripts import OWN
from eventing.replication.joining.presenters import replicas_shown
from eventing.rps.models import RendezvousPoint
from eventing.rps.shapes import HoldingDomain, SpreadAnswer, SpreadEvent

EVENTS_MAX = 50
"""Events in one answer; each costs a read of the log."""

_signed = msgpack_reader(Signed)


class _Envelope(msgspec.Struct):
    """The members of an event that are shown."""

    id: str
    source: str
    type: str
    time: str | None = None


_envelope = json_reader(_Envelope)


def spread(row: RendezvousPoint, *, limit: int) -> SpreadAnswer:
    """Return the newest events of an RP, at most EVENTS_MAX, the newest first, and which participants hold each.

    Raises redis.RedisError.
    """
    shown = replicas_shown(row)
    known = {one.domain: one.vector for one in shown if one.link or one.domain == config().domain}
    domains = [HoldingDomain(domain=one.domain, role=one.role, known=one.domain in known) for one in shown]
    (head,) = federated.heads([row.id])
    if head is None:
        return SpreadAnswer(domains=domains, events=[])
    own = Feed(config().domain, head.epoch).key
    origins: dict[str, str | None] = {own: config().domain}
    events: list[SpreadEvent] = []
    for offset in range(head.next - 1, max(head.first, head.next - min(limit, EVENTS_MAX)) - 1, -1):
        place = federated.feed_event_at(row.id, offset)
        if place is None:
            break  # it was trimmed meanwhile
        feed = own if place.feed_key == OWN else place.feed_key
        if feed not in origins:
            origins[feed] = _origin(row.id, feed, place.sequence)
        events.append(
            SpreadEvent.of(
                _envelope(place.body),
                offset=offset,
                cursor=str(Cursor(head.present, offset)),
                origin=origins[feed],
                sequence=place.sequence,
                held=[domain for domain, vector in known.items() if vector.get(feed, 0) >= place.sequence],
            )
        )
    return SpreadAnswer(domains=domains, events=events)


def _origin(rp: str, feed: str, sequence: int) -> str | None:
    """Return the origin of the feed, as its seal states."""
    stored = federated.seal_of(rp, feed, sequence)
    return None if stored is None else seal_read(_signed(stored.seal)).origin
