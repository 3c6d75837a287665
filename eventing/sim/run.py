"""One run of a scenario: a world with its population, timeline, measurements and expectations, drawn by a seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from eventing.overlay.machine import Chance
from eventing.sim.catalogue import FAULTS, MEASUREMENTS, ROLES
from eventing.sim.context import Gauges, MakeChance, RunPopulation, SimulationContext
from eventing.sim.errors import ScenarioError
from eventing.sim.expectations import judge, names_check
from eventing.sim.faults import Fault, JoinFault
from eventing.sim.measurements.base import Measurement, MeasurementProbe
from eventing.sim.network import SimulatedNetwork
from eventing.sim.placement.population import PlacementPopulation
from eventing.sim.populations import POPULATIONS
from eventing.sim.results import RunResult, Series
from eventing.sim.roles import Role
from eventing.sim.routed.population import RoutedPopulation
from eventing.sim.scenario import Scenario, moments
from eventing.sim.succession.population import SuccessionPopulation
from eventing.sim.world import DOWN, World

MAKERS: dict[str, Callable[[Scenario, Chance, bytearray | None, frozenset[int]], RunPopulation]] = {
    **POPULATIONS,
    "placement": PlacementPopulation,
    "routes": RoutedPopulation,
    "succession": SuccessionPopulation,
}
SLICE_S = 1.0
"""Simulated seconds between two reports of progress."""
Tick = Callable[[SimulationContext], None]


class Plan:
    """The tables of a scenario, decoded. Raises ScenarioError for what makes no sense."""

    def __init__(self, scenario: Scenario) -> None:
        where = scenario.name
        self.faults: list[Fault] = [
            FAULTS.decode(item, f"{where}: faults[{at}]") for at, item in enumerate(scenario.faults)
        ]
        self.roles: list[Role] = [ROLES.decode(item, f"{where}: roles[{at}]") for at, item in enumerate(scenario.roles)]
        self.measurements: dict[str, Measurement] = {}
        for at, item in enumerate(scenario.measurements):
            measurement = MEASUREMENTS.decode(item, f"{where}: measurements[{at}]")
            name = measurement.name or str(item["kind"])
            if name in self.measurements:
                raise ScenarioError(f"{where}: measurements[{at}]: there is a {name!r} already; give it a 'name'")
            self.measurements[name] = measurement
        names_check(scenario, self.measurements)
        self.absent = sum(fault.number(scenario.domains) for fault in self.faults if isinstance(fault, JoinFault))
        if self.absent >= scenario.domains:
            raise ScenarioError(
                f"{where}: faults: all {scenario.domains} domains join later; none is there to be asked"
            )


class SimulationRun(SimulationContext):
    """A world that follows a scenario.

    Args:
        scenario: what happens.
        seed: draws everything that is left to chance.
        make_chance: makes the generators.
        gauges: processor time and memory, for measuring speed; None: not measured.
    """

    def __init__(self, scenario: Scenario, seed: int, make_chance: MakeChance, gauges: Gauges | None = None) -> None:
        super().__init__(scenario, seed, make_chance, gauges)
        self.plan = Plan(scenario)
        count = scenario.domains
        chance = make_chance(f"{seed} world")
        self.absent = dict.fromkeys(range(count - self.plan.absent, count))  # the highest numbers, which sponsor nobody
        self.network = SimulatedNetwork(count, chance, scale=scenario.network.latency_scale)
        self.network.conditions.loss = scenario.network.loss
        outbound = self._outbound()
        self.population = MAKERS[scenario.parameters](scenario, chance, outbound, frozenset(self.absent))
        self.world = World([], self.network, chance)
        self._roles_begin()
        self.probes: dict[str, MeasurementProbe] = {
            name: one.begin(self) for name, one in self.plan.measurements.items()
        }
        self.series: dict[str, Series] = {name: Series() for name in self.probes}
        self._begin(outbound)
        self._plan_actions()

    def go(self, tick: Tick | None = None) -> RunResult:
        """Run to the end; `tick` is called about once a simulated second."""
        settle_s, end_s = self.scenario.settle_s, self.scenario.duration_s
        now_s = -settle_s  # `time` may differ in the last digit
        while now_s < end_s and not self.over:
            now_s = min(self._next_s(end_s), end_s, now_s + SLICE_S)
            self.world.run(now_s + settle_s)
            self._act(now_s)
            if tick is not None:
                tick(self)
        for name in self.probes:
            self._sample(name)
        summaries = {name: probe.summary() for name, probe in self.probes.items()}
        return RunResult(
            scenario=self.scenario.name,
            title=self.scenario.title,
            seed=self.seed,
            domains=self.scenario.domains,
            duration_s=self.scenario.duration_s,
            events=self.world.handled,
            messages=self.world.sent,
            summaries=summaries,
            series=self.series,
            outcomes=judge(self.scenario.expectations, self.series, summaries),
        )

    def _outbound(self) -> bytearray | None:
        share, count = self.scenario.network.only_outbound, self.scenario.domains
        if not share:
            return None
        made = bytearray(count)
        for domain in self.fault_chance.sample(range(1, count), round(share * (count - 1))):
            made[domain] = 1
        return made

    def _roles_begin(self) -> None:
        chance = self.make_chance(f"{self.seed} roles")
        count = self.scenario.domains
        order = chance.sample(range(1, count), count - 1) if self.plan.roles else []
        for role, item in zip(self.plan.roles, self.scenario.roles, strict=True):
            many = round(role.share * count)
            mine, order = sorted(order[:many]), order[many:]
            self.role_of.update(dict.fromkeys(mine, str(item["kind"])))
            role.begin(self, mine)

    def _begin(self, outbound: bytearray | None) -> None:
        """Make all domains, and have them started."""
        self.population.make()
        self.world.add(self._wrapped(domain, member) for domain, member in enumerate(self.population.members))
        self.world.only_outbound = outbound
        self._hook()
        if self.scenario.start == "apart":
            self.network.conditions.sides = bytearray(domain % 2 for domain in range(self.scenario.domains))
        for domain in self.absent:
            self.world.up[domain] = DOWN
        for domain, command, after_s in self.population.start():
            if domain not in self.absent:
                self.world.later(domain, command, after_s)

    def _plan_actions(self) -> None:
        for fault in self.plan.faults:
            self.at(fault.at_s, partial(fault.apply, self))
        for name, measurement in self.plan.measurements.items():
            self._sample_from(name, measurement.every_s, 0.0)
            for moment in moments(self.scenario.expectations, name):
                self.at(moment, partial(self._sample, name))

    def _sample_from(self, name: str, every_s: float, at_s: float) -> None:
        def again() -> None:
            self._sample(name)
            self._sample_from(name, every_s, at_s + every_s)

        self.at(at_s, again)

    def _sample(self, name: str) -> None:
        series = self.series[name]
        if not series.at_s or series.at_s[-1] < self.time:
            series.add(self.time, self.probes[name].sample())
