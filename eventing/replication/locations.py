"""Location of one event of an RP: its origin, the domains that carried it, and the domains that hold it now."""

from __future__ import annotations

from typing import Any

from eventing.conf import config
from eventing.core.decoding import msgpack_reader
from eventing.core.events.feeds import Feed
from eventing.core.events.lineage import root_epoch
from eventing.core.seals.seals import seal_read
from eventing.core.signing import Signed
from eventing.log import federated
from eventing.log.ranges import LogEntry
from eventing.log.scripts import OWN
from eventing.replication.joining.presenters import replicas_shown
from eventing.rps.models import RendezvousPoint
from eventing.rps.shapes import ParticipantAnswer

_signed = msgpack_reader(Signed)


def replica_locations(row: RendezvousPoint, epoch: str, entry: LogEntry) -> dict[str, Any]:
    """Return the known locations of an event of the RP `row`. Raises redis.RedisError.

    Args:
        epoch: of cursors of the log.
        entry: the event, as in the log.

    Returns `feed` (its key), `sequence`, `origin` (the feed's origin; null after its seal was trimmed), `sealed`
    (whether a seal covers it, so that it can be proved), `carriers` (the domains that carried it, the origin first, as
    they stated; this domain, which has it now, is not included) and `domains`: the participants, each with `domain`,
    `role`, `link`, `backlog` as in replicas_shown, and `held`: whether it has the event by its last vector, null while
    unknown.
    """
    own = entry.feed_key == OWN
    feed = Feed(config().domain, root_epoch(epoch)).key if own else entry.feed_key
    seal = federated.seal_of(row.id, feed, entry.sequence)
    signer = None if seal is None else seal_read(_signed(seal.seal)).origin
    return {
        "feed": feed,
        "sequence": entry.sequence,
        "origin": config().domain if own else signer,
        "sealed": seal is not None,
        "carriers": list(seal.path) if seal is not None else [],
        "domains": [_participant(one, feed, entry.sequence) for one in replicas_shown(row)],
    }


def _participant(shown: ParticipantAnswer, feed: str, sequence: int) -> dict[str, Any]:
    known = shown.link is not None or shown.domain == config().domain
    held = shown.vector.get(feed, 0) >= sequence if known else None
    return {"domain": shown.domain, "role": shown.role, "link": shown.link, "backlog": shown.backlog, "held": held}
