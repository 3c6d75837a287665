"""Steps from one choice of links to another: add what a receiver lacks, remove what is idle, replace by what is cheaper.

The steps are the same for each source of reliabilities: a sample of failures while choices are compared, the exact computation at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import log
from typing import Protocol

from eventing.overlay.machine import Id
from eventing.overlay.routing.candidates import Bundle, RouteCandidates
from eventing.overlay.routing.exhaustion import reach_most
from eventing.overlay.routing.graph import RouteLink

CLOSER_LOOKS = 8
"""RouteCandidates compared by what they do for all receivers, not only for the one furthest below the target (guess)."""
REPLACING_ROUNDS_MAX = 6  # bound: passes over all links that try to replace others; the choice found by then is used
TRIED_MAX = 20_000  # bound: choices that one plan compares; it stops to look for cheaper ones, and meets the target all the same
SCOUT_MARGIN = 1.0
"""Factors of e below the loss of the target, down to which candidates are ranked by a scout."""
_LEAST = 1e-9
"""Of a gain or a saving: smaller ones are rounding."""

Choice = dict[RouteLink, None]
"""Chosen links, in the order of choosing."""


class Judge(Protocol):
    """Tells the reliability of receivers: `FailureSample`, or the exact computation."""

    def reliability(self, links: Iterable[RouteLink], receivers: Collection[Id]) -> dict[Id, float]:
        """Return the reliability of each receiver over some links."""
        ...

    def raised(
        self, links: Iterable[RouteLink], more: Iterable[RouteLink], receivers: Collection[Id]
    ) -> dict[Id, float]:
        """Return the same over some links and more of them; asked for many `more` in turn."""
        ...


class Choosing:
    """Steps for the receivers of one origin.

    Args:
        receivers: of whom each is to meet the target.
        scout: a quicker judge, that ranks candidates and sorts out what is far from the target before `judge` is asked; None: `judge` does all.
        slack: what `scout` may be wrong by.
    """

    def __init__(
        self,
        candidates: RouteCandidates,
        receivers: Sequence[Id],
        target: float,
        judge: Judge,
        scout: Judge | None = None,
        slack: float = 0.0,
    ) -> None:
        self._candidates = candidates
        self._receivers = receivers
        self._target = target
        self._judge = judge
        self._scout = scout
        self._slack = slack
        self._tried = 0

    def raised(self, chosen: Choice, without: RouteLink | None = None) -> tuple[Choice, list[Id]]:
        """Add candidates until every receiver meets the target or no candidate helps it; return the latter as well.

        Args:
            without: link that is not to be added; None: any may be.
        """
        short: list[Id] = []
        while True:
            now = self._judge.reliability(chosen, self._receivers)
            below = [one for one in self._receivers if now[one] < self._target and one not in short]
            if not below:
                return chosen, short
            worst = min(below, key=now.__getitem__)
            bundle = self._best_bundle(chosen, worst, below, without)
            if bundle is None:
                short.append(worst)
            else:
                chosen = chosen | dict.fromkeys(bundle)

    def without_idle(self, chosen: Choice, tried: Iterable[RouteLink] | None = None) -> Choice:
        """Remove links without which every receiver meets the target too, the most expensive first.

        Args:
            tried: links that may be removed; None: all.
        """
        for link in sorted(chosen if tried is None else tried, key=lambda one: -one.cost):
            less = {one: None for one in chosen if one != link}
            if self.meets(less, (link.a, link.b)):
                chosen = less
        return chosen

    def replaced(self, chosen: Choice) -> Choice:
        """Add each link in turn and remove what becomes idle near it, as long as the choice gets cheaper."""
        for _ in range(REPLACING_ROUNDS_MAX):
            before = cost_of(chosen)
            for new in sorted(self._candidates.useful, key=lambda link: link.cost):
                if new not in chosen and self._tried < TRIED_MAX:
                    more = chosen | {new: None}
                    less = self.without_idle(more, self._near(more, new))
                    if cost_of(less) < cost_of(chosen) - _LEAST:
                        chosen = less
            if cost_of(chosen) > before - _LEAST:
                break
        return self.without_idle(chosen)

    def rerouted(self, chosen: Choice) -> Choice:
        """Do without each link in turn, add what is lacking then, and keep what is cheaper."""
        for old in sorted(chosen, key=lambda link: -link.cost):
            if old in chosen and self._tried < TRIED_MAX:
                other, short = self.raised({link: None for link in chosen if link != old}, without=old)
                if not short:
                    other = self.without_idle(other)
                    if cost_of(other) < cost_of(chosen) - _LEAST:
                        chosen = other
        return chosen

    def meets(self, chosen: Choice, first: Sequence[Id] = ()) -> bool:
        """Return True if every receiver meets the target.

        Args:
            first: domains whose own links are looked at first: without enough of them the rest need not be computed.
        """
        links = list(chosen)
        if any(one in self._receivers and reach_most(links, one) < self._target for one in first):
            return False
        self._tried += 1
        if self._scout is not None:
            seen = self._scout.reliability(links, self._receivers)
            if any(value < self._target - self._slack for value in seen.values()):
                return False
        return all(value >= self._target for value in self._judge.reliability(links, self._receivers).values())

    def _near(self, chosen: Choice, link: RouteLink) -> list[RouteLink]:
        """Return the chosen links, but this one, at most two links away from it."""
        ends = dict.fromkeys((link.a, link.b))
        for _ in range(2):
            ends |= dict.fromkeys(end for one in chosen if one.a in ends or one.b in ends for end in (one.a, one.b))
        return [one for one in chosen if one != link and one.a in ends and one.b in ends]

    def _best_bundle(self, chosen: Choice, worst: Id, below: Sequence[Id], without: RouteLink | None) -> Bundle | None:
        ranking = self._scout or self._judge
        now = ranking.reliability(chosen, self._receivers)
        ranked: list[tuple[float, int, Bundle]] = []
        for bundle in self._candidates.bundles(chosen, worst):
            if without in bundle:
                continue
            self._tried += 1
            after = ranking.raised(chosen, bundle, [worst])
            gain = self._distance(now, [worst]) - self._distance(after, [worst])
            if gain > _LEAST:
                ranked.append((-gain / cost_of(bundle), len(ranked), bundle))
        best: tuple[float, Bundle | None] = (0.0, None)
        for _, _, bundle in sorted(ranked)[:CLOSER_LOOKS]:
            after = ranking.raised(chosen, bundle, below)
            gain = (self._distance(now, below) - self._distance(after, below)) / cost_of(bundle)
            if gain > best[0]:
                best = (gain, bundle)
        return best[1]

    def _distance(self, reliability: dict[Id, float], receivers: Iterable[Id]) -> float:
        """Return how far receivers are below the target, in factors of e of the probability of a loss.

        A scout may see a receiver above the target that is below it, so by its eyes receivers have further to go.
        """
        aim = log(1.0 - self._target) - (0.0 if self._scout is None else SCOUT_MARGIN)
        return sum(max(log(max(1.0 - reliability[one], 1e-9)) - aim, 0.0) for one in receivers)


def cost_of(links: Iterable[RouteLink]) -> float:
    """Return the cost of some links together."""
    return sum(link.cost for link in links)
