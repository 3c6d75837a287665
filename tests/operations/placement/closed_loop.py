"""A home under a load over time, closed over the planner: replicas join after a while, readers spread by capacity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from eventing.operations.placement.rules.loads import capacity_units
from eventing.operations.placement.rules.planner import PlacementPlanner, PlannerState
from eventing.operations.placement.rules.steps import PlacementOutput, PlacementStep
from eventing.operations.placement.rules.views import HeldReplica, PlacedDomain, PlacedRp, PlacementObserved

JOIN_S = 3.0
HOME = PlacedDomain(name="home.test", zone="north", capacity=1, groups=("operator:home",))


@dataclass
class ClosedLoop:
    """One RP whose readers cause `demand(at)` units of load in all.

    Args:
        demand: load of all readers at a time.
        domains: others; each holds what it is asked to, unless it is in `droppers`.
        every_s: seconds between two observations.
        killed: the planner's process is replaced, from its stored state, after each observation.
    """

    demand: Callable[[float], float]
    domains: tuple[PlacedDomain, ...]
    every_s: float = 1.0
    replicas_max: int = 64
    histories: int = 1
    droppers: tuple[str, ...] = ()
    killed: bool = False
    planner: PlacementPlanner = field(default_factory=PlacementPlanner)
    joined: dict[str, float] = field(default_factory=dict)
    steps: list[tuple[float, PlacementStep]] = field(default_factory=list)
    outputs: list[PlacementOutput] = field(default_factory=list)
    pressures: list[tuple[float, float]] = field(default_factory=list)
    at: float = 0.0

    def run(self, until_s: float) -> ClosedLoop:
        """Go on until a time."""
        while self.at < until_s:
            self._observe()
            self.at += self.every_s
        return self

    def _observe(self) -> None:
        capacity = {one.name: capacity_units(one.capacity) for one in self.domains}
        counting = [name for name, at in self.joined.items() if self.at - at >= JOIN_S and name not in self.droppers]
        total = capacity_units(HOME.capacity) + sum(capacity[name] for name in counting)
        pressure = self.demand(self.at) / total
        self.pressures.append((self.at, pressure))
        units = pressure * capacity_units(HOME.capacity)
        replicas = tuple(
            HeldReplica(
                domain=name,
                counts=name in counting,
                ours=True,
                failing=name in self.droppers and self.at - at >= 10 * JOIN_S,
            )
            for name, at in self.joined.items()
        )
        for one in replicas:
            if one.failing:
                self.planner.refused(one.domain, self.at)
        rp = PlacedRp(
            rp="famous", units=units, replicas=replicas, replicas_max=self.replicas_max, histories=self.histories
        )
        seen = PlacementObserved(home=HOME, pressure=pressure, units=units, domains=self.domains, rps=(rp,))
        self.outputs = self.planner.handle(seen, self.at)
        for output in self.outputs:
            if isinstance(output, PlacementStep):
                self.planner.begun(output, self.at)
                self.steps.append((self.at, output))
                self.joined.update(dict.fromkeys(output.adds, self.at))
                for name in output.retires:
                    self.joined.pop(name)
        if self.killed:
            stored = msgspec.json.encode(self.planner.state)
            self.planner = PlacementPlanner(msgspec.json.decode(stored, type=PlannerState))

    def most_in(self, window_s: float) -> int:
        """Return the most changes in any window."""
        times = [at for at, _ in self.steps]
        return max((sum(1 for other in times if at <= other < at + window_s) for at in times), default=0)


def willing(count: int, *, capacity: int = 1, zone: str = "north") -> tuple[PlacedDomain, ...]:
    """Domains with room, whose delay is measured."""
    room = 0.6 * capacity_units(capacity)
    return tuple(
        PlacedDomain(name=f"d{at}.test", zone=zone, capacity=capacity, pressure=0.1, room=room, delay_ms=20.0)
        for at in range(count)
    )
