"""A network that is never the same for long: a fault that parts all domains anew, again and again."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar

import msgspec

from eventing.sim.clocks import clock_moved
from eventing.sim.context import SimulationContext
from eventing.sim.faults import Fault
from eventing.sim.scenario import Count, Positive, Share
from eventing.sim.world import DOWN, UP

SIDES = 3
LOSSES = (0.0, 0.1, 0.3)


class Disturb(Fault, frozen=True, kw_only=True):
    """Random partitions, one after the other, each with a loss of messages, domains that are down and a clock that is set; then all is whole.

    Attributes:
        times: number of partitions.
        least_s, most_s: how long each lasts.
        down: share of the domains that are down in each; they start again with the next.
        clock_s: seconds by which one domain's clock is set in each, forward or back, at most.
    """

    kind: ClassVar[str] = "disturb"
    times: Count
    least_s: Positive = 4.0
    most_s: Positive = 13.0
    down: Share = 0.15
    clock_s: Annotated[float, msgspec.Meta(ge=0.0, le=1e6)] = 10_000.0

    def apply(self, run: SimulationContext) -> None:
        """Begin with the first."""
        self._part(run, 0)

    def _part(self, run: SimulationContext, done: int) -> None:
        chance, conditions, count = run.fault_chance, run.network.conditions, run.scenario.domains
        conditions.heal()
        for domain in [domain for domain, state in enumerate(run.world.up) if state == DOWN]:
            run.restart(domain)
        if done == self.times:
            return
        conditions.sides = bytearray(chance.randrange(SIDES) for _ in range(count))
        conditions.loss = LOSSES[chance.randrange(len(LOSSES))]
        for domain in range(count):
            if chance.random() < self.down and run.world.up[domain] == UP:
                run.crash(domain, silently=True)
        if self.clock_s:
            clock_moved(run, chance.randrange(count), self.clock_s * (2.0 * chance.random() - 1.0))
        lasts_s = self.least_s + (self.most_s - self.least_s) * chance.random()
        run.at(run.time + lasts_s, partial(self._part, run, done + 1))
