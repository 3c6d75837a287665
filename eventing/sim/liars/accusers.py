"""Accusers: monitors that accuse domains which answer, by intent or because they are half-detached themselves."""

from __future__ import annotations

from typing import Any, ClassVar

from eventing.overlay.gossip import Contribute
from eventing.overlay.machine import Chance, Id
from eventing.overlay.monitors import MonitorRing, epoch_of
from eventing.overlay.suspicion_rows import ACCUSED_MAX, Accusations, Rebuttals, accusation_payload
from eventing.sim.context import SimulationContext
from eventing.sim.errors import ScenarioError
from eventing.sim.federation import STARTED_S, mixed
from eventing.sim.liars.lying_member import Coalition, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole
from eventing.sim.scenario import Share

ACCUSE_S = 20.0
"""Between two rows of accusations: what a domain has rebutted is accused anew at once."""


class Accuser(LyingMember):
    """A monitor that accuses all honest domains which it observes, a few at a time, and again after each rebuttal.

    A coalition accuses the same ones, so that as many of their monitors as it has agree.
    """

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """State the accusations of the present round."""
        ring = MonitorRing(self.directory.domains(), epoch_of(STARTED_S + now), mixed)
        targets = sorted(one for one in ring.targets(self.me) if one not in self.coalition)
        first = int(now // 120.0) * ACCUSED_MAX % max(1, len(targets))
        named = (targets[first:] + targets[:first])[:ACCUSED_MAX]
        rebuttals = self.member.gossip.sets[Rebuttals.name].rows if self.member.gossip is not None else {}
        accused = tuple((one, rebuttals[one].version if one in rebuttals else 0) for one in sorted(named))
        out += self.member.handle(Contribute(Accusations.name, accusation_payload(accused)), now, chance)


class HalfDetached(LyingMember):
    """An honest domain that most of what is sent to it does not reach, so that all others look silent to it.

    Args:
        lost: share of the messages to it that are lost.
    """

    def __init__(self, member: Any, coalition: Coalition, lost: float) -> None:
        super().__init__(member, coalition, 60.0)
        self.lost = lost

    def answer(self, peer: Id, message: Any, now: float, chance: Chance) -> Outputs | None:
        """Lose a message."""
        return [] if chance.random() < self.lost else None


class _SuspectingRole(LyingRole, frozen=True, kw_only=True):
    """A role that needs suspicion."""

    def prepare(self, run: SimulationContext, coalition: Coalition) -> None:
        """Refuse a world without."""
        if not run.scenario.suspicion:
            raise ScenarioError(f"{run.scenario.name}: the role {self.kind!r} needs suspicion = true")


class AccuserRole(_SuspectingRole, frozen=True, kw_only=True):
    """Accusers."""

    kind: ClassVar[str] = "accuser"

    def liar(self, member: Any, coalition: Coalition) -> Accuser:
        """Make one."""
        return Accuser(member, coalition, ACCUSE_S)


class HalfDetachedRole(_SuspectingRole, frozen=True, kw_only=True):
    """Half-detached domains.

    Attributes:
        lost: share of the messages to them that are lost.
    """

    kind: ClassVar[str] = "half-detached"
    lost: Share = 0.9

    def liar(self, member: Any, coalition: Coalition) -> HalfDetached:
        """Make one."""
        return HalfDetached(member, coalition, self.lost)
