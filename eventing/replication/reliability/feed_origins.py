"""Origins of the feeds of an RP: this domain's own, and others' as their newest seals state them."""

from __future__ import annotations

from collections import OrderedDict

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.events.feeds import Feed
from eventing.core.seals.seals import seal_read
from eventing.log import federated
from eventing.log.federated_bulk import newest_seals
from eventing.replication.forwarding.fork_detection import signed_read

ORIGINS_MAX = 8192  # bound: feeds whose origins a process remembers; the first are read again


@per_process
def _origins() -> OrderedDict[tuple[str, str], str]:
    """Origins by RP and feed: a feed has one origin for ever."""
    return OrderedDict()


def feed_origins(rp: str) -> dict[str, str]:
    """Return the origin of each feed held here, by feed; feeds whose seals have left the history are left out. Raises
    redis.RedisError."""
    (head,) = federated.heads([rp])
    if head is None:
        return {}
    held = _origins()
    unknown = [feed for feed in head.foreign if (rp, feed) not in held]
    for feed, seal in zip(unknown, newest_seals([(rp, feed) for feed in unknown]), strict=True):
        if seal is not None:
            held[rp, feed] = seal_read(signed_read(seal)).origin
    while len(held) > ORIGINS_MAX:
        held.popitem(last=False)
    found = {feed: held[rp, feed] for feed in head.foreign if (rp, feed) in held}
    return {**found, Feed(config().domain, head.epoch).key: config().domain}
