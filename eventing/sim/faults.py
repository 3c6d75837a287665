"""Faults: what happens to a world at a time. Each `[[faults]]` table of a scenario file is one.

To add one: a struct with its parameters as fields, with its `kind`, listed in catalogue.py; `apply` is called at `at_s`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, ClassVar

import msgspec

from eventing.sim.context import SimulationContext
from eventing.sim.scenario import Count, Positive, Seconds, Share
from eventing.sim.world import DOWN, UP

Act = Callable[[int], None]


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table `[[faults]]`.

    Attributes:
        at_s: when, in seconds from the end of settling.
    """

    kind: ClassVar[str]
    at_s: Seconds = 0.0

    def apply(self, run: SimulationContext) -> None:
        """Change the world now."""
        raise NotImplementedError


class FaultOfSome(Fault, frozen=True, kw_only=True):
    """A fault of some domains, drawn by the seed from those that run.

    Attributes:
        share: of all domains.
        count: number of domains; instead of a share.
    """

    share: Share = 0.0
    count: Count | None = None

    def __post_init__(self) -> None:
        if (self.share > 0.0) == (self.count is not None):
            raise ValueError("either 'share' or 'count' is needed")

    def number(self, of: int) -> int:
        """Domains that are meant, of so many."""
        return self.count if self.count is not None else round(self.share * of)

    def domains(self, run: SimulationContext, state: int = UP) -> list[int]:
        """Draw the domains."""
        return run.draw(self.number(run.scenario.domains), state)


class Crash(FaultOfSome, frozen=True, kw_only=True):
    """Domains stop at once.

    Attributes:
        silently: the hosts vanish as well: no sign that messages are not delivered.
        within_s: seconds over which the crashes are spread.
    """

    kind: ClassVar[str] = "crash"
    silently: bool = False
    within_s: Seconds = 0.0

    def apply(self, run: SimulationContext) -> None:
        """Stop them."""
        spread(run, self.domains(run), self.within_s, lambda domain: run.crash(domain, silently=self.silently))


class Restart(FaultOfSome, frozen=True, kw_only=True):
    """Domains start with what is on their disks: the directory and their links by own choice.

    Attributes:
        of: `down`: domains that crashed; `all`: also domains that run, which stop first.
        within_s: seconds over which the starts are spread.
        down_s: seconds between stop and start of a domain that runs.
    """

    kind: ClassVar[str] = "restart"
    of: Annotated[str, msgspec.Meta(pattern="^(down|all)$")] = "down"
    within_s: Seconds = 0.0
    down_s: Seconds = 5.0

    def apply(self, run: SimulationContext) -> None:
        """Stop and start them."""
        if self.of == "down":
            spread(run, self.domains(run, DOWN), self.within_s, run.restart)
            return

        def turn(domain: int) -> None:
            run.crash(domain)
            run.at(run.time + self.down_s, lambda: run.restart(domain))

        spread(run, self.domains(run), self.within_s, turn)


class JoinFault(FaultOfSome, frozen=True, kw_only=True):
    """Domains that were kept out until now join, all through one contact. They are part of `domains` and absent from the beginning.

    Attributes:
        contact: the domain that all ask.
        within_s: seconds over which the starts are spread.
    """

    kind: ClassVar[str] = "join"
    contact: Annotated[int, msgspec.Meta(ge=0)] = 0
    within_s: Seconds = 1.0

    def apply(self, run: SimulationContext) -> None:
        """Start them."""
        newcomers = list(run.absent)[: self.number(run.scenario.domains)]
        for domain in newcomers:
            del run.absent[domain]
        spread(run, newcomers, self.within_s, lambda domain: run.join(domain, self.contact))


class Partition(Fault, frozen=True, kw_only=True):
    """Nothing is delivered between the sides until `heal`.

    Attributes:
        shares: of each side; the rest is one more side.
    """

    kind: ClassVar[str] = "partition"
    shares: Annotated[tuple[Share, ...], msgspec.Meta(min_length=1, max_length=8)] = (0.5,)

    def apply(self, run: SimulationContext) -> None:
        """Draw the sides."""
        count = run.scenario.domains
        order = run.fault_chance.sample(range(count), count)
        sides, first = bytearray([len(self.shares)]) * count, 0
        for side, share in enumerate(self.shares):
            end = first + round(share * count)
            for domain in order[first:end]:
                sides[domain] = side
            first = end
        run.network.conditions.sides = sides


class CutOff(Fault, frozen=True, kw_only=True):
    """Domains that nothing is delivered to or from until `heal`, all others being together.

    Attributes:
        domains: by their numbers; those cut off can reach each other.
    """

    kind: ClassVar[str] = "cut-off"
    domains: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(min_length=1, max_length=1000)] = (
        0,
    )

    def apply(self, run: SimulationContext) -> None:
        """Put them on a side of their own."""
        sides = bytearray(run.scenario.domains)
        for domain in self.domains:
            sides[domain] = 1
        run.network.conditions.sides = sides


class OneWay(FaultOfSome, frozen=True, kw_only=True):
    """Domains whose messages do not leave, while they receive all.

    Attributes:
        direction: `out`: what they send is lost; `in`: what is sent to them is lost.
    """

    kind: ClassVar[str] = "one-way"
    direction: Annotated[str, msgspec.Meta(pattern="^(out|in)$")] = "out"

    def apply(self, run: SimulationContext) -> None:
        """Cut one direction of all their connections."""
        mutes = run.network.conditions.mute if self.direction == "out" else run.network.conditions.deaf
        mutes.update(dict.fromkeys(self.domains(run)))


class Heal(Fault, frozen=True, kw_only=True):
    """The network is whole again: no partition, no one-way failures, no loss, no throttling."""

    kind: ClassVar[str] = "heal"

    def apply(self, run: SimulationContext) -> None:
        """Reset the conditions."""
        run.network.conditions.heal()


class Loss(Fault, frozen=True, kw_only=True):
    """Messages are lost without a sign.

    Attributes:
        share: of all messages.
    """

    kind: ClassVar[str] = "loss"
    share: Share

    def apply(self, run: SimulationContext) -> None:
        """Set the loss."""
        run.network.conditions.loss = self.share


class Throttle(FaultOfSome, frozen=True, kw_only=True):
    """All messages of and to some domains take longer.

    Attributes:
        factor: on their times.
    """

    kind: ClassVar[str] = "throttle"
    factor: Positive = 10.0

    def apply(self, run: SimulationContext) -> None:
        """Slow them down."""
        run.network.conditions.slow.update(dict.fromkeys(self.domains(run), self.factor))


class Pause(FaultOfSome, frozen=True, kw_only=True):
    """Domains halt, and then handle everything that arrived meanwhile: garbage collection, a snapshot, a laptop's lid.

    Attributes:
        for_s: duration of one pause.
        every_s: the next domains pause after this time; 0: once only.
        within_s: seconds over which the pauses of one round are spread.
    """

    kind: ClassVar[str] = "pause"
    for_s: Positive = 10.0
    every_s: Seconds = 0.0
    within_s: Seconds = 0.0

    def apply(self, run: SimulationContext) -> None:
        """Pause some, and schedule the next pauses."""

        def halt(domain: int) -> None:
            run.world.pause(domain)
            run.at(run.time + self.for_s, lambda: run.world.resume(domain))

        spread(run, self.domains(run), self.within_s, halt)
        if self.every_s:
            run.at(run.time + self.every_s, lambda: self.apply(run))


def spread(run: SimulationContext, domains: Sequence[int], within_s: float, act: Act) -> None:
    """Act on each domain, evenly over a time."""
    for at, domain in enumerate(domains):
        if within_s:
            run.at(run.time + within_s * at / len(domains), partial(act, domain))
        else:
            act(domain)
