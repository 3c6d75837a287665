"""Shuffle poisoners: domains that answer shuffles with liars, and start one with an honest domain every round.

They break no rate. Passive views that members fill by shuffles are full of liars after some tens of rounds; links drawn from the directory
do not read what others name.
"""

from __future__ import annotations

from typing import Any, ClassVar

from eventing.overlay.links import Neighbor, NeighborReply
from eventing.overlay.machine import Chance, Id, SendMessage
from eventing.overlay.passive_view import Shuffle, ShuffleReply
from eventing.sim.liars.lying_member import Coalition, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole

NAMED = 8
"""Members of a shuffle: as many as are read."""


class ShufflePoisoner(LyingMember):
    """A domain that names liars only."""

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Start a shuffle that ends at its receiver."""
        out.append(SendMessage(self.coalition.victim(chance), Shuffle(self.me, self.coalition.some(NAMED, chance), 0)))

    def answer(self, peer: Id, message: Any, now: float, chance: Chance) -> Outputs | None:
        """Answer shuffles and requests for links with liars."""
        if type(message) is Shuffle and message.origin not in self.coalition:
            return [SendMessage(message.origin, ShuffleReply(self.coalition.some(NAMED, chance)))]
        if type(message) is Neighbor and peer not in self.coalition:
            return [SendMessage(peer, NeighborReply(False, self.coalition.some(NAMED, chance)))]
        return None


class ShufflePoisonerRole(LyingRole, frozen=True, kw_only=True):
    """Shuffle poisoners, of the passive views of the paper.

    Attributes:
        every_s: seconds between two shuffles of each.
    """

    kind: ClassVar[str] = "shuffle-poisoner"
    every_s: float = 10.0

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return ShufflePoisoner(member, coalition, self.every_s)
