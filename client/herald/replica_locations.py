"""Replica locations: which replicas do not serve an RP or a durable subscription, and where it was stated to be. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from herald.errors import HeraldError, Problem
from herald.rollover import is_moved, learnable, named
from herald.session import Target

REDIRECTS_MAX = 1000  # redirects of a target back to a replica that refused it: beyond them it is served nowhere
TRAILS_MAX = 10_000  # targets that some replica refused; with more, the oldest are discarded and found out again


@dataclass(slots=True)
class Trail:
    """The refusals of one target, and its stated locations."""

    refused: dict[str, HeraldError] = field(default_factory=dict)
    learned: list[str] = field(default_factory=list)
    redirects: int = 0


@dataclass(slots=True)
class ReplicaLocations:
    """The replica locations of one client.

    Attributes:
        urls: the domains that the program named, the preferred one first.
        accepted: targets that some replica has served.
    """

    urls: list[str]
    accepted: set[Target] = field(default_factory=set)
    _trails: dict[Target, Trail] = field(default_factory=dict)

    def candidates(self, target: Target) -> list[str]:
        """Return all replicas that a target may be at, in the order of preference."""
        trail = self._trails.get(target)
        return list(dict.fromkeys([*self.urls, *(trail.learned if trail else [])]))

    def refused(self, target: Target) -> Mapping[str, HeraldError]:
        """Return the replicas that refuse the target, and their answers."""
        trail = self._trails.get(target)
        return trail.refused if trail else {}

    def refuses(self, target: Target, url: str, problem: Problem) -> HeraldError | None:
        """Record a replica's refusal of a target. Return the error to end with, if no replica is left that may serve
        it; the next request begins anew.
        """
        trail = self._trails.setdefault(target, Trail())
        if len(self._trails) > TRAILS_MAX:
            del self._trails[next(iter(self._trails))]
        # Two connections may ask the same replica: its answer is stored as a new mapping, which connections compare
        # with theirs.
        trail.refused = {**trail.refused, url: problem}
        if is_moved(problem):
            named_now = learnable(problem.extra.get("to"), self.urls[0])
            trail.learned += [one for one in named_now if one not in trail.learned]
            self._back_to(trail, named_now)
        if any(one not in trail.refused for one in self.candidates(target)):
            return None
        del self._trails[target]
        return named(
            {one: trail.refused[one] for one in self.candidates(target) if one in trail.refused} or {url: problem}
        )

    def _back_to(self, trail: Trail, urls: list[str]) -> None:
        """Discard earlier refusals of these replicas: a later statement prevails."""
        again = {one for one in urls if one in trail.refused and is_moved(trail.refused[one])}
        if again and trail.redirects < REDIRECTS_MAX:
            trail.redirects += 1
            trail.refused = {one: error for one, error in trail.refused.items() if one not in again}
