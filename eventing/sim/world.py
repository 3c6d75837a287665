"""World: machines, their timers, and messages between them, driven by one calendar.

A machine is `handle(input, now, chance) -> outputs`. The world carries out its outputs: messages become inputs of others after the
time that the network takes, timers become inputs of the machine itself. Other outputs are observations; whoever runs the
scenario reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from eventing.overlay.machine import Chance, Down, Fired, MessageReceived, SendMessage, SetTimer
from eventing.sim.calendar import Calendar
from eventing.sim.network import SimulatedNetwork

CONNECT_TIMEOUT_S = 3.0
"""After this a message to a domain whose host is gone counts as not delivered (as peering/wire/client.py: CONNECT_S_MAX)."""


class DomainMachine(Protocol):
    """A domain's machine."""

    def handle(self, given: Any, now: float, chance: Chance, /) -> Iterable[Any]: ...


Observer = Callable[[int, Any, float], None]
Entry = tuple[int, int, Any]
"""Target, its life, input."""


class World:
    """Domains by dense numbers from 0.

    Args:
        machines: one for each domain.
        network: times and losses between the domains.
        chance: the one source of chance.
        observe: called with (domain, output, now) for each output that is neither a message nor a timer.

    Attributes:
        now: seconds since the beginning.
        up: for each domain, whether it runs.
        sent: messages so far.
        handled: inputs handled so far.
    """

    def __init__(
        self,
        machines: Sequence[DomainMachine],
        network: SimulatedNetwork,
        chance: Chance,
        observe: Observer | None = None,
    ) -> None:
        self.machines = list(machines)
        self.network = network
        self.chance = chance
        self.observe = observe
        self.now = 0.0
        self.up = bytearray(b"\1" * len(machines))
        self.sent = 0
        self.handled = 0
        self._lives = [0] * len(machines)
        self._calendar: Calendar[Entry] = Calendar()

    def give(self, domain: int, given: Any) -> None:
        """Have a domain handle an input now, unless it is down."""
        if not self.up[domain]:
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

    def crash(self, domain: int) -> None:
        """Stop a domain; it forgets its timers, and others find out when they send to it."""
        self.up[domain] = 0
        self._lives[domain] += 1

    def restart(self, domain: int, machine: DomainMachine) -> None:
        """Start a domain with another machine."""
        self.machines[domain] = machine
        self.up[domain] = 1

    def run(self, until_s: float) -> None:
        """Go on until a time."""
        lives, up, give = self._lives, self.up, self.give
        for now, entries in self._calendar.until(until_s):
            self.now = now
            for target, life, given in entries:
                if life == lives[target] and up[target]:
                    give(target, given)
                elif type(given) is MessageReceived and not up[target]:
                    self._undelivered(given.peer, target, self.network.delay_s(target, given.peer))
        self.now = max(self.now, until_s)

    def _post(self, source: int, target: int, message: Any) -> None:
        self.sent += 1
        if not self.network.reaches(source, target):
            self._undelivered(source, target, CONNECT_TIMEOUT_S)
        elif not self.network.loses():
            entry = (target, self._lives[target], MessageReceived(source, message))
            self._calendar.add(self.now + self.network.delay_s(source, target), entry)

    def _undelivered(self, source: int, target: int, after_s: float) -> None:
        """Report to the sender, as a transport would, that its message was not delivered."""
        self._calendar.add(self.now + after_s, (source, self._lives[source], Down(target)))
