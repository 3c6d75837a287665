"""The planner's process killed at every step, each time at another place: before the step is stored, after it, after one invitation, and so on."""

from __future__ import annotations

from typing import Any, ClassVar

from eventing.overlay.machine import Chance
from eventing.sim.context import SimulationContext
from eventing.sim.faults import Fault
from eventing.sim.placement.home import PlacementHome
from eventing.sim.placement.messages import HomeLoad, PlacementChanged


class KilledPlanner:
    """A home whose process is killed at each step.

    Args:
        home: the machine.
        kills: one number, shared by all processes of a run: how often one was killed.
    """

    def __init__(self, run: SimulationContext, home: PlacementHome, kills: list[int]) -> None:
        self._run = run
        self._home = home
        self._kills = kills

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        """Have the home handle an input; of a step, only a part leaves the process."""
        if not isinstance(given, HomeLoad):
            return self._home.handle(given, now, chance)
        before = self._home.stored()
        out = self._home.handle(given, now, chance)
        step = next((place for place, one in enumerate(out) if isinstance(one, PlacementChanged)), None)
        if step is None:
            return out
        self._kills[0] += 1
        kept = step + self._kills[0] % (len(out) - step + 1)
        if kept == step:  # killed before the step is stored: nothing of it is left
            self._home.restore(before)
        self._run.at(self._run.time, lambda: self._run.restart(0))
        return out[:kept]


class KillPlanner(Fault, frozen=True, kw_only=True):
    """From now on the planner's process is killed at every step, and another one continues from what it stored."""

    kind: ClassVar[str] = "kill-planner"

    def apply(self, run: SimulationContext) -> None:
        """Replace the home by one that is killed."""
        kills = [0]

        def killed(domain: int, member: Any) -> Any:
            return KilledPlanner(run, member, kills) if isinstance(member, PlacementHome) else member

        run.wrap(killed)
        run.restart(0)
