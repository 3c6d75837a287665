"""Equivocators: domains that show two sides different records of one version."""

from __future__ import annotations

from typing import Any, ClassVar

from eventing.overlay.directory_messages import Records
from eventing.overlay.machine import Chance, SendMessage
from eventing.overlay.member import OverlayMember
from eventing.sim.liars.lying_member import Coalition, Lied, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole


class Equivocator(LyingMember):
    """A domain that shows its links one record and some other domains another.

    Args:
        begin_s: when it begins.
        told: domains that receive the other record.

    Attributes:
        began: when it sent the two records; None: not yet.
    """

    def __init__(self, member: OverlayMember, coalition: Coalition, *, begin_s: float = 60.0, told: int = 3) -> None:
        super().__init__(member, coalition, 1.0)
        self.begin_s = begin_s
        self.told = told
        self.began: float | None = None

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Send two records of one version, once."""
        if self.began is not None or now < self.begin_s:
            return
        self.began = now
        out.append(Lied("equivocation"))
        one = self.record(now)
        other = self.record(now, url="https://other.example")
        out.extend(SendMessage(peer, Records((one,))) for peer in self.links.active)
        for _ in range(self.told):
            out.append(SendMessage(self.coalition.victim(chance), Records((other,))))


class EquivocatorRole(LyingRole, frozen=True, kw_only=True):
    """Equivocators.

    Attributes:
        begin_s: seconds from the beginning of the world.
        told: domains beside its links that are shown the other record.
    """

    kind: ClassVar[str] = "equivocator"
    begin_s: float = 60.0
    told: int = 3

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return Equivocator(member, coalition, begin_s=self.begin_s, told=self.told)
