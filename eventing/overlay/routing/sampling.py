"""Many failures at once: one integer per link, whose bit k is set if the link works in trial k.

Which domains a run reaches in all trials then takes a few operations on whole integers. Plans compare choices on one sample, the same for
all choices, some forty times as fast as by the exact computation, and verify by the latter what they have found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from hashlib import shake_256

from eventing.overlay.machine import Id
from eventing.overlay.routing.graph import RouteGraph, RouteLink

TRIALS_MAX = 1_000_000  # bound: trials of a sample; a sample of more is refused
_DIGITS = 24
"""Binary digits to which probabilities are rounded: 6e-8."""

Bits = Callable[[str, int], int]
"""Draws a number of evenly distributed bits for the named cause of failure."""

_Ways = dict[Id, list[tuple[int, Id]]]
"""Links of each domain: the trials in which they work, and their other end."""


def bits_of_name(name: str, count: int) -> int:
    """Return bits that follow from the name: every domain that plans compares choices on the same trials."""
    return int.from_bytes(shake_256(name.encode()).digest((count + 7) // 8), "little") & ((1 << count) - 1)


class FailureSample:
    """Failures of all links of a graph in a number of trials, in all of which the groups of the origin survive.

    Args:
        origin: where runs start.
        trials: 1 to TRIALS_MAX.
        bits: source of randomness.
    """

    def __init__(self, graph: RouteGraph, origin: Id, trials: int, bits: Bits = bits_of_name) -> None:
        if not 1 <= trials <= TRIALS_MAX:
            raise ValueError(f"{trials} trials: 1 to {TRIALS_MAX}")
        self._graph = graph
        self._origin = origin
        self._all = (1 << trials) - 1
        given = graph.members.get(origin, ())
        self._alive = {
            risk: self._all if risk in given else self._drawn(f"risk {risk}", survival, bits)
            for risk, survival in graph.risks.items()
        }
        self._up: dict[RouteLink, int] = {}
        self._of: dict[Id, tuple[int, int]] = {}
        self._base: tuple[RouteLink, ...] | None = None
        self._base_ways: _Ways = {}
        self._base_reached: dict[Id, int] = {}
        count: dict[tuple[Id, Id], int] = {}
        for link in graph.links:
            ends = (link.a, link.b)
            count[ends] = count.get(ends, 0) + 1  # parallel links fail apart
            up = self._drawn(f"link {link.a} {link.b} {count[ends]}", link.probability, bits)
            for risk in graph.link_risks(link, origin):
                up &= self._alive[risk]
            self._up[link] = up

    def reliability(self, links: Iterable[RouteLink], receivers: Collection[Id]) -> dict[Id, float]:
        """Return the share of trials in which each receiver is reached, of those in which its own groups survive."""
        reached = {self._origin: self._all}
        self._spread(self._ways(links), reached, [self._origin])
        return self._shares(reached, receivers)

    def raised(
        self, links: Iterable[RouteLink], more: Iterable[RouteLink], receivers: Collection[Id]
    ) -> dict[Id, float]:
        """Return the same for some links and more of them; quick for one choice of links after the other with the same `links`."""
        base = tuple(links)
        if base != self._base:
            reached = {self._origin: self._all}
            ways = self._ways(base)
            self._spread(ways, reached, [self._origin])
            self._base, self._base_ways, self._base_reached = base, ways, reached
        reached, ways = dict(self._base_reached), dict(self._base_ways)
        ends: dict[Id, None] = {}
        for link in more:
            for end in (link.a, link.b):
                ways[end] = [*ways.get(end, ()), (self._up[link], link.other(end))]
                ends[end] = None
        self._spread(ways, reached, [end for end in ends if end in reached])
        return self._shares(reached, receivers)

    def _shares(self, reached: dict[Id, int], receivers: Collection[Id]) -> dict[Id, float]:
        result = {}
        for receiver in receivers:
            counted, trials = self._counted(receiver)
            result[receiver] = (reached.get(receiver, 0) & counted).bit_count() / trials if trials else 0.0
        return result

    def _counted(self, receiver: Id) -> tuple[int, int]:
        """Return the trials in which a receiver's own groups survive, and their number."""
        if receiver not in self._of:
            counted = self._all
            for risk in self._graph.members.get(receiver, ()):
                counted &= self._alive[risk]
            self._of[receiver] = counted, counted.bit_count()
        return self._of[receiver]

    def _ways(self, links: Iterable[RouteLink]) -> _Ways:
        ways: _Ways = {}
        for link in links:
            up = self._up[link]
            ways.setdefault(link.a, []).append((up, link.b))
            ways.setdefault(link.b, []).append((up, link.a))
        return ways

    def _spread(self, ways: _Ways, reached: dict[Id, int], start: list[Id]) -> None:
        """Carry on what some domains are reached by, until nothing changes."""
        queue = start
        while queue:
            following: dict[Id, None] = {}
            for domain in queue:
                here = reached[domain]
                for up, end in ways.get(domain, ()):
                    before = reached.get(end, 0)
                    now = before | (here & up)
                    if now != before:
                        reached[end] = now
                        following[end] = None
            queue = list(following)

    def _drawn(self, name: str, probability: float, bits: Bits) -> int:
        """Draw bits that are 1 with a probability: the random binary fraction of each trial is compared with it digit by digit."""
        threshold = round(probability * (1 << _DIGITS))
        if threshold >> _DIGITS:
            return self._all
        drawn = 0
        for digit in range(_DIGITS):
            is_set = threshold >> digit & 1
            if is_set or drawn:  # zeros before the first digit that is set change nothing
                random = bits(f"{name} {digit}", self._all.bit_length())
                drawn = drawn | random if is_set else drawn & random
        return drawn
