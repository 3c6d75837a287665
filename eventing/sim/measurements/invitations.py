"""Invitations as volunteers took them: what they hold by them, and what their policies should have refused."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from eventing.operations.placement.rules.invitations import contradictions
from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values
from eventing.sim.placement.messages import FAMOUS
from eventing.sim.placement.volunteer import Volunteer


class InvitationsMeasured(Measurement, frozen=True, kw_only=True):
    """A table `[[measurements]]` of kind invitations."""

    kind: ClassVar[str] = "invitations"

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return InvitationsProbe(run)


class InvitationsProbe:
    """Present holdings of volunteers."""

    def __init__(self, run: SimulationContext) -> None:
        self._run = run

    def sample(self) -> Values:
        """Values now."""
        volunteers = [one for one in self._run.population.members if isinstance(one, Volunteer)]
        of_homes = [Counter(home for home, _ in one.held) for one in volunteers]
        refused: Counter[str] = Counter()
        for one in volunteers:
            refused.update(one.refused)
        contradictory = [one for one in volunteers if contradictions(one.policy)]
        return {
            "held_max": float(max((len(one.held) for one in volunteers), default=0)),
            "of_one_home_max": float(max((max(of.values()) for of in of_homes if of), default=0)),
            "refused": float(refused.total()),
            "refused_too_many": float(refused["too-many"]),
            "contradictory": float(len(contradictory)),
            "against_policy": float(sum(1 for one in contradictory if (0, FAMOUS) in one.held)),
        }

    def summary(self) -> Values:
        """Values at the end."""
        return self.sample()
