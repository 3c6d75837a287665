"""Clocks that are off, across restarts; a fault that sets them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

import msgspec

from eventing.overlay.machine import Chance
from eventing.sim.context import SimulationContext
from eventing.sim.faults import Fault
from eventing.sim.scenario import Count
from eventing.sim.world import UP, DomainMachine

BY_S_MAX = 10 * 365 * 86_400.0  # bound: seconds by which a clock is set; the scenario is refused


class MachineWithItsClock:
    """A domain whose clock differs from the world's.

    Args:
        off_s: by how many seconds, by domain.
    """

    def __init__(self, machine: DomainMachine, off_s: dict[int, float], domain: int) -> None:
        self._machine = machine
        self._off_s = off_s
        self._domain = domain

    def handle(self, given: Any, now: float, chance: Chance) -> Iterable[Any]:
        """Have the machine handle an input, at the time of its own clock."""
        return self._machine.handle(given, now + self._off_s.get(self._domain, 0.0), chance)


def clock_moved(run: SimulationContext, domain: int, by_s: float) -> None:
    """Set a domain's clock by so many seconds from what it showed."""
    if not run.clocks_off_s:
        run.wrap(lambda of, machine: MachineWithItsClock(machine, run.clocks_off_s, of), outermost=True)
    if not isinstance(run.world.machines[domain], MachineWithItsClock):
        run.world.machines[domain] = MachineWithItsClock(run.world.machines[domain], run.clocks_off_s, domain)
    run.clocks_off_s[domain] = run.clocks_off_s.get(domain, 0.0) + by_s


class ClockSet(Fault, frozen=True, kw_only=True):
    """Clocks are set, forward or back.

    Attributes:
        by_s: seconds to what they showed before; below 0: back.
        domain: the one whose clock is set.
        count: number of domains whose clocks are set; instead of one by its number.
    """

    kind: ClassVar[str] = "clock"
    by_s: Annotated[float, msgspec.Meta(ge=-BY_S_MAX, le=BY_S_MAX)]
    domain: Annotated[int, msgspec.Meta(ge=0)] | None = None
    count: Count | None = None

    def __post_init__(self) -> None:
        if (self.domain is None) == (self.count is None):
            raise ValueError("either 'domain' or 'count' is needed")

    def apply(self, run: SimulationContext) -> None:
        """Set them."""
        given = [] if self.domain is None else [self.domain]
        for domain in given if self.count is None else run.draw(self.count, UP):
            clock_moved(run, domain, self.by_s)
