"""A member of the overlay with all machines: links, directory, liveness, gossip, suspicion, aggregates, scores.

`OverlayMember` takes the latter four as options, so that runs with the papers' parameters leave them out. This module makes the usual
one, over the directory as it is at any time: rings of monitors and zones are made anew every epoch, every RING_S, and when many domains
have joined or left since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eventing.overlay import gossip_objects, links
from eventing.overlay.aggregates import Aggregates
from eventing.overlay.directory import DomainDirectory
from eventing.overlay.directory_candidates import DirectoryCandidates
from eventing.overlay.gossip import Gossip
from eventing.overlay.gossip_object import GossipObject, SignedRow
from eventing.overlay.links import LinkParameters
from eventing.overlay.load_rows import LoadSample, LoadTotals
from eventing.overlay.machine import Id
from eventing.overlay.member import OverlayMember
from eventing.overlay.monitors import MonitorRing, epoch_of
from eventing.overlay.scores import Scores
from eventing.overlay.suspicion import RING_S, Suspicion
from eventing.overlay.suspicion_rows import Accusations, Rebuttals
from eventing.overlay.zone_index import ZoneIndex

GROWTH = 0.02
"""Share of the domains that must have joined or left until rings and zones are made anew before their time: in a small federation one,
and in one of 10,000 so many that making them stays cheap."""


def whole_member(
    me: Id,
    directory: DomainDirectory,
    *,
    issue: Callable[[str, int, int, bytes], SignedRow],
    genuine: Callable[[str, SignedRow], bool],
    key_hash: Callable[[Id], int],
    objects: Sequence[GossipObject] = (),
    parameters: LinkParameters = links.SUSPICIOUS,
    anchors: frozenset[Id] = frozenset(),
    started_s: float = 0.0,
) -> OverlayMember:
    """Make a member with all machines.

    Args:
        issue: makes an own row: (object, version, expires_s, payload) -> signed row.
        genuine: whether a row of an object is signed by its owner.
        key_hash: 64 well-mixed bits of a domain's name, the same at every domain.
        objects: gossip objects beside those of `gossip_objects.ALL`.
        anchors: approved peers.
        started_s: wall clock, in seconds since 1970, at time 0 of `now`.
    """
    zones = DirectoryZones(directory, key_hash, started_s)
    own: list[GossipObject] = [
        kind(zones) if issubclass(kind, LoadSample | LoadTotals) else kind() for kind in gossip_objects.ALL
    ]
    gossips = Gossip(
        me,
        [*own, *objects],
        issue=issue,
        genuine=genuine,
        known=lambda domain: directory.record(domain) is not None,
        key_hash=key_hash,
        started_s=started_s,
    )
    sets = gossips.sets
    suspects = Suspicion(
        me,
        sets[Accusations.name],
        sets[Rebuttals.name],
        ring=lambda epoch: MonitorRing(_callable(directory), epoch, key_hash),
        group=DirectoryCandidates(directory).group,
        started_s=started_s,
    )
    suspects.ring_outdated = DirectoryGrowth(directory)
    aggregating = Aggregates(me, sets, index=zones, suspected=suspects.suspected, started_s=started_s)
    return OverlayMember(
        me,
        directory,
        parameters,
        anchors,
        gossips=gossips,
        suspects=suspects,
        scoring=Scores(),
        aggregating=aggregating,
        zone_of=zones.zone_of,
    )


class DirectoryGrowth:
    """Tells when a directory has changed by more than GROWTH since the last time that it did."""

    def __init__(self, directory: DomainDirectory) -> None:
        self._directory = directory
        self._count = 0

    def __call__(self) -> bool:
        """Return True if the directory has so many domains more, or fewer, than when this was True last."""
        changed = abs(self._directory.count - self._count)
        if not changed or changed < GROWTH * self._count:
            return False
        self._count = self._directory.count
        return True


class DirectoryZones:
    """Zones of a directory, made anew every epoch, every RING_S, and when the directory has grown."""

    def __init__(self, directory: DomainDirectory, key_hash: Callable[[Id], int], started_s: float) -> None:
        self._directory = directory
        self._key_hash = key_hash
        self._started_s = started_s
        self._made: tuple[int, int] | None = None
        self._index = ZoneIndex((), 0, key_hash)
        self._grown = DirectoryGrowth(directory)

    def zone_of(self, domain: Id) -> str | None:
        """Return the zone that a domain was counted in when the zones were made last; None for unknown domains."""
        return self._index.zone_of(domain)

    def __call__(self, now: float) -> ZoneIndex:
        """Return the zones at a time."""
        wanted = (epoch_of(self._started_s + now), int(now // RING_S))
        if wanted != self._made or self._grown():
            records = (self._directory.record(domain) for domain in self._directory.domains())
            self._index = ZoneIndex((one for one in records if one is not None), wanted[0], self._key_hash)
            self._made = wanted
        return self._index


def _callable(directory: DomainDirectory) -> list[Id]:
    """Domains that can be called: the others cannot be asked for signs of life, and do not observe."""
    records = (directory.record(domain) for domain in directory.domains())
    return [record.domain for record in records if record is not None and record.url]
