"""Comparison of links, once a LOOK_S: what the peers of each region hold of what is new, and which of them do not take what waits.

A peer that lacks what the others of its region have delivered to this domain has a deficit (overlay/scores.py: VectorsShown); one whose
backlog is long and old, though it answers, is slow (QueuesFull).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta

from django.utils import timezone

from eventing.conf import config
from eventing.core.container import per_process
from eventing.log import federated, watermarks
from eventing.membership.rules.observations import LINK, QueuesObserved, VectorsObserved
from eventing.membership.services.observations import observed
from eventing.overlay.scores import LINKS_MIN, LOOK_S
from eventing.peering.models import Acquaintance, PeerDelivery
from eventing.peering.selectors.partners import partners
from eventing.replication.forwarding.inbound import vector_of
from eventing.replication.selectors.forwarding import participations
from eventing.replication.selectors.regions import region_of
from eventing.replication.selectors.replicas import links_of_peer

COMPARED_RPS = 32  # bound: rendezvous points compared in one look; the next ones are compared in the next look
QUEUE_EVENTS = 1000
"""Events that must wait for a peer for its queue to be full (guess: what one request carries)."""
QUEUE_S = 30.0
"""Seconds that the oldest of them must have waited."""


class _Looks:
    """Time of the last comparison of this process, and the start of its next page of rendezvous points."""

    def __init__(self) -> None:
        self.at = float("-inf")
        self.after = ""


_looks = per_process(_Looks)


def links_compare() -> None:
    """Show the process of the overlay what the links hold and take, if it is time. Raises redis.RedisError."""
    looks, now = _looks(), time.monotonic()
    if now - looks.at < LOOK_S:
        return
    looks.at = now
    names = [one.name for one in partners()]
    if not names:
        return
    observed([*_vectors(names, looks), _queues(len(names))])


def _vectors(names: list[str], looks: _Looks) -> list[VectorsObserved]:
    rps = links_of_peer(names[0], after=looks.after)[:COMPARED_RPS]
    for name in names[1:]:
        rps += [rp for rp in links_of_peer(name, after=looks.after)[:COMPARED_RPS] if rp not in rps]
    rps = sorted(rps)[:COMPARED_RPS]
    looks.after = rps[-1] if len(rps) == COMPARED_RPS else ""
    if not rps:
        return []
    at = timezone.now()
    who = {rp: one for rp, one in participations(rps).items() if len(one.links) >= LINKS_MIN}
    heads = dict(zip(rps, federated.heads(rps), strict=True))
    found: dict[str, VectorsObserved] = {}
    links = {name: watermarks.links_read(name, list(who)) for name in names} if who else {}
    for rp, one in who.items():
        head = heads[rp]
        if head is None:
            continue
        region = region_of(one, at)
        shown = found.setdefault(region, VectorsObserved(region, {}, {}, {}))
        ours = vector_of(config().domain, head)
        shown.ours.update(_named(rp, ours))
        for name in one.links:
            link = links.get(name, {}).get(rp)
            if link is not None and link.met:
                lazy = ours.keys() <= link.tree.lazy
                kind = shown.others if lazy and name not in shown.theirs else shown.theirs
                kind.setdefault(name, {}).update(_named(rp, link.theirs))
    for shown in found.values():  # a peer that is eager anywhere in the region is compared as such
        for name in list(shown.others):
            if name in shown.theirs:
                shown.theirs[name].update(shown.others.pop(name))
    return list(found.values())


def _named(rp: str, vector: Mapping[str, int]) -> dict[str, int]:
    return {f"{rp} {feed}": last for feed, last in vector.items()}


def _queues(links: int) -> QueuesObserved:
    since = timezone.now() - timedelta(seconds=QUEUE_S)
    full: list[str] = []
    for rows, name in ((PeerDelivery, "peer_id"), (Acquaintance, "name")):
        waiting = rows.objects.filter(failures=0, backlog__gte=QUEUE_EVENTS, oldest_at__lt=since)
        full += waiting.order_by(name).values_list(name, flat=True)
    return QueuesObserved(tuple((LINK, name) for name in full), links)
