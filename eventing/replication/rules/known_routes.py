"""Knowledge of links among the participants of an RP, and the graph of routes that follows from it. Pure.

A link is known by what its ends measured: this domain by its own tallies, other ends by their rows in gossip (overlay/link_rows.py). Where both
ends state it, the lower counts. Probabilities are rounded down to steps of a tenth of a decade of loss, so that both ends plan with the
same numbers almost always though each has its own a little sooner, and so that rows change rarely.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from ipaddress import ip_address, ip_network
from math import floor
from urllib.parse import urlsplit

import msgspec

from eventing.overlay.link_rows import MILLISECONDS_MAX, PROBABILITY_MAX, MeasuredLink
from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.link_estimates import LinkEstimate, contradicts_plan, stepped
from eventing.overlay.routing.shared_risks import groups_by_traits

TRIALS_MIN = 50.0
"""Trials from which on a link counts as measured: without a loss, its lower bound is 0.94 then."""
DATA_TRIALS_MIN = 8.0
"""Trials with events from which on they can contradict those without (guess: three losses among them are three sigma)."""


class LinkTrials(msgspec.Struct, frozen=True):
    """Trials of a link, decayed: with events (`delivered`, `lost`), and without (`answered`, `silent`)."""

    delivered: float
    lost: float
    answered: float
    silent: float

    @property
    def data(self) -> float:
        """Number of trials with events."""
        return self.delivered + self.lost

    @property
    def probes_doubted(self) -> bool:
        """True if the link loses events so much more often than probes that only events count."""
        if self.data < DATA_TRIALS_MIN:
            return False
        probed = LinkEstimate(self.answered, self.silent).mean
        return contradicts_plan(probed, round(self.delivered), round(self.data))

    @property
    def estimate(self) -> LinkEstimate:
        """The estimate, from all trials that can be believed."""
        if self.probes_doubted:
            return LinkEstimate(self.delivered, self.lost)
        return LinkEstimate(self.delivered + self.answered, self.lost + self.silent)


def measured_link(peer: str, trials: LinkTrials, delay_ms: float, jitter_ms: float) -> MeasuredLink:
    """Return what is stated of a link to a domain, with the probability rounded down to its step."""
    estimate = trials.estimate
    lower = floor(stepped(estimate.planned) * PROBABILITY_MAX)
    delay, jitter = (round(min(max(0.0, ms), MILLISECONDS_MAX), -1) for ms in (delay_ms, jitter_ms))
    count = int(estimate.delivered + estimate.lost)
    return MeasuredLink(peer, lower, int(delay), int(jitter), 1 << count.bit_length() - 1 if count else 0)


LINKS_PLANNED_MAX = 256  # bound: links that a plan chooses from; of each domain the ones that deliver best are kept


class KnownRoutes(msgspec.Struct, frozen=True):
    """The graph of an RP's participants as this domain knows it.

    Attributes:
        stated: participants that state their links, this one included.
        unmeasured: links with fewer than TRIALS_MIN trials, as pairs of names.
        probabilities: of each link, by its ends in order.
    """

    graph: RouteGraph
    stated: tuple[str, ...]
    unmeasured: tuple[tuple[str, str], ...]
    probabilities: dict[tuple[str, str], float]


def known_routes(
    participants: Collection[str],
    links: Mapping[str, Sequence[MeasuredLink]],
    traits: Mapping[str, Mapping[str, str]],
) -> KnownRoutes:
    """Make the graph of routes between participants.

    Args:
        links: by domain, the links that it states; the own ones among them.
        traits: by domain, what puts it into shared-risk groups (`traits_of`).
    """
    of = sorted(participants)
    claims: dict[tuple[str, str], list[MeasuredLink]] = {}
    for domain in of:
        for link in links.get(domain, ()):
            if link.peer in participants and link.peer != domain:
                claims.setdefault((min(domain, link.peer), max(domain, link.peer)), []).append(link)
    probabilities = _best({ends: min(link.probability for link in claims[ends]) for ends in sorted(claims)})
    risks, members = groups_by_traits({domain: traits.get(domain, {}) for domain in of})
    routes = tuple(RouteLink(a, b, probability) for (a, b), probability in probabilities.items())
    unmeasured = tuple(ends for ends in probabilities if min(link.trials for link in claims[ends]) < TRIALS_MIN / 2)
    stated = tuple(domain for domain in of if domain in links)
    return KnownRoutes(RouteGraph(routes, risks, members), stated, unmeasured, probabilities)


def _best(probabilities: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return LINKS_PLANNED_MAX links at most, as many of the best of each domain as that allows."""
    of_each: dict[str, list[tuple[str, str]]] = {}
    for ends in sorted(probabilities, key=lambda ends: (-probabilities[ends], ends)):
        for end in ends:
            of_each.setdefault(end, []).append(ends)
    kept = list(probabilities)
    most = max(map(len, of_each.values()), default=0)
    while len(kept) > LINKS_PLANNED_MAX and most > 1:
        most -= 1
        chosen = dict.fromkeys(ends for links in of_each.values() for ends in links[:most])
        kept = [ends for ends in probabilities if ends in chosen]
    return {ends: probabilities[ends] for ends in kept[:LINKS_PLANNED_MAX]}


def traits_of(url: str, zone: str, operator: str, sponsor: str) -> dict[str, str]:
    """Return what puts a domain into shared-risk groups; empty values are none."""
    return {"operator": operator, "sponsor": sponsor, "prefix": address_prefix(url), "zone": zone}


def address_prefix(url: str) -> str:
    """Return the network that an address belongs to, /24 of IPv4 or /48 of IPv6; empty for host names, which are not
    resolved, and for addresses of one machine."""
    try:
        address = ip_address(urlsplit(url).hostname or "")
    except ValueError:
        return ""
    if address.is_loopback:
        return ""
    return str(ip_network((address, 24 if address.version == 4 else 48), strict=False))
