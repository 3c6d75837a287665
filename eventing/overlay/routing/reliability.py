"""Reliability of restricted flooding: the probability that a run reaches each receiver over the chosen links.

Two-terminal reliability of each receiver with shared risks, for all receivers in one pass. It is factoring (each link either works
or does not, each shared-risk group survives or does not) in a fixed order, with equal subproblems merged: after some
links, all that matters for the rest is which of the *open* domains (those with links still to be processed) are connected with each other,
which of them with the origin, and which open groups survived. (Hardy, Lucet, Limnios, "K-Terminal Network Reliability Measures
With Binary Decision Diagrams", IEEE Trans. Reliability 56, 2007; Rosenthal, "Computing the Reliability of Complex Networks", 1977.)

    forward:  the probability of each state after each step
    backward: the probability, from each state on, that each of its blocks becomes connected with the origin
    result:   the sum of their products at the step after which the receiver is open

Where there are more states than `states_max` after a step, the least probable are given up: their outcome is unknown, and the result
is a pair of bounds that differ by at most their probability (a partition bound, as in Dotson and Gobien, 1979).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from eventing.overlay.machine import Id
from eventing.overlay.routing.elimination import Branch, Reduced, reduced
from eventing.overlay.routing.graph import RouteGraph, RouteLink

STATES_MAX = (
    2_000  # bound: states after one step of a reliability; the least probable are given up, and the result is bounds
)

_Labels = tuple[int, ...]
_State = tuple[_Labels, tuple[bool, ...]]
"""Block of each open domain (0: connected with the origin; others by first place), and whether each open group survived."""
_LOST = -1
"""Of a block: none of its domains is open, so it is never connected with the origin."""
_UNKNOWN = -1
"""Of a transition: its state was given up."""


class Estimate(msgspec.Struct, frozen=True):
    """Reliability of one receiver, between two bounds; the same two where it is exact (to about 1e-12)."""

    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        """Return True if the bounds are one value."""
        return self.lower == self.upper


class _Transition(NamedTuple):
    """A way on from a state: its probability, the place of the next state, and the next block of each block."""

    weight: float
    target: int
    blocks: _Labels


class _Step(NamedTuple):
    """States before a step and their ways on.

    Attributes:
        labels, chances: of each state.
        opened: those of the open domains that were opened by the step before, with their places in the labels.
        given_up: probability of the states that were given up until here.
        ways: transitions of each state.
    """

    labels: list[_Labels]
    chances: list[float]
    opened: list[tuple[int, Id]]
    given_up: float
    ways: list[list[_Transition]]


def reliability_of(
    graph: RouteGraph,
    links: Sequence[RouteLink],
    origin: Id,
    receivers: Collection[Id],
    states_max: int = STATES_MAX,
) -> dict[Id, Estimate]:
    """Compute the reliability of each receiver when runs of the origin go over some links of a graph.

    Args:
        links: chosen ones, without repetition.
        receivers: the origin itself is reached always.
        states_max: the work that may be done; fewer states give wider bounds sooner.
    """
    result = dict.fromkeys(receivers, Estimate(0.0, 0.0))
    if origin in result:
        result[origin] = Estimate(1.0, 1.0)
    steps = _forward(reduced(graph, links, origin, receivers), origin, states_max)
    lower = _backward(steps, result, 0.0)
    upper = _backward(steps, result, 1.0) if steps and steps[-1].given_up else lower
    for receiver, low in lower.items():
        # All links of a receiver fail with its own groups, so the condition that these survive is a division.
        own = graph.own_survival(receiver, origin)
        if own > 0.0:
            result[receiver] = Estimate(min(low / own, 1.0), min(max(low, upper[receiver]) / own, 1.0))
    return result


def _forward(problem: Reduced, origin: Id, states_max: int) -> list[_Step]:
    """Pass all links once; two steps for each: the link is decided, then what has no more links is closed."""
    last_of: dict[Id, int] = {}
    last_with: dict[int, int] = {}
    for place, branch in enumerate(problem.branches):
        last_of[branch.a] = last_of[branch.b] = place
        last_with.update(dict.fromkeys(branch.risks, place))
    opened, groups = [origin], list[int]()
    states: dict[_State, float] = {((0,), ()): 1.0}
    given_up = 0.0
    steps: list[_Step] = []
    for place, branch in enumerate(problem.branches):
        new = [end for end in (branch.a, branch.b) if end not in opened]
        fresh = [risk for risk in branch.risks if risk not in groups]
        opened, groups = opened + new, groups + fresh
        decided = _decided(states, opened, len(new), branch, groups, [problem.survivals[risk] for risk in fresh])
        following, lost = _collected(states, decided, states_max)
        steps.append(_step(states, decided, following, [], given_up))
        given_up += lost
        kept = [at for at, domain in enumerate(opened) if last_of[domain] > place]
        kept_groups = [at for at, risk in enumerate(groups) if last_with[risk] > place]
        closed = [_closed(state, kept, kept_groups) for state in following]
        states, _ = _collected(following, closed, states_max)
        newly = [(at, domain) for at, domain in enumerate(opened) if domain in new]
        steps.append(_step(following, closed, states, newly, given_up))
        opened = [opened[at] for at in kept]
        groups = [groups[at] for at in kept_groups]
    return steps


_Outcome = tuple[float, _State, _Labels]


def _decided(
    states: dict[_State, float],
    opened: list[Id],
    new: int,
    branch: Branch,
    groups: list[int],
    survivals: list[float],
) -> list[list[_Outcome]]:
    """Return the outcomes of one link from each state.

    Args:
        new: the last of `opened` that the link opens.
        survivals: of the last of `groups`, which the link is the first to belong to.
    """
    a, b = opened.index(branch.a), opened.index(branch.b)
    needed = [groups.index(risk) for risk in branch.risks]
    fates: list[tuple[float, tuple[bool, ...]]] = [(1.0, ())]
    for survival in survivals:
        fates = [(w * c, (*of, alive)) for w, of in fates for c, alive in ((survival, True), (1.0 - survival, False))]
    decided = []
    for labels, alive in states:
        known = max(labels, default=0) + 1
        wide = labels + tuple(range(known, known + new))
        outcomes: list[_Outcome] = []
        for weight, fate in fates:
            survived = alive + fate
            works = branch.probability if all(survived[at] for at in needed) else 0.0
            if wide[a] == wide[b]:
                works = 0.0  # connected already: the link changes nothing
            if works > 0.0:
                outcomes.append((weight * works, *_merged(wide, survived, wide[a], wide[b], known)))
            if works < 1.0:
                outcomes.append((weight * (1.0 - works), (wide, survived), tuple(range(known))))
        decided.append(outcomes)
    return decided


def _merged(labels: _Labels, alive: tuple[bool, ...], one: int, other: int, known: int) -> tuple[_State, _Labels]:
    """Join two blocks, and number those after the gap down."""
    low, high = min(one, other), max(one, other)
    to = [low if of == high else of - (of > high) for of in range(max(labels) + 1)]
    return (tuple(to[of] for of in labels), alive), tuple(to[:known])


def _closed(state: _State, kept: list[int], kept_groups: list[int]) -> list[_Outcome]:
    """Close domains and groups all of whose links are processed; no outcome if none of the open domains is connected with the origin."""
    labels, alive = state
    to = {0: 0}
    left = tuple(to.setdefault(labels[at], len(to)) for at in kept)
    blocks = tuple(to.get(of, _LOST) for of in range(max(labels) + 1))
    if 0 not in left:
        return []
    return [(1.0, (left, tuple(alive[at] for at in kept_groups)), blocks)]


def _collected(
    states: dict[_State, float], outcomes: list[list[_Outcome]], states_max: int
) -> tuple[dict[_State, float], float]:
    """Collect equal outcomes; give up the least probable where there are too many, and return their probability."""
    following: dict[_State, float] = {}
    for chance, ways in zip(states.values(), outcomes, strict=True):
        for weight, state, _ in ways:
            following[state] = following.get(state, 0.0) + chance * weight
    if len(following) <= states_max:
        return following, 0.0
    ranked = sorted(following.items(), key=lambda item: (-item[1], item[0]))
    return dict(ranked[:states_max]), sum(chance for _, chance in ranked[states_max:])


def _step(
    states: dict[_State, float],
    outcomes: list[list[_Outcome]],
    following: dict[_State, float],
    opened: list[tuple[int, Id]],
    given_up: float,
) -> _Step:
    places = {state: place for place, state in enumerate(following)}
    transitions = [
        [_Transition(weight, places.get(state, _UNKNOWN), blocks) for weight, state, blocks in ways]
        for ways in outcomes
    ]
    return _Step([labels for labels, _ in states], list(states.values()), opened, given_up, transitions)


def _backward(steps: list[_Step], receivers: Collection[Id], unknown: float) -> dict[Id, float]:
    """Pass all steps from the last to the first.

    Args:
        unknown: reliability in the states that were given up.
    """
    result: dict[Id, float] = {}
    following: list[list[float]] = []
    for step in reversed(steps):
        values = []
        for labels, ways in zip(step.labels, step.ways, strict=True):
            value = [0.0] * (max(labels, default=0) + 1)
            for weight, target, blocks in ways:
                for block, to in enumerate(blocks):
                    if to > 0:
                        value[block] += weight * (unknown if target == _UNKNOWN else following[target][to])
                    elif to == 0:
                        value[block] += weight
            value[0] = 1.0
            values.append(value)
        for at, domain in step.opened:
            if domain in receivers:
                result[domain] = unknown * step.given_up + sum(
                    chance * value[labels[at]]
                    for chance, value, labels in zip(step.chances, values, step.labels, strict=True)
                )
        following = values
    return result
