"""World: machines, their timers, and messages between them, driven by one calendar.

A machine is `handle(input, now, chance) -> outputs`. The world carries out its outputs: messages become inputs of others after the
time that the network takes, timers become inputs of the machine itself. Other outputs are observations, which are read
by the scenario's measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from eventing.overlay.machine import Chance, Down, Fired, MessageReceived, SendMessage, SetTimer
from eventing.sim.calendar import Calendar
from eventing.sim.network import SimulatedNetwork

CONNECT_TIMEOUT_S = 3.0
"""After this a message to a domain whose host has vanished counts as not delivered (as peering/wire/client.py: CONNECT_S_MAX)."""
OPEN_S = 60.0
"""A domain that only calls out can be reached on a connection of its own for this long after its last message (as NAT: guess)."""
DOWN, UP, PAUSED = 0, 1, 2
"""States of a domain."""


class DomainMachine(Protocol):
    """A domain's machine."""

    def handle(self, given: Any, now: float, chance: Chance, /) -> Iterable[Any]: ...


Observer = Callable[[int, Any, float], None]
Meter = Callable[[int, int, Any], None]
Entry = tuple[int, int, Any]
"""Target, its life, input."""


class World:
    """Domains by dense numbers from 0.

    Args:
        machines: one for each domain.
        network: times and losses between the domains.
        chance: the one source of chance.
        observe: called with (domain, output, now) for each output that is neither a message nor a timer.
        meter: called with (source, target, message) for each message that is sent.

    Attributes:
        now: seconds since the beginning.
        up: for each domain DOWN, UP or PAUSED.
        only_outbound: for each domain, whether it can be reached on connections of its own only; None: all can be called.
        sent: messages so far.
        handled: inputs handled so far.
    """

    def __init__(
        self,
        machines: Sequence[DomainMachine],
        network: SimulatedNetwork,
        chance: Chance,
        observe: Observer | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.machines = list(machines)
        self.network = network
        self.chance = chance
        self.observe = observe
        self.meter = meter
        self.now = 0.0
        self.up = bytearray([UP]) * len(machines)
        self.only_outbound: bytearray | None = None
        self.sent = 0
        self.handled = 0
        self._lives = [0] * len(machines)
        self._vanished: set[int] = set()
        self._held: dict[int, list[Any]] = {}
        self._opened: dict[tuple[int, int], float] = {}
        self._calendar: Calendar[Entry] = Calendar()

    def add(self, machines: Iterable[DomainMachine]) -> None:
        """Add further domains."""
        added = list(machines)
        self.machines += added
        self.up += bytearray([UP]) * len(added)
        self._lives += [0] * len(added)

    def give(self, domain: int, given: Any) -> None:
        """Have a domain handle an input now, unless it is down; while it is paused, later."""
        if self.up[domain] != UP:
            if self.up[domain] == PAUSED:
                self._held[domain].append(given)
            return
        self.handled += 1
        for output in self.machines[domain].handle(given, self.now, self.chance):
            kind = type(output)
            if kind is SendMessage:
                self._post(domain, output.peer, output.message)
            elif kind is SetTimer:
                entry = (domain, self._lives[domain], Fired(output.timer))
                self._calendar.add(self.now + output.after_s, entry)
            elif self.observe is not None:
                self.observe(domain, output, self.now)

    def later(self, domain: int, given: Any, after_s: float) -> None:
        """Have a domain handle an input after a time."""
        self._calendar.add(self.now + after_s, (domain, self._lives[domain], given))

    def crash(self, domain: int, *, silently: bool = False) -> None:
        """Stop a domain; it forgets its timers, and others find out when they send to it.

        Args:
            silently: its host vanishes as well, and nothing reports that messages are not delivered.
        """
        self.up[domain] = DOWN
        self._lives[domain] += 1
        self._held.pop(domain, None)
        if silently:
            self._vanished.add(domain)

    def restart(self, domain: int, machine: DomainMachine) -> None:
        """Start a domain with another machine."""
        if self.up[domain] != DOWN:
            self.crash(domain)
        self._vanished.discard(domain)
        self.machines[domain] = machine
        self.up[domain] = UP

    def pause(self, domain: int) -> None:
        """Halt a domain: messages and timers wait until it resumes."""
        if self.up[domain] == UP:
            self.up[domain] = PAUSED
            self._held[domain] = []

    def resume(self, domain: int) -> None:
        """Let a paused domain go on, first with what waits."""
        if self.up[domain] == PAUSED:
            self.up[domain] = UP
            for given in self._held.pop(domain):
                self.give(domain, given)

    def run(self, until_s: float) -> None:
        """Go on until a time."""
        lives, up, give = self._lives, self.up, self.give
        for now, entries in self._calendar.until(until_s):
            self.now = now
            for target, life, given in entries:
                if life == lives[target] and up[target]:
                    give(target, given)
                elif type(given) is MessageReceived and not up[target] and target not in self._vanished:
                    self._undelivered(given.peer, target, self.network.delay_s(target, given.peer))
        self.now = max(self.now, until_s)

    def _post(self, source: int, target: int, message: Any) -> None:
        self.sent += 1
        if self.meter is not None:
            self.meter(source, target, message)
        network = self.network
        conditions = network.conditions
        if (
            type(target) is not int
            or not 0 <= target < len(self.machines)
            or (self.only_outbound is not None and not self._can_call(self.only_outbound, source, target))
        ):
            self._undelivered(source, target, CONNECT_TIMEOUT_S)
        elif (conditions.sides is not None or conditions.one_way) and not network.reaches(source, target):
            if target not in self._vanished:
                self._undelivered(source, target, CONNECT_TIMEOUT_S)
        elif not ((conditions.loss or conditions.mute or conditions.deaf) and network.loses(source, target)):
            entry = (target, self._lives[target], MessageReceived(source, message))
            self._calendar.add(self.now + network.delay_s(source, target), entry)

    def _can_call(self, outbound: bytearray, source: int, target: int) -> bool:
        """Return whether a message can reach a target that may be behind NAT, and note connections that it opens itself."""
        if outbound[source]:
            self._opened[source, target] = self.now
        return not outbound[target] or self._opened.get((target, source), -OPEN_S) + OPEN_S > self.now

    def _undelivered(self, source: int, target: int, after_s: float) -> None:
        """Report to the sender, as a transport would, that its message was not delivered."""
        self._calendar.add(self.now + after_s, (source, self._lives[source], Down(target)))
