"""A recorded run for pictures: a small federation finds its links, one domain publishes, some domains crash, the tree is mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from eventing.overlay.dissemination_messages import RunReceived
from eventing.sim.context import MakeChance
from eventing.sim.federation import sponsor_of
from eventing.sim.run import SimulationRun
from eventing.sim.scenario import Scenario

DOMAINS, SEED = 60, 7
"""Of the pictures in docs/federation/overlay-pictures."""
GAP_S = 3.0
WARM, LAST = 25, 40
"""Numbers of the events that are drawn, beside the first one: over a tree that stands, and after the crash."""
CRASH_S = GAP_S * (WARM + 1)
CRASHED = 15

_SCENARIO = Scenario(
    name="pictures",
    title="A federation for pictures",
    duration_s=GAP_S * (LAST + 1),
    settle_s=60.0,
    faults=({"kind": "crash", "at_s": CRASH_S, "count": CRASHED},),
    measurements=({"kind": "broadcasts", "origins": "one", "rounds": LAST, "gap_s": GAP_S},),
)


@dataclass
class Spread:
    """The way of one event.

    Attributes:
        origin: the domain that published it.
        came_from: for each domain that it reached, the domain that sent it first.
        hops: for each domain, from the origin.
        arrived_s: for each domain, after the publication.
        copies: (sender, receiver) of each redundant delivery.
    """

    origin: int
    came_from: dict[int, int] = field(default_factory=dict)
    hops: dict[int, int] = field(default_factory=dict)
    arrived_s: dict[int, float] = field(default_factory=dict)
    copies: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Recording:
    """A run, as far as it is drawn.

    Attributes:
        domains, seed: of the run.
        sponsors: of each domain; None: the founder.
        links: when the links are settled: for each domain its peers, and for each peer, True if the domain chose the link.
        spreads: by the number of the event.
        crashed: domains that stopped before the last event.
    """

    domains: int
    seed: int
    sponsors: dict[int, int | None]
    links: dict[int, dict[int, bool]]
    spreads: dict[int, Spread]
    crashed: frozenset[int]


def record(make_chance: MakeChance, *, domains: int = DOMAINS, seed: int = SEED) -> Recording:
    """Run the federation of the pictures.

    Args:
        make_chance: makes a generator from a text, as for every run.
    """
    run = SimulationRun(replace(_SCENARIO, domains=domains), seed, make_chance)
    found: dict[int, Spread] = {}
    links: dict[int, dict[int, bool]] = {}
    run.on([RunReceived], _receiver(run, found))
    run.at(0.0, lambda: links.update(_links(run)))
    run.go()
    return Recording(
        domains,
        seed,
        {domain: None if (by := sponsor_of(domain)) is None else int(by.sponsor) for domain in range(domains)},
        links,
        found,
        frozenset(range(domains)).difference(run.running),
    )


def _receiver(run: SimulationRun, found: dict[int, Spread]) -> Callable[[int, Any, float], None]:
    def received(domain: int, event: RunReceived, now: float) -> None:
        of = event.run
        origin, sender = int(of.path[0]), int(of.path[-1])
        for number in range(of.first + of.withheld, of.last + 1):
            spread = found.setdefault(number, Spread(origin))
            if not event.new:
                spread.copies.append((sender, domain))
                continue
            spread.came_from[domain] = sender
            spread.hops[domain] = len(of.path)
            spread.arrived_s[domain] = now - run.scenario.settle_s - (number - 1) * GAP_S

    return received


def _links(run: SimulationRun) -> dict[int, dict[int, bool]]:
    return {
        domain: {int(peer): bool(link.chosen) for peer, link in run.population.links(domain).items()}
        for domain in range(run.scenario.domains)
    }
