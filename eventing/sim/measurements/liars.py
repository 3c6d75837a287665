"""Liars: their share of honest domains' links, and what becomes of their lies."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from eventing.overlay.directory_messages import DomainAdmitted, Equivocated, Refused
from eventing.sim.context import SimulationContext
from eventing.sim.liars.lying_member import Lied
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values
from eventing.sim.scenario import Seconds
from eventing.sim.world import UP


class Liars(Measurement, frozen=True, kw_only=True):
    """Links between honest domains and liars.

    Values: `liars`: their share of all domains; `sampled`, `chosen`, `all`: their share of the links that honest domains drew evenly, chose in
    all, and have; `without`: honest domains that have no link with an honest one now; `without_s`: the longest time for which one had none;
    `passive`: their share of passive views (with the paper's parameters). At the end the greatest of each since `from_s`.

    Attributes:
        from_s: the greatest values are those since this time.
    """

    kind: ClassVar[str] = "liars"
    from_s: Seconds = 0.0

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return _LiarsProbe(run, self.from_s)


class _LiarsProbe:
    def __init__(self, run: SimulationContext, from_s: float) -> None:
        self._run = run
        self._from_s = from_s
        self._alone_since: dict[int, float] = {}
        self._greatest: Values = {}

    def sample(self) -> Values:
        run, liars = self._run, self._run.role_of
        counts: Counter[str] = Counter()
        alone_s = 0.0
        alone: dict[int, float] = {}
        for domain, state in enumerate(run.world.up):
            if state != UP or domain in liars:
                continue
            honest = False
            for peer, link in run.population.links(domain).items():
                lies = peer in liars
                honest = honest or not lies
                sampled = link.chosen and not link.near
                for kind, counts_here in (("all", True), ("chosen", link.chosen), ("sampled", sampled)):
                    counts[kind] += counts_here
                    counts[kind + " lies"] += counts_here and lies
            view = getattr(run.population.members[domain], "view", None)
            for peer in view.members if view is not None else ():
                counts["passive"] += 1
                counts["passive lies"] += peer in liars
            if not honest:
                alone[domain] = self._alone_since.get(domain, run.time)
                alone_s = max(alone_s, run.time - alone[domain])
        self._alone_since = alone
        values: Values = {
            "liars": len(liars) / run.scenario.domains,
            **{kind: _share(counts, kind) for kind in ("sampled", "chosen", "all", "passive")},
            "without": len(alone),
            "without_s": alone_s,
        }
        if run.time >= self._from_s:
            self._greatest = {name: max(value, self._greatest.get(name, 0.0)) for name, value in values.items()}
        return values

    def summary(self) -> Values:
        self.sample()
        return self._greatest


def _share(counts: Counter[str], kind: str) -> float:
    return counts[kind + " lies"] / counts[kind] if counts[kind] else 0.0


class Caught(Measurement, frozen=True, kw_only=True):
    """Lies that honest domains noticed: what, by how many, after how long.

    Values: `lies` that began; `convicted` domains; `proof_first_s`, `proof_99_s`: seconds from a lie until the first honest domain and until
    99 % of them hold the proof, the longest of all lies (NaN: not yet); `refusers`: honest domains that refused a record;
    `refused` records in all, and `refused_` with each reason; `false_ids`: the most domains that an honest directory admitted beyond those
    of the world.
    """

    kind: ClassVar[str] = "caught"

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return _CaughtProbe(run)


class _CaughtProbe:
    def __init__(self, run: SimulationContext) -> None:
        self._run = run
        self._lied_at: dict[int, float] = {}
        self._proofs: dict[int, list[float]] = {}
        self._refused: Counter[str] = Counter()
        self._refusers: dict[int, None] = {}
        self._false: Counter[int] = Counter()
        run.on([Lied], self._lied)
        run.on([Equivocated], self._proved)
        run.on([Refused], self._refuse)
        run.on([DomainAdmitted], self._admitted)

    def _lied(self, domain: int, event: Lied, now: float) -> None:
        self._lied_at[domain] = now

    def _proved(self, domain: int, event: Equivocated, now: float) -> None:
        if domain not in self._run.role_of:
            self._proofs.setdefault(event.domain, []).append(now)

    def _refuse(self, domain: int, event: Refused, now: float) -> None:
        if domain not in self._run.role_of:
            self._refused[event.why] += 1
            self._refusers[domain] = None

    def _admitted(self, domain: int, event: DomainAdmitted, now: float) -> None:
        if domain not in self._run.role_of and event.domain >= self._run.scenario.domains:
            self._false[domain] += 1

    def sample(self) -> Values:
        honest = self._run.scenario.domains - len(self._run.role_of)
        needed = round(0.99 * honest)
        first, most = [], []
        for liar, lied_at in self._lied_at.items():
            at = self._proofs.get(liar, [])
            first.append(at[0] - lied_at if at else float("nan"))
            most.append(at[needed - 1] - lied_at if len(at) >= needed else float("nan"))
        return {
            "lies": len(self._lied_at),
            "convicted": len(self._proofs),
            "proof_first_s": max(first, default=float("nan")),
            "proof_99_s": max(most, key=lambda one: float("inf") if one != one else one, default=float("nan")),
            "refusers": len(self._refusers),
            "refused": sum(self._refused.values()),
            **{"refused_" + why.replace(" ", "_"): count for why, count in sorted(self._refused.items())},
            "false_ids": max(self._false.values(), default=0),
        }

    def summary(self) -> Values:
        return self.sample()
