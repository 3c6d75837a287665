"""Regions: rendezvous points that the same domains share have one view of links, whatever their number. Pure.

A region is its participants; its id is a digest of their sorted names, so all participants compute the same one from the
home's statements without a message (K. Ostrowski, K. Birman, D. Dolev: Quicksilver Scalable Multicast, NCA 2008,
section 3: regions of overlap). Links within a region are made by one machine (links.py), whose candidates are the other
participants. Approved peers among them are linked anyway and are no candidates: they reduce the number of links that
are chosen beside them.

A region of MESH_MAX domains is a full mesh. In a larger one a domain chooses ln n + 1 links, less those with peers
(HyParView's fanout, DSN 2007, section 4.1), and accepts twice as many.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from eventing.overlay.drawn_candidates import DrawnCandidates
from eventing.overlay.links import LinkParameters
from eventing.overlay.machine import Chance, Id

ID_CHARS = 32
MESH_MAX = 5  # participants, this domain included
CHOSEN_MIN = 2  # links by own choice in a larger region, however many peers take part: peers may fail together
ROTATE_S = 1800.0  # guess: an accepted link of a liar is left behind by those who rotate away from it
REFUSED_S = 10.0
"""A domain that refused a link is not asked again for this long: it may not know of the admission yet."""
FAILED_S = 5.0
FAILED_S_MAX = 60.0  # bound: seconds before a participant that cannot be reached is asked again


def region_id(participants: Iterable[str]) -> str:
    """Return the id of the region of these domains."""
    return hashlib.sha256("\0".join(sorted(set(participants))).encode()).hexdigest()[:ID_CHARS]


def region_parameters(candidates: int, peers: int) -> LinkParameters:
    """Return sizes of the view of a region.

    Args:
        candidates: participants that are no peers.
        peers: participants that are approved peers.
    """
    count = candidates + peers + 1
    if count <= MESH_MAX:
        return LinkParameters(chosen=candidates, accepted=max(1, candidates))
    fanout = math.ceil(math.log(count)) + 1
    chosen = min(candidates, max(CHOSEN_MIN, fanout - peers))
    return LinkParameters(chosen=chosen, accepted=2 * fanout, group_max=max(1, fanout // 2), rotate_s=ROTATE_S)


class RegionCandidates(DrawnCandidates):
    """The other participants of a region that are no peers, as candidates for links.

    Args:
        members: their names, with the group of each that may fail or lie together (its sponsor).
    """

    def __init__(self, members: Mapping[Id, Any]) -> None:
        super().__init__(REFUSED_S, FAILED_S, FAILED_S_MAX)
        self.members = dict(members)

    def draw(self, count: int, but: Iterable[Id], now: float, chance: Chance, *, only_paired: bool = False) -> list[Id]:
        """Up to `count` members, each with the same probability."""
        not_these = set(but)
        free = [member for member in self.members if member not in not_these and self.is_free(member, now)]
        return chance.sample(free, min(len(free), count))

    def paired(self, asker: Id, now: float) -> bool:
        """All members have a place: the home admitted each of them."""
        return True

    def group(self, peer: Id) -> Any:
        """The member's sponsor; itself where that is unknown."""
        return self.members.get(peer) or peer

    def group_share(self, peer: Id) -> float:
        """The share of the member's group in the region."""
        group = self.group(peer)
        return sum(1 for member in self.members if self.group(member) == group) / max(1, len(self.members))

    def is_candidate(self, peer: Id) -> bool:
        """Return True if a domain takes part, so that no more are remembered than do."""
        return peer in self.members
