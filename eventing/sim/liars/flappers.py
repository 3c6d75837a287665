"""Flappers: domains that make links and end them at once, so that the other side is never done with repairs."""

from __future__ import annotations

from typing import Any, ClassVar

from eventing.overlay.links import Disconnect, Neighbor, NeighborReply, Reason
from eventing.overlay.machine import Chance, SendMessage
from eventing.sim.liars.lying_member import Coalition, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole

REASONS = tuple(Reason)


class Flapper(LyingMember):
    """A domain that asks for links, accepts and ends them, all in one second."""

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Send a whole life of a link to one domain, and end one of the own links."""
        victim = self.coalition.victim(chance)
        ended = Disconnect(chance.choice(REASONS), self.coalition.some(4, chance))
        out += [
            SendMessage(victim, Neighbor(True)),
            SendMessage(victim, NeighborReply(True)),
            SendMessage(victim, ended),
        ]
        if self.links.active:
            out.append(SendMessage(chance.choice(list(self.links.active)), ended))


class FlapperRole(LyingRole, frozen=True, kw_only=True):
    """Flappers."""

    kind: ClassVar[str] = "flapper"

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return Flapper(member, coalition)
