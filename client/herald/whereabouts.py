"""What is known of where each rendezvous point or durable subscription is served: by which replicas it is not. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from herald.errors import HeraldError, Problem
from herald.rollover import is_moved, learnable, named
from herald.session import Target

TURNS_MAX = 1000  # answers that sent a target back to where it came from: replicas that never agree are no place
TRAILS_MAX = 10_000  # targets that some replica refused; with more, the oldest are forgotten and found out again


@dataclass(slots=True)
class Trail:
    """Of one target: who refused it, and where it was said to be."""

    refused: dict[str, HeraldError] = field(default_factory=dict)
    learned: list[str] = field(default_factory=list)
    turns: int = 0


@dataclass(slots=True)
class Whereabouts:
    """Of one client.

    Attributes:
        urls: the domains that the program named, the preferred one first.
        accepted: targets that some replica has served.
    """

    urls: list[str]
    accepted: set[Target] = field(default_factory=set)
    _trails: dict[Target, Trail] = field(default_factory=dict)

    def candidates(self, target: Target) -> list[str]:
        """All replicas that a target may be at, in the order of preference."""
        trail = self._trails.get(target)
        return list(dict.fromkeys([*self.urls, *(trail.learned if trail else [])]))

    def refused(self, target: Target) -> Mapping[str, HeraldError]:
        """The replicas that refuse it, and their answers."""
        trail = self._trails.get(target)
        return trail.refused if trail else {}

    def refuses(self, target: Target, url: str, problem: Problem) -> HeraldError | None:
        """A replica refuses a target. What to end with, if none is left that may serve it; the next wish begins anew."""
        trail = self._trails.setdefault(target, Trail())
        if len(self._trails) > TRAILS_MAX:
            del self._trails[next(iter(self._trails))]
        # Two connections may ask the same replica: its answer is kept as a new mapping, connections compare with theirs.
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
        """What these replicas said before, that it was elsewhere, is older than what was said now."""
        again = {one for one in urls if one in trail.refused and is_moved(trail.refused[one])}
        if again and trail.turns < TURNS_MAX:
            trail.turns += 1
            trail.refused = {one: error for one, error in trail.refused.items() if one not in again}
