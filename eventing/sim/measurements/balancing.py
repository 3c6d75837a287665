"""Loads of domains by single readers that follow redirects: the measurement of simulated balancing.

Planner and volunteers are those of placement; every domain that serves balances its readers by itself (placement/balancer.py). Demand is a
line through points (time, readers), repeated if a period is given; where the readers are is placement/redirected_readers.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from eventing.operations.placement.rules.loads import capacity_units
from eventing.replication.rules.balancing import SESSIONS_MIN
from eventing.replication.rules.ranking import LOAD_FACTOR
from eventing.replication.rules.reader_moves import ReaderMove
from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import MeasurementProbe, Values
from eventing.sim.measurements.demand import HOUR_S, DemandMeasurement, TurnsProbe, most_in
from eventing.sim.placement.balancer import READERS_MAX, BalancedDomain, ParticipantsStated, ReadersMove
from eventing.sim.placement.messages import HomeLoad, PlacementChanged, ReplicaEnded, ReplicaServes, ServedLoad
from eventing.sim.placement.population import CLASS, PlacementPopulation
from eventing.sim.placement.redirected_readers import RedirectedReaders
from eventing.sim.world import UP

SEEN = ("replicas_max", "over_share_s_max", "over_share_leaving_s_max")


class BalancingMeasured(DemandMeasurement, frozen=True, kw_only=True):
    """A table `[[measurements]]` of kind balancing, with the demand."""

    kind: ClassVar[str] = "balancing"

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return BalancingProbe(self, run)


class BalancingProbe(TurnsProbe):
    """Readers of one run, and what was seen."""

    def __init__(self, plan: BalancingMeasured, run: SimulationContext) -> None:
        super().__init__(run, plan.turn_s, *SEEN)
        self._plan = plan
        population = run.population
        zones = population.zones if isinstance(population, PlacementPopulation) else bytes(run.scenario.domains)
        self._readers = RedirectedReaders(zones, run.make_chance(f"{run.seed} readers"))
        self._over_since: dict[tuple[str, int], float] = {}
        self._steps: list[float] = []
        self._move_steps: list[float] = []
        run.wrap(BalancedDomain, outermost=True)
        run.on((ReplicaServes,), lambda _, event, __: self._joined(event.domain))
        run.on((ReplicaEnded,), lambda _, event, now: self._ended(event.domain, now))
        run.on((ReadersMove,), lambda domain, event, now: self._move(domain, event.move, now))
        run.on((PlacementChanged,), lambda *_: self._steps.append(self._run.time))
        self._begin_turns()

    def sample(self) -> Values:
        """Values now."""
        counts = self._readers.counts()
        return {
            "readers": float(sum(counts.values())),
            "replicas": float(len(counts) - 1),
            "most": float(max(counts.values())),
            "fair_share": sum(counts.values()) / len(counts),
        }

    def summary(self) -> Values:
        """Values over the run."""
        return {
            **self._seen,
            "steps_hour": float(most_in(self._steps, HOUR_S)),
            "move_steps_hour": float(most_in(self._move_steps, HOUR_S)),
            "moves_per_reader": self._readers.moved / max(1, self._readers.started),
        }

    def _turn(self) -> None:
        world, now = self._run.world, self._run.world.now
        members = self._run.population.members
        for domain in [one for one in self._readers.serving() if one and not self._serves(one, members[one])]:
            self._readers.stopped(domain, now)
            self._state()
        self._readers.noticed(now)
        self._readers.wanted(self._plan.readers_at(self._run.time), now)
        self._readers.turn(now)
        counts = self._readers.counts()
        self._compare(counts)
        self._most("replicas_max", len(counts) - 1)
        for domain, readers in counts.items():
            if domain:
                world.give(domain, ServedLoad(readers))
        pressure = counts[0] / READERS_MAX
        world.give(0, HomeLoad(pressure * capacity_units(CLASS), pressure))

    def _compare(self, counts: Mapping[int, int]) -> None:
        """Note for how long domains have been above the bound, without and with the readers that are about to leave."""
        now, leaving = self._run.time, self._readers.leaving()
        share = sum(counts.values()) / len(counts)
        for domain, count in counts.items():
            for name, there in (("over_share_s_max", count - leaving[domain]), ("over_share_leaving_s_max", count)):
                if count >= SESSIONS_MIN and there > LOAD_FACTOR * share:
                    self._most(name, now - self._over_since.setdefault((name, domain), now))
                else:
                    self._over_since.pop((name, domain), None)

    def _serves(self, domain: int, member: Any) -> bool:
        return bool(self._run.world.up[domain] == UP and member.serves and self._run.network.reaches(0, domain))

    def _joined(self, domain: int) -> None:
        self._readers.joined(domain)
        self._state()

    def _ended(self, domain: int, now: float) -> None:
        self._readers.ended(domain, now)
        self._state()

    def _state(self) -> None:
        """State to the domains that serve which these are."""
        serving = tuple(self._readers.serving())
        for domain in serving:
            self._run.world.give(domain, ParticipantsStated(serving))

    def _move(self, domain: int, move: ReaderMove, now: float) -> None:
        if move.share:
            self._move_steps.append(self._run.time)
        self._readers.move(domain, move, now)
