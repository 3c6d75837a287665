"""Liars that scores of links caught, and honest domains that were taken for liars.

Shown are which, by how many honest domains, after how long, and why.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from eventing.overlay.scores import Condemned, Deed, Demoted
from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values, percentile
from eventing.sim.scenario import Seconds

_NAMES = {deed.value: deed.name.lower() for deed in Deed}


class Scored(Measurement, frozen=True, kw_only=True):
    """Effects of scores, where a `broadcasts` measurement has `scores = true`.

    Values: `demoted`, `dropped`: share of the liars whose links some honest domain made lazy, and dropped; `demoted_p50_s`, `demoted_p99_s`,
    `dropped_p50_s`, `dropped_p99_s`: seconds from `from_s` until the first did, over these liars; `by`: honest domains that did;
    `for_REASON`: effects for each reason; `wrongly_demoted`, `wrongly_dropped`: honest domains that an honest one demoted, dropped.

    Attributes:
        from_s: when the liars begin.
    """

    kind: ClassVar[str] = "scored"
    from_s: Seconds = 0.0

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return _ScoredProbe(run, self.from_s)


class _ScoredProbe:
    def __init__(self, run: SimulationContext, from_s: float) -> None:
        self._run = run
        self._from_s = from_s
        self._first: dict[type, dict[int, float]] = {Demoted: {}, Condemned: {}}
        self._wrongly: dict[type, dict[int, None]] = {Demoted: {}, Condemned: {}}
        self._by: dict[int, None] = {}
        self._reasons: Counter[str] = Counter()
        run.on([Demoted, Condemned], self._affected)

    def _affected(self, domain: int, event: Any, now: float) -> None:
        if domain in self._run.role_of:
            return
        if event.peer not in self._run.role_of:
            self._wrongly[type(event)][event.peer] = None
            return
        self._by[domain] = None
        self._reasons[_NAMES[event.reason]] += 1
        self._first[type(event)].setdefault(event.peer, max(0.0, self._run.time - self._from_s))

    def sample(self) -> Values:
        liars = max(1, len(self._run.role_of))
        values: Values = {}
        for name, kind in (("demoted", Demoted), ("dropped", Condemned)):
            times = sorted(self._first[kind].values())
            values[name] = len(times) / liars
            values[f"{name}_p50_s"] = percentile(times, 0.5)
            values[f"{name}_p99_s"] = percentile(times, 0.99)
            values[f"wrongly_{name}"] = len(self._wrongly[kind])
        values["by"] = len(self._by)
        values |= {f"for_{name}": count for name, count in sorted(self._reasons.items())}
        return values

    def summary(self) -> Values:
        return self.sample()
