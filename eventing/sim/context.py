"""Context of a run: what faults, roles and measurements can see and do.

A run (`run.SimulationRun`) is a context that follows a scenario. Generators for the world, the faults and the roles are separate, so that
a further measurement changes nothing in the world. Times of a scenario count from the end of settling; the world's own clock begins
before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any, Protocol

from eventing.overlay.machine import Chance, Id
from eventing.sim.network import SimulatedNetwork
from eventing.sim.scenario import Scenario
from eventing.sim.world import UP, DomainMachine, World

MakeChance = Callable[[str], Chance]
"""Makes a generator from a text: `random.Random`."""
Wrapper = Callable[[int, Any], Any]
Handler = Callable[[int, Any, float], None]
MessageHandler = Callable[[int, int, Any], None]
CrashHandler = Callable[[int, bool], None]


class RunPopulation(Protocol):
    """The domains of a run, as faults, roles and measurements use them."""

    members: list[Any]

    def make(self) -> None: ...

    def again(self, domain: int) -> tuple[Any, Any]: ...

    def newcomer(self, domain: int, contact: int) -> tuple[Any, Any]: ...

    def start(self) -> Iterable[tuple[int, Any, float]]: ...

    def links(self, domain: int) -> Mapping[Id, Any]: ...


class Gauges(Protocol):
    """Measures that a process takes of itself."""

    def cpu_s(self) -> float:
        """Seconds of processor time so far."""

    def memory_bytes(self) -> int:
        """Most memory so far."""


class SimulationContext:
    """A world with hooks and a timeline.

    Attributes:
        scenario, seed: of the run.
        world, network, population: as made by the scenario.
        role_of: for each domain with a role, the role's kind; absent: honest.
        make_chance: makes further generators, from a text with the seed in it.
        fault_chance: generator of faults.
        absent: domains that join later.
        clocks_off_s: seconds by which the clocks of domains differ from the world's; set by clocks.py.
        over: True once nothing is left to be seen: the run ends before its time.
        gauges: processor time and memory, for measuring speed; None: not measured.
    """

    world: World
    network: SimulatedNetwork
    population: RunPopulation

    def __init__(self, scenario: Scenario, seed: int, make_chance: MakeChance, gauges: Gauges | None = None) -> None:
        self.scenario = scenario
        self.seed = seed
        self.make_chance = make_chance
        self.gauges = gauges
        self.fault_chance = make_chance(f"{seed} faults")
        self.role_of: dict[int, str] = {}
        self.absent: dict[int, None] = {}
        self.clocks_off_s: dict[int, float] = {}
        self.over = False
        self._actions: list[tuple[float, int, Callable[[], None]]] = []
        self._numbered = 0
        self._handlers: dict[type, list[Handler]] = defaultdict(list)
        self._message_handlers: list[MessageHandler] = []
        self._crash_handlers: list[CrashHandler] = []
        self._wrappers: list[Wrapper] = []
        self._outer_wrappers: list[Wrapper] = []

    @property
    def time(self) -> float:
        """Seconds since the end of settling."""
        return round(self.world.now - self.scenario.settle_s, 6)

    @property
    def running(self) -> list[int]:
        """Domains that run."""
        return [domain for domain, state in enumerate(self.world.up) if state]

    # Hooks

    def on(self, events: Iterable[type], handler: Handler) -> None:
        """Call a handler with (domain, event, time of the world) for each event of these types."""
        for event in events:
            self._handlers[event].append(handler)

    def on_message(self, handler: MessageHandler) -> None:
        """Call a handler with (source, target, message) for each message that is sent."""
        self._message_handlers.append(handler)

    def on_crash(self, handler: CrashHandler) -> None:
        """Call a handler with (domain, silently) for each crash."""
        self._crash_handlers.append(handler)

    def wrap(self, wrapper: Wrapper, *, outermost: bool = False) -> None:
        """Have each member replaced by `wrapper(domain, member)` when it is made and when it starts again.

        Args:
            outermost: after all other wrappers, those of measurements included.
        """
        (self._outer_wrappers if outermost else self._wrappers).append(wrapper)

    def at(self, at_s: float, action: Callable[[], None]) -> None:
        """Carry out an action at a time of the scenario; actions of one time in the order in which they were added."""
        self._numbered += 1
        heappush(self._actions, (at_s, self._numbered, action))

    # What happens to domains

    def draw(self, count: int, state: int = UP) -> list[int]:
        """Draw domains in a state; those that have not joined yet are never drawn."""
        suitable = [domain for domain, now in enumerate(self.world.up) if now == state and domain not in self.absent]
        return self.fault_chance.sample(suitable, min(count, len(suitable)))

    def crash(self, domain: int, *, silently: bool = False) -> None:
        """Stop a domain."""
        for handler in self._crash_handlers:
            handler(domain, silently)
        self.world.crash(domain, silently=silently)

    def restart(self, domain: int) -> None:
        """Start a domain with what is on its disk."""
        member, command = self.population.again(domain)
        self.world.restart(domain, self._wrapped(domain, member))
        self.world.give(domain, command)

    def join(self, domain: int, contact: int) -> None:
        """Start a domain that knows its contact only."""
        self.absent.pop(domain, None)
        member, command = self.population.newcomer(domain, contact)
        self.world.restart(domain, self._wrapped(domain, member))
        self.world.give(domain, command)

    # For runs

    def _next_s(self, otherwise: float) -> float:
        """The time of the next action."""
        return self._actions[0][0] if self._actions else otherwise

    def _act(self, until_s: float) -> None:
        """Carry out the actions that are due."""
        while self._actions and self._actions[0][0] <= until_s:
            heappop(self._actions)[2]()

    def _wrapped(self, domain: int, member: Any) -> DomainMachine:
        for wrapper in (*self._wrappers, *self._outer_wrappers):
            member = wrapper(domain, member)
        made: DomainMachine = member
        return made

    def _hook(self) -> None:
        """Connect the handlers with the world: as few calls for each message and event as possible."""
        if self._handlers:
            self.world.observe = self._observed
        if self._message_handlers:
            only = len(self._message_handlers) == 1
            self.world.meter = self._message_handlers[0] if only else self._metered

    def _observed(self, domain: int, event: Any, now: float) -> None:
        for handler in self._handlers.get(type(event), ()):
            handler(domain, event, now)

    def _metered(self, source: int, target: int, message: Any) -> None:
        for handler in self._message_handlers:
            handler(source, target, message)
