"""Effects of scores and suspicions in replication: eager links become lazy, and domains are not chosen for links."""

from __future__ import annotations

import time
from typing import NamedTuple

from django.utils import timezone

from eventing.conf import config
from eventing.core.container import per_process
from eventing.log import federated, watermarks
from eventing.membership.rules.observations import LINK
from eventing.membership.selectors.picture import picture_read
from eventing.overlay import broadcast
from eventing.overlay.link_state import Link
from eventing.replication.forwarding.inbound import vector_of
from eventing.replication.selectors.forwarding import participations
from eventing.replication.selectors.regions import region_of
from eventing.replication.selectors.replicas import links_of_peer

READ_S = 3.0
DEMOTE_S = 30.0
"""Between two demotions of the same links: what no other link delivers is grafted by them meanwhile."""


class Avoided(NamedTuple):
    """Domains with an effect in force, as pairs of region and name; the region LINK is every one.

    Attributes:
        suspected: names.
    """

    demoted: frozenset[tuple[str, str]] = frozenset()
    not_chosen: frozenset[tuple[str, str]] = frozenset()
    condemned: frozenset[tuple[str, str]] = frozenset()
    suspected: frozenset[str] = frozenset()

    def chooses(self, region: str, name: str) -> bool:
        """Return True if the domain may be chosen in a region."""
        effects = self.not_chosen | self.condemned
        return name not in self.suspected and (region, name) not in effects and (LINK, name) not in effects

    def condemns(self, name: str) -> bool:
        """Return True if the domain gets no link at all."""
        return any(one == name for _, one in self.condemned)


NOBODY_AVOIDED = Avoided()


class _Effects:
    """Readings of the last turn, and times of demotions of links."""

    def __init__(self) -> None:
        self.read_at = self.demoted_at = float("-inf")
        self.avoided = NOBODY_AVOIDED


_effects = per_process(_Effects)


def avoided() -> Avoided:
    """Return the domains with an effect in force, at most READ_S old; nobody where no process runs the overlay."""
    held, now = _effects(), time.monotonic()
    if now - held.read_at >= READ_S:
        held.read_at = now
        picture = picture_read()
        held.avoided = NOBODY_AVOIDED
        if picture is not None and (picture.scores or picture.suspected):
            pairs = {
                effect: frozenset((one.region, one.peer) for one in picture.scores if effect in one.effects)
                for effect in ("demoted", "not-chosen", "condemned")
            }
            suspected = frozenset(one.domain for one in picture.suspected)
            held.avoided = Avoided(pairs["demoted"], pairs["not-chosen"], pairs["condemned"], suspected)
    return held.avoided


def links_demote() -> int:
    """Make the eager links with demoted domains lazy, if it is time. Returns how many. Raises redis.RedisError."""
    held, now = _effects(), time.monotonic()
    found = avoided()
    if now - held.demoted_at < DEMOTE_S or not (found.demoted or found.suspected):
        return 0
    held.demoted_at = now
    regions: dict[str, set[str]] = {name: {LINK} for name in found.suspected}
    for region, name in found.demoted:
        regions.setdefault(name, set()).add(region)
    return sum(_demote(name, regions[name]) for name in sorted(regions))


def _demote(peer: str, regions: set[str]) -> int:
    at, own = timezone.now(), config().domain
    rps = links_of_peer(peer)
    who = participations(rps)
    some = [rp for rp in rps if LINK in regions or region_of(who[rp], at) in regions]
    heads = dict(zip(some, federated.heads(some), strict=True))
    changed = 0

    def change(rp: str, link: Link) -> Link:
        nonlocal changed
        head = heads[rp]
        ours = {} if head is None else vector_of(own, head)
        lazy = broadcast.demoted(link, ours)
        changed += lazy.tree != link.tree
        return lazy

    watermarks.links_change(peer, some, change)
    return changed
