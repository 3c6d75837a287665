"""Graph of routes: links with their delivery probability, cost and shared-risk groups.

Restricted flooding sends each run over every chosen link, so a receiver gets it if any path of working links leads from
the origin to the receiver. A link works if it delivers (`probability`) and every shared-risk group that it belongs to
survives. Groups fail independently of each other and of the links' own losses; one group fails for all its links at once.

A domain belongs to groups too (its operator, its zone): with the group, all links of the domain fail. The reliability of a receiver is given
that the groups of the origin and of the receiver itself survive: a domain that is down receives nothing whatever the routes are, and
what it missed when it is back.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, log, prod
from types import MappingProxyType

import msgspec

from eventing.overlay.machine import Id

GRAPH_LINKS_MAX = 2_000  # bound: links of one graph of routes; the graph is refused
OWN_RISKS_MAX = 8  # bound: shared-risk groups of one link or domain; the graph is refused


class RouteLink(msgspec.Struct, frozen=True):
    """A link between two domains, usable in both directions.

    Attributes:
        a, b: its ends.
        probability: of delivering a run, given that its groups survive; 0 to 1.
        cost: bytes that one event costs on this link, or any other unit that all links share; above 0.
        risks: names of the shared-risk groups that it belongs to.
    """

    a: Id
    b: Id
    probability: float
    cost: float = 1.0
    risks: tuple[str, ...] = ()

    def other(self, end: Id) -> Id:
        """Return the end that is not `end`."""
        return self.b if end == self.a else self.a


class RouteGraph:
    """Links that a plan may choose from.

    Args:
        links: all different from each other.
        risks: survival probability of each shared-risk group, by name.
        members: groups that each domain itself belongs to; none for a domain that is not named.

    Raises:
        ValueError: for a number out of its range, a link of a domain with itself, two equal links, or an unknown group.
    """

    __slots__ = ("links", "members", "risks")

    def __init__(
        self,
        links: tuple[RouteLink, ...],
        risks: Mapping[str, float] = MappingProxyType({}),
        members: Mapping[Id, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        if len(links) > GRAPH_LINKS_MAX:
            raise ValueError(f"{len(links)} links: at most {GRAPH_LINKS_MAX}")
        for name, survival in risks.items():
            if not 0.0 <= survival <= 1.0:
                raise ValueError(f"risk {name}: survival {survival} is not from 0 to 1")
        for domain, groups in members.items():
            _check_risks(f"domain {domain}", groups, risks)
        for link in links:
            _check(link, risks)
        if len(dict.fromkeys(links)) < len(links):
            raise ValueError("two links are equal")
        self.links = links
        self.risks = risks
        self.members = members

    def own_survival(self, receiver: Id, origin: Id) -> float:
        """Return the probability that the groups of a receiver survive, given that those of the origin do."""
        given = self.members.get(origin, ())
        return prod(self.risks[risk] for risk in dict.fromkeys(self.members.get(receiver, ())) if risk not in given)

    def link_risks(self, link: RouteLink, origin: Id) -> list[str]:
        """Return the groups that a link fails with, its ends' included, those of the origin left out."""
        given = self.members.get(origin, ())
        all_risks = dict.fromkeys((*link.risks, *self.members.get(link.a, ()), *self.members.get(link.b, ())))
        return [risk for risk in all_risks if risk not in given]

    def length(self, link: RouteLink, origin: Id) -> float:
        """Return the length of a link, infinite if it never works: the sum along a path is about -ln of its reliability.

        Half of a domain's groups count for each of the two links by which a path passes it. Groups that distant links of a path share count
        more than once, so a path through one group is ranked too low, never too high.
        """
        given = self.members.get(origin, ())
        factors = [(link.probability, 1.0)]
        factors += [(self.risks[risk], 1.0) for risk in dict.fromkeys(link.risks) if risk not in given]
        for end in (link.a, link.b):
            factors += [(self.risks[risk], 0.5) for risk in self.members.get(end, ()) if risk not in given]
        return sum(-log(of) * share if of > 0.0 else inf for of, share in factors)


def _check(link: RouteLink, risks: Mapping[str, float]) -> None:
    if link.a == link.b:
        raise ValueError(f"link of {link.a} with itself")
    if not 0.0 <= link.probability <= 1.0:
        raise ValueError(f"link {link.a}-{link.b}: probability {link.probability} is not from 0 to 1")
    if not 0.0 < link.cost < float("inf"):
        raise ValueError(f"link {link.a}-{link.b}: cost {link.cost} is not above 0 and finite")
    _check_risks(f"link {link.a}-{link.b}", link.risks, risks)


def _check_risks(of: str, groups: tuple[str, ...], risks: Mapping[str, float]) -> None:
    if len(groups) > OWN_RISKS_MAX:
        raise ValueError(f"{of}: {len(groups)} risks, at most {OWN_RISKS_MAX}")
    for risk in groups:
        if risk not in risks:
            raise ValueError(f"{of}: risk {risk} has no survival")
