"""The exact computation, or its lower bound, as a judge of choices."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from eventing.overlay.machine import Id
from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.reliability import reliability_of

PLAN_STATES_MAX = (
    500  # bound: states of each step while a choice is judged; reliabilities are bounds, the lower one counts
)


class ExactJudge:
    """Reliabilities of choices from a graph for runs of one origin."""

    def __init__(self, graph: RouteGraph, origin: Id) -> None:
        self._graph = graph
        self._origin = origin

    def reliability(self, links: Iterable[RouteLink], receivers: Collection[Id]) -> dict[Id, float]:
        """Return the reliability of each receiver over some links."""
        found = reliability_of(self._graph, list(links), self._origin, receivers, PLAN_STATES_MAX)
        return {receiver: estimate.lower for receiver, estimate in found.items()}

    def raised(
        self, links: Iterable[RouteLink], more: Iterable[RouteLink], receivers: Collection[Id]
    ) -> dict[Id, float]:
        """Return the same over some links and more of them."""
        return self.reliability([*links, *more], receivers)
