"""Where one event of an RP came from and where it is: its origin, the domains it came through, and which hold it now."""

from __future__ import annotations

from typing import Any

from eventing.conf import config
from eventing.core.decoding import msgpack_reader
from eventing.core.events.feeds import Feed
from eventing.core.seals.seals import seal_read
from eventing.core.signing import Signed
from eventing.log import federated
from eventing.log.federated import OWN
from eventing.log.ranges import Entry
from eventing.replication.joining.presenters import replicas_shown
from eventing.rps.models import RendezvousPoint

_signed = msgpack_reader(Signed)


def whereabouts(row: RendezvousPoint, epoch: str, entry: Entry) -> dict[str, Any]:
    """What is known here of an event of the RP `row`. Raises redis.RedisError.

    Args:
        epoch: of the log.
        entry: the event, as the log has it.

    Returns `feed` (its key), `sequence`, `origin` (the domain whose feed it is; null where its seal has left), `sealed`
    (whether a seal covers it, so that it can be proved), `carriers` (the domains that it came through, the origin first, as
    they said; this domain, which has it now, is not among them) and `domains`: the participants, each `domain`, `role`,
    `link`, `backlog` as replicas_shown says, and `held`: whether it has the event by what it said last, null while unknown.
    """
    own = entry.feed_key == OWN
    feed = Feed(config().domain, epoch).key if own else entry.feed_key
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


def _participant(shown: dict[str, Any], feed: str, sequence: int) -> dict[str, Any]:
    known = shown["link"] is not None or shown["domain"] == config().domain
    held = shown["vector"].get(feed, 0) >= sequence if known else None
    return {**{name: shown[name] for name in ("domain", "role", "link", "backlog")}, "held": held}
