"""One run of a scenario: a world with its population, timeline, measurements and expectations.

A run is drawn by its seed alone: separate generators for the world, the faults and the roles come from it, so that a further
measurement changes nothing. Times of a scenario count from the end of settling; the world's own clock begins before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

from eventing.overlay.machine import Chance
from eventing.sim import catalogue
from eventing.sim.errors import ScenarioError
from eventing.sim.expectations import judge, names_check
from eventing.sim.faults import FAULTS, Fault, Join
from eventing.sim.measurements.base import MEASUREMENTS, Measurement, Probe
from eventing.sim.measurements.speed import Gauges
from eventing.sim.network import SimulatedNetwork
from eventing.sim.populations import POPULATIONS, Population
from eventing.sim.results import RunResult, Series
from eventing.sim.roles import ROLES, Role
from eventing.sim.scenario import Scenario, moments
from eventing.sim.world import DOWN, UP, DomainMachine, World

SLICE_S = 1.0
"""Simulated seconds between two reports of progress."""
MakeChance = Callable[[str], Chance]
"""Makes a generator from a text: `random.Random`."""
Wrapper = Callable[[int, Any], Any]
Handler = Callable[[int, Any, float], None]
MessageHandler = Callable[[int, int, Any], None]
Tick = Callable[["SimulationRun"], None]


class Plan:
    """The tables of a scenario, decoded. Raises ScenarioError for what makes no sense."""

    def __init__(self, scenario: Scenario) -> None:
        catalogue.load()
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
        self.absent = sum(
            fault.count if fault.count is not None else round(fault.share * scenario.domains)
            for fault in self.faults
            if isinstance(fault, Join)
        )
        if self.absent >= scenario.domains:
            raise ScenarioError(
                f"{where}: faults: all {scenario.domains} domains join later; none is there to be asked"
            )


class SimulationRun:
    """A world that follows a scenario.

    Args:
        scenario: what happens.
        seed: draws everything that is left to chance.
        make_chance: makes the generators.
        gauges: processor time and memory, for measuring speed; None: not measured.

    Attributes:
        world, network, population: as made by the scenario.
        role_of: for each domain with a role, the role's kind; absent: honest.
        fault_chance: generator of faults.
    """

    def __init__(self, scenario: Scenario, seed: int, make_chance: MakeChance, gauges: Gauges | None = None) -> None:
        self.scenario = scenario
        self.gauges = gauges
        self.seed = seed
        self.plan = Plan(scenario)
        self.role_of: dict[int, str] = {}
        self.make_chance = make_chance
        self.fault_chance = make_chance(f"{seed} faults")
        self._actions: list[tuple[float, int, Callable[[], None]]] = []
        self._numbered = 0
        self._handlers: dict[type, list[Handler]] = defaultdict(list)
        self._message_handlers: list[MessageHandler] = []
        self._wrappers: list[Wrapper] = []
        self._crash_handlers: list[Callable[[int, bool], None]] = []
        count = scenario.domains
        self.chance = make_chance(f"{seed} world")
        self.network = SimulatedNetwork(count, self.chance, scale=scenario.network.latency_scale)
        self.network.conditions.loss = scenario.network.loss
        outbound = self._outbound()
        self._absent = dict.fromkeys(
            range(count - self.plan.absent, count)
        )  # the highest numbers, which sponsor nobody
        self.population: Population = POPULATIONS[scenario.parameters](
            scenario, self.chance, outbound, frozenset(self._absent)
        )
        self.world = World([], self.network, self.chance)
        self._roles_begin()
        self.probes: dict[str, Probe] = {name: one.begin(self) for name, one in self.plan.measurements.items()}
        self.series: dict[str, Series] = {name: Series() for name in self.probes}
        self._begin(outbound)

    @property
    def time(self) -> float:
        """Seconds since the end of settling."""
        return round(self.world.now - self.scenario.settle_s, 6)

    @property
    def running(self) -> list[int]:
        """Domains that run."""
        return [domain for domain, state in enumerate(self.world.up) if state]

    # For measurements, roles and faults

    def on(self, events: Iterable[type], handler: Handler) -> None:
        """Call a handler with (domain, event, time of the world) for each event of these types."""
        for event in events:
            self._handlers[event].append(handler)

    def on_message(self, handler: MessageHandler) -> None:
        """Call a handler with (source, target, message) for each message that is sent."""
        self._message_handlers.append(handler)

    def on_crash(self, handler: Callable[[int, bool], None]) -> None:
        """Call a handler with (domain, silently) for each crash."""
        self._crash_handlers.append(handler)

    def wrap(self, wrapper: Wrapper) -> None:
        """Have each member replaced by `wrapper(domain, member)` when it is made and when it starts again."""
        self._wrappers.append(wrapper)

    def at(self, at_s: float, action: Callable[[], None]) -> None:
        """Carry out an action at a time of the scenario; actions of one time in the order in which they were added."""
        self._numbered += 1
        heappush(self._actions, (at_s, self._numbered, action))

    def draw(self, count: int, state: int = UP) -> list[int]:
        """Draw domains in a state; those that have not joined yet are never drawn."""
        suitable = [domain for domain, now in enumerate(self.world.up) if now == state and domain not in self._absent]
        return self.fault_chance.sample(suitable, min(count, len(suitable)))

    def crash(self, domain: int, *, silently: bool = False) -> None:
        """Stop a domain."""
        self.world.crash(domain, silently=silently)
        for handler in self._crash_handlers:
            handler(domain, silently)

    def restart(self, domain: int) -> None:
        """Start a domain with what is on its disk."""
        member, command = self.population.again(domain)
        self.world.restart(domain, self._wrapped(domain, member))
        self.world.give(domain, command)

    def join(self, domain: int, contact: int) -> None:
        """Start a domain that knows its contact only."""
        member, command = self.population.newcomer(domain, contact)
        self.world.restart(domain, self._wrapped(domain, member))
        self.world.give(domain, command)

    def absent_take(self, fault: Join) -> list[int]:
        """The domains that join by a fault."""
        count = fault.count if fault.count is not None else round(fault.share * self.scenario.domains)
        taken = list(self._absent)[:count]
        for domain in taken:
            del self._absent[domain]
        return taken

    # The run

    def go(self, tick: Tick | None = None) -> RunResult:
        """Run to the end; `tick` is called about once a simulated second."""
        world, settle_s, end_s = self.world, self.scenario.settle_s, self.scenario.duration_s
        now_s = -settle_s  # `time` may differ in the last digit
        while now_s < end_s:
            now_s = min(self._actions[0][0] if self._actions else end_s, end_s, now_s + SLICE_S)
            world.run(now_s + settle_s)
            while self._actions and self._actions[0][0] <= now_s:
                heappop(self._actions)[2]()
            if tick is not None:
                tick(self)
        for name in self.probes:
            self._sample(name)
        summaries = {name: probe.summary() for name, probe in self.probes.items()}
        outcomes = judge(self.scenario.expectations, self.series, summaries)
        return RunResult(
            scenario=self.scenario.name,
            title=self.scenario.title,
            seed=self.seed,
            domains=self.scenario.domains,
            duration_s=self.scenario.duration_s,
            events=world.handled,
            messages=world.sent,
            summaries=summaries,
            series=self.series,
            outcomes=outcomes,
        )

    # Making

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
        self.population.make()
        world = self.world
        world.add(self._wrapped(domain, member) for domain, member in enumerate(self.population.members))
        world.only_outbound = outbound
        if self._handlers:
            world.observe = self._observed
        if self._message_handlers:
            world.meter = self._message_handlers[0] if len(self._message_handlers) == 1 else self._metered
        if self.scenario.start == "apart":
            self.network.conditions.sides = bytearray(domain % 2 for domain in range(self.scenario.domains))
        for domain in self._absent:
            world.up[domain] = DOWN
        for domain, command, after_s in self.population.start():
            if domain not in self._absent:
                world.later(domain, command, after_s)
        for fault in self.plan.faults:
            self.at(fault.at_s, lambda fault=fault: fault.apply(self))  # type: ignore[misc]
        for name, measurement in self.plan.measurements.items():
            self._sampling(name, measurement.every_s, 0.0)
            for moment in moments(self.scenario.expectations, name):
                self.at(moment, lambda name=name: self._sample(name))  # type: ignore[misc]

    def _wrapped(self, domain: int, member: Any) -> DomainMachine:
        for wrapper in self._wrappers:
            member = wrapper(domain, member)
        made: DomainMachine = member
        return made

    def _sampling(self, name: str, every_s: float, at_s: float) -> None:
        def again() -> None:
            self._sample(name)
            self._sampling(name, every_s, at_s + every_s)

        self.at(at_s, again)

    def _sample(self, name: str) -> None:
        series = self.series[name]
        if not series.at_s or series.at_s[-1] < self.time:
            series.add(self.time, self.probes[name].sample())

    def _observed(self, domain: int, event: Any, now: float) -> None:
        for handler in self._handlers.get(type(event), ()):
            handler(domain, event, now)

    def _metered(self, source: int, target: int, message: Any) -> None:
        for handler in self._message_handlers:
            handler(source, target, message)
