"""Shared-risk groups: of domains by what their records state, and of links by joint losses.

Traits are what a domain states of itself or what follows from its sponsor and address: an operator, a sponsor, an address prefix, a zone. A trait that one
domain has alone is no shared risk. What no record states shows in the losses: links that lose runs in the same intervals
more often than chance explains share something, for example a cable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log, sqrt

import msgspec

from eventing.overlay.machine import Id
from eventing.overlay.routing.link_estimates import HALF_LIFE_S

SURVIVAL = {"operator": 0.9995, "sponsor": 0.9999, "prefix": 0.9998, "zone": 0.9998}
"""Probability that a group of each kind is up at a time (guess: four, one, two and two hours of outage a year, rounded up; no measurement
of independent operators of one federation is published). A kind that is not named here makes no group."""
TOGETHER_INTERVALS_MIN = 8.0
"""Intervals, decayed, in which both links lost, before they can share a risk: fewer happen by chance."""
TOGETHER_SHARE_MIN = 0.3
"""Correlation of losses from which two links share a risk (guess: what lies below costs less than 1 % of what a second path gains)."""
TOGETHER_SIGMAS = 4.0
"""Standard deviations above chance: of 435 pairs of 30 links, one in 70 sets has a pair above by chance."""
PAIRS_MAX = 2_000  # bound: pairs of links whose losses are compared; further pairs are not


class JointLosses(msgspec.Struct, frozen=True):
    """Intervals in which two links were used both, decayed with a half-life of one day.

    Attributes:
        intervals: all of them.
        first, second: those in which the first link, and the second, lost a run.
        both: those in which both did.
        at: time of the last one.
    """

    intervals: float = 0.0
    first: float = 0.0
    second: float = 0.0
    both: float = 0.0
    at: float = 0.0

    @property
    def correlation(self) -> float:
        """Return the correlation of the two losses, -1 to 1 (the phi coefficient); 0 while one of them is constant."""
        if self.intervals <= 0.0:
            return 0.0
        one, other, both = (of / self.intervals for of in (self.first, self.second, self.both))
        spread = one * (1.0 - one) * other * (1.0 - other)
        return (both - one * other) / sqrt(spread) if spread > 0.0 else 0.0

    @property
    def shared(self) -> bool:
        """Return True if chance does not explain how often both lost together."""
        if self.both < TOGETHER_INTERVALS_MIN:
            return False
        return self.correlation >= max(TOGETHER_SHARE_MIN, TOGETHER_SIGMAS / sqrt(self.intervals))


def groups_by_traits(traits: Mapping[Id, Mapping[str, str]]) -> tuple[dict[str, float], dict[Id, tuple[str, ...]]]:
    """Return the groups of some domains, with their survival, and the groups that each domain is a member of.

    Args:
        traits: of each domain, values by kind (`SURVIVAL`); an empty value is none.
    """
    holders: dict[str, list[Id]] = {}
    survival: dict[str, float] = {}
    for domain, of in traits.items():
        for kind, value in of.items():
            if value and kind in SURVIVAL:
                holders.setdefault(f"{kind}:{value}", []).append(domain)
                survival[f"{kind}:{value}"] = SURVIVAL[kind]
    shared = {group: domains for group, domains in holders.items() if len(domains) > 1}
    members: dict[Id, tuple[str, ...]] = {}
    for group, domains in shared.items():
        for domain in domains:
            members[domain] = (*members.get(domain, ()), group)
    return {group: survival[group] for group in shared}, members


def interval_counted(together: JointLosses, now: float, first_lost: bool, second_lost: bool) -> JointLosses:
    """Add one interval in which both links were used."""
    share = exp(-log(2.0) * max(now - together.at, 0.0) / HALF_LIFE_S)
    return JointLosses(
        intervals=together.intervals * share + 1.0,
        first=together.first * share + first_lost,
        second=together.second * share + second_lost,
        both=together.both * share + (first_lost and second_lost),
        at=max(now, together.at),
    )


def groups_by_losses(pairs: Mapping[tuple[Id, Id], JointLosses]) -> list[tuple[tuple[Id, ...], float]]:
    """Return the groups of links with joint losses, each with its survival: chained pairs are one group.

    Args:
        pairs: of links, by any names; those beyond PAIRS_MAX are left out.
    """
    shared = [(pair, of) for pair, of in list(pairs.items())[:PAIRS_MAX] if of.shared]
    group_of: dict[Id, list[Id]] = {}
    for (first, second), _ in shared:
        one, other = group_of.setdefault(first, [first]), group_of.setdefault(second, [second])
        if one is not other:
            one += other
            group_of.update(dict.fromkeys(other, one))
    groups = [links for link, links in group_of.items() if links[0] == link]
    return [(tuple(links), _survival([of for (first, _), of in shared if first in links])) for links in groups]


def own_delivery(delivery: float, survivals: Iterable[float]) -> float:
    """Return a link's probability given that its groups survive, from its delivery with all causes of loss counted."""
    for survival in survivals:
        delivery = delivery / survival if survival > 0.0 else 0.0
    return min(delivery, 1.0)


def _survival(pairs: Sequence[JointLosses]) -> float:
    """Return the share of intervals without a common loss, of the pair that shows the most."""
    return 1.0 - max((of.both + 1.0) / (of.intervals + 2.0) for of in pairs)
