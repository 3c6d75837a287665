"""Runs that reach the domains of a rendezvous point with a target reliability at the first sending."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values
from eventing.sim.routed.member import ORIGIN, PUBLISH_S, RoutedDomain, RunHeld
from eventing.sim.scenario import Positive, Seconds

JUDGED_S = 10.0
"""Seconds after which a run counts as not having reached a domain."""


class RoutesMeasured(Measurement, frozen=True, kw_only=True):
    """A table `[[measurements]]` of kind routes.

    Attributes:
        from_s: the summary counts runs that were published from then on.
        window_s: of which samples count the runs.
    """

    kind: ClassVar[str] = "routes"
    from_s: Seconds = 0.0
    window_s: Positive = 120.0

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return RoutesProbe(self, run)


class RoutesProbe:
    """Runs of one simulation, with the domains that they reached."""

    def __init__(self, plan: RoutesMeasured, run: SimulationContext) -> None:
        self._plan = plan
        self._run = run
        self._open: deque[tuple[float, int]] = deque()
        self._reached: dict[int, dict[int, None]] = {}
        self._judged: list[tuple[float, dict[int, None]]] = []
        run.on((RunHeld,), self._holds)

    def sample(self) -> Values:
        """Values now: of the last runs."""
        return self._values(self._run.time - self._plan.window_s)

    def summary(self) -> Values:
        """Values of all runs from `from_s` on."""
        return self._values(self._plan.from_s)

    def _values(self, since_s: float) -> Values:
        self._judge()
        runs = [reached for at, reached in self._judged if at >= since_s]
        honest = [one for one in range(self._run.scenario.domains) if one != ORIGIN and one not in self._run.role_of]
        shares = [sum(1 for reached in runs if one in reached) / len(runs) for one in honest] if runs else []
        members = [one for one in self._run.population.members if isinstance(one, RoutedDomain)]
        decision = members[ORIGIN].decision
        planned = () if decision is None else decision.chosen.get(f"d{ORIGIN:03}", ())
        return {
            "runs": float(len(runs)),
            "reached_least": min(shares, default=float("nan")),
            "reached_mean": sum(shares) / len(shares) if shares else float("nan"),
            "links": float(len(planned)),
            "doubted": float(sum(one.doubted for one in members)),
        }

    def _holds(self, domain: int, event: RunHeld, _: float) -> None:
        if domain == ORIGIN:
            self._open.append((self._run.time, event.number))
        self._reached.setdefault(event.number, {})[domain] = None

    def _judge(self) -> None:
        while self._open and self._open[0][0] <= self._run.time - max(JUDGED_S, PUBLISH_S):
            at, number = self._open.popleft()
            self._judged.append((at, self._reached.pop(number)))
