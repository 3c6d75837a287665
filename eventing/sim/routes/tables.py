"""The measurements behind docs/federation/reliability-tables.md, each from a seed of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import sqrt
from typing import NamedTuple

from eventing.overlay.machine import Id
from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.planning import plan_routes
from eventing.overlay.routing.reliability import reliability_of
from eventing.overlay.routing.sampling import FailureSample
from eventing.sim.context import MakeChance
from eventing.sim.routes.graphs import bridge, counted, drawn_federation, drawn_graph, graph_of, grid, malachi
from eventing.sim.routes.local_decisions import LocalResult, decide_locally

CLOSED_FORMS = (
    ("bridge, links of 0.9", bridge(), "s", "t", 0.97848),
    ("bridge, links of 0.5", bridge(0.5), "s", "t", 0.5),
    ("3 x 3 grid, corner to corner", grid(3), (0, 0), (2, 2), 0.972502171407),
    ("4 x 4 grid, corner to corner", grid(4), (0, 0), (3, 3), 0.975046349577),
    ("5 x 5 grid, corner to corner", grid(5), (0, 0), (4, 4), 0.975556589505),
    ("all links between 4 domains", graph_of(combinations(range(4), 2)), 0, 3, 0.997848),
    ("all links between 5 domains", graph_of(combinations(range(5), 2)), 0, 4, 0.9997948026),
)
"""Graph, ends, and the value that is published or follows from the closed form, to the digits that are given."""
MALACHI_TARGETS = (0.95, 0.99, 0.995, 0.999)
LOCAL_TARGET = 0.99
STRICT_TARGET = 0.999
DELIVERY_TARGET = 0.99
OPERATORS, OPERATOR_SURVIVAL = 8, 0.99


class CountedResult(NamedTuple):
    """Comparison with counting: number of graphs and receivers, and the largest difference."""

    graphs: int
    receivers: int
    largest: float


class FewestResult(NamedTuple):
    """Malachi's destinations at one target: links of the plan, the fewest of all choices that meet it, the lower reliability."""

    target: float
    planned: int
    fewest: int
    reliability: float


class StrictResult(NamedTuple):
    """A plan for STRICT_TARGET: links of the graph and of the plan, its share of the cost of all links, receivers that meet the target, all
    receivers, the reliability of the one that is reached least.
    """

    links: int
    planned: int
    cost: float
    met: int
    receivers: int
    least: float


class DeliveryResult(NamedTuple):
    """Simulated delivery of a plan.

    Attributes:
        seed: of the graph.
        aware: whether the plan knew the shared risks.
        links: chosen.
        planned, measured: of the receiver that is reached least, by the plan and in the simulation.
        sigmas: largest difference of all receivers between the true reliability and the simulation, in standard deviations.
        missed: receivers whose simulated delivery is below the target by more than three standard deviations.
    """

    seed: int
    aware: bool
    links: int
    planned: float
    measured: float
    sigmas: float
    missed: int


def closed_forms() -> Iterator[tuple[str, float, float]]:
    """Yield name, computed and published value of each known graph."""
    for name, graph, origin, receiver, published in CLOSED_FORMS:
        yield name, reliability_of(graph, graph.links, origin, [receiver])[receiver].lower, published


def against_counting(make_chance: MakeChance, graphs: int) -> CountedResult:
    """Compare the evaluator with counting all combinations, on drawn graphs of up to 12 links."""
    chance = make_chance("counting")
    receivers, largest = 0, 0.0
    for _ in range(graphs):
        graph = drawn_graph(chance)
        ends = _domains(graph)
        found = reliability_of(graph, graph.links, 0, ends)
        for one, value in counted(graph, graph.links, 0, ends).items():
            receivers += 1
            largest = max(largest, abs(found[one].lower - value), abs(found[one].upper - value))
    return CountedResult(graphs, receivers, largest)


def fewest_links() -> Iterator[FewestResult]:
    """Yield the plan for Malachi's destinations beside the smallest of all 512 choices, at each target."""
    graph, ends = malachi(), ("one", "two")
    for target in MALACHI_TARGETS:
        plan = plan_routes(graph, "origin", ends, target)
        fewest = next(
            size
            for size in range(len(graph.links) + 1)
            for links in combinations(graph.links, size)
            if min(of.lower for of in reliability_of(graph, links, "origin", ends).values()) >= target
        )
        reached = min(of.lower for of in plan.reliability.values())
        yield FewestResult(target, len(plan.links), fewest, reached)


def local_decisions(make_chance: MakeChance, graphs: int, search_rounds: int) -> Iterator[LocalResult]:
    """Yield the outcome of local decisions on each of some graphs of 30 domains."""
    for seed in range(graphs):
        chance = make_chance(f"local {seed}")
        yield decide_locally(drawn_federation(chance), LOCAL_TARGET, chance, search_rounds)


def strict_plans(make_chance: MakeChance, graphs: int) -> Iterator[StrictResult]:
    """Yield the plan for STRICT_TARGET on each of some graphs of 30 domains, with the whole map."""
    for seed in range(graphs):
        graph = drawn_federation(make_chance(f"strict {seed}"))
        receivers = _domains(graph)[1:]
        plan = plan_routes(graph, 0, receivers, STRICT_TARGET)
        lower = [plan.reliability[one].lower for one in receivers]
        met = sum(1 for one in lower if one >= STRICT_TARGET)
        whole = sum(link.cost for link in graph.links)
        yield StrictResult(len(graph.links), len(plan.links), plan.cost / whole, met, len(receivers), min(lower))


def deliveries(make_chance: MakeChance, graphs: int, trials: int) -> Iterator[DeliveryResult]:
    """Yield simulated deliveries on graphs with operators of several domains, planned with and without these."""
    for seed in range(graphs):
        chance = make_chance(f"delivery {seed}")
        drawn = drawn_federation(chance)
        ends = _domains(drawn)
        risks = {f"operator {at}": OPERATOR_SURVIVAL for at in range(OPERATORS)}
        members = {one: (f"operator {chance.randrange(OPERATORS)}",) for one in ends}
        true = RouteGraph(drawn.links, risks, members)
        sample = FailureSample(true, 0, trials, lambda _, count: chance.getrandbits(count))  # noqa: B023
        for graph, aware in ((true, True), (drawn, False)):
            plan = plan_routes(graph, 0, ends, DELIVERY_TARGET)
            planned = min(of.lower for of in plan.reliability.values())
            measured = sample.reliability(plan.links, ends)
            exact = _middles(true, plan.links, ends)
            sigmas = {one: _sigma(exact[one], trials * true.own_survival(one, 0)) for one in ends if one != 0}
            yield DeliveryResult(
                seed=seed,
                aware=aware,
                links=len(plan.links),
                planned=planned,
                measured=min(measured.values()),
                sigmas=max(abs(measured[one] - exact[one]) / sigma for one, sigma in sigmas.items()),
                missed=sum(measured[one] < DELIVERY_TARGET - 3.0 * sigma for one, sigma in sigmas.items()),
            )


def _middles(graph: RouteGraph, links: tuple[RouteLink, ...], receivers: list[Id]) -> dict[Id, float]:
    found = reliability_of(graph, links, 0, receivers, states_max=20_000)
    return {one: (of.lower + of.upper) / 2.0 for one, of in found.items()}


def _sigma(reliability: float, trials: float) -> float:
    return sqrt(max(reliability * (1.0 - reliability), 1.0 / trials) / trials)


def _domains(graph: RouteGraph) -> list[Id]:
    return sorted(dict.fromkeys([0, *(end for link in graph.links for end in (link.a, link.b))]))
