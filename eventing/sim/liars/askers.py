"""Askers: domains that state an empty directory and ask everybody for all of it, again and again."""

from __future__ import annotations

from typing import Any, ClassVar

from eventing.overlay.directory_messages import Compare, RangeEntries, Records, Want
from eventing.overlay.machine import Chance, Id, SendMessage
from eventing.sim.liars.lying_member import Coalition, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole

RANGES = tuple(range(256))


class Asker(LyingMember):
    """A domain that never learns."""

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Ask a domain for everything in each way that there is."""
        victim = self.coalition.victim(chance)
        out.append(SendMessage(victim, Compare(((0, 0),))))
        out.append(SendMessage(victim, RangeEntries(RANGES, ())))
        out.append(SendMessage(victim, Want(tuple(range(min(512, self.coalition.count))))))

    def answer(self, peer: Id, message: Any, now: float, chance: Chance) -> Outputs | None:
        """Forget what was sent, and go on asking."""
        if type(message) is Records:
            return []
        if type(message) is Compare:
            return [SendMessage(peer, Compare(tuple((of, 0) for of, _ in message.ranges)))]
        return None


class AskerRole(LyingRole, frozen=True, kw_only=True):
    """Askers.

    Attributes:
        every_s: seconds between two questions of each.
    """

    kind: ClassVar[str] = "asker"
    every_s: float = 1.0

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return Asker(member, coalition, self.every_s)
