"""Service that readers of the famous RP get: queues around simulated placement (sim/placement/readers.py has where they read).

- Demand is a line through points (time, readers), repeated if a period is given.
- A domain is a queue: the 99th percentile of the delay there is NET_MS + SERVICE_MS ln(100) / (1 - load), with load as a share of its
  capacity; at a load above 1 the delay grows by the excess each second, and is worked off below 1.
- A domain that attracts readers by redirecting them in circles harms itself: it does not count as above its fair share.
- Readers are given old events at a domain that is more than STALE_EVENTS behind the home, as long as the home reaches it.
"""

from __future__ import annotations

from math import log
from typing import ClassVar

from eventing.operations.placement.rules.loads import capacity_units
from eventing.overlay.load_rows import CAPACITY
from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import MeasurementProbe, Values
from eventing.sim.measurements.demand import HOUR_S, DemandMeasurement, TurnsProbe, most_in
from eventing.sim.placement.messages import (
    HomeLoad,
    InvitationRefusedHere,
    PlacementChanged,
    PlacementShort,
    ReplicaEnded,
    ReplicaServes,
    ServedLoad,
)
from eventing.sim.placement.population import CLASS
from eventing.sim.placement.readers import SimulatedReaders

NET_MS = 100.0
SERVICE_MS = 10.0
"""Of one tick of the fan-out."""
BUSY_MAX = 0.99
BOUND = 1.25
"""Readers of a domain, as a multiple of its fair share."""
SHARE_MIN = 20.0
"""Fair share in readers below which nothing is compared."""
STALE_EVENTS = 6
"""Events, one each 5 s, by which a domain may be behind."""
BUDGET_S = 600.0
SEEN = ("replicas_max", "over_share_s_max", "pressure_max", "p99_ratio_max", "p99_ratio_calm", "stale_s_max", "waiting_s_max", "refusals", "shortfalls")  # fmt: skip
SESSIONS_MAX = CAPACITY[CLASS].sessions


class PlacementMeasured(DemandMeasurement, frozen=True, kw_only=True):
    """A table `[[measurements]]` of kind placement, with the demand."""

    kind: ClassVar[str] = "placement"

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return PlacementProbe(self, run)


class PlacementProbe(TurnsProbe):
    """Readers of one run, and what was seen."""

    def __init__(self, plan: PlacementMeasured, run: SimulationContext) -> None:
        super().__init__(run, plan.turn_s, *SEEN)
        self._plan = plan
        self._readers = readers = SimulatedReaders(run)
        self._late_ms: dict[int, float] = {}
        self._over_since: dict[int, float] = {}
        self._stale_since: dict[int, float] = {}
        self._waits_since: dict[int, float] = {}
        self._steps: list[float] = []
        self._hot_until = 0.0
        self._normal_ms = _p99_ms(0.0)
        self._ratio = 1.0
        self._pressure = 0.0
        run.on((ReplicaServes,), lambda _, event, __: readers.join(event.domain))
        run.on((ReplicaEnded,), lambda _, event, __: readers.leave(event.domain))
        run.on((PlacementChanged,), self._changed)
        run.on((InvitationRefusedHere,), lambda *_: self._count("refusals"))
        run.on((PlacementShort,), lambda *_: self._count("shortfalls"))
        self._begin_turns()

    def sample(self) -> Values:
        """Values now."""
        return {
            "readers": sum(self._readers.at.values()),
            "replicas": self._replicas(),
            "p99_ratio": self._ratio,
            "pressure": self._pressure,
            "steps": float(len(self._steps)),
        }

    def summary(self) -> Values:
        """Values over the run."""
        readers = self._readers
        return {
            **self._seen,
            "stranded_s_max": readers.stranded_s_max,
            "lost": readers.lost,
            "redirects_each": readers.redirected / readers.circled if readers.circled else 0.0,
            "steps": float(len(self._steps)),
            "steps_10_min": float(most_in(self._steps, BUDGET_S)),
            "steps_hour": float(most_in(self._steps, HOUR_S)),
            "replicas_end": self._replicas(),
        }

    # Turns

    def _turn(self) -> None:
        now, turn_s = self._run.time, self._plan.turn_s
        self._readers.turn(self._plan.readers_at(now), now, turn_s)
        self._serve(now, turn_s)
        self._compare(now)
        world, units = self._run.world, capacity_units(CLASS) / SESSIONS_MAX
        for domain, readers in self._readers.at.items():
            if domain:
                world.give(domain, ServedLoad(round(readers)))
        at_home = self._readers.at.get(0, 0.0)
        self._pressure = at_home / SESSIONS_MAX
        self._most("pressure_max", self._pressure)
        self._most("replicas_max", self._replicas())
        world.give(0, HomeLoad(at_home * units, self._pressure))

    def _replicas(self) -> float:
        return float(sum(1 for domain in self._readers.at if domain))

    def _serve(self, now: float, turn_s: float) -> None:
        """Compute delays and shares."""
        delays, at = [], self._readers.at
        share = sum(at.values()) / len(at) if at else 0.0
        for domain, count in at.items():
            busy = count / SESSIONS_MAX
            late = max(0.0, self._late_ms.get(domain, 0.0) + 1000.0 * turn_s * (busy - 1.0))
            self._late_ms[domain] = late
            delays.append((_p99_ms(busy) + late, count))
            if share >= SHARE_MIN and count > BOUND * share and not self._readers.circles(domain):
                self._lasts("over_share_s_max", self._over_since, domain, now)
            else:
                self._over_since.pop(domain, None)
        self._ratio = _percentile(delays, 0.99) / self._normal_ms
        self._most("p99_ratio_max", self._ratio)
        if self._plan.readers_at(now) > 1.02 * self._plan.readers_at(max(0.0, now - turn_s)):
            self._hot_until = now + 60.0
        if now >= self._hot_until:
            self._most("p99_ratio_calm", self._ratio)

    def _compare(self, now: float) -> None:
        """Find domains with readers that are behind the home, and domains that were to be invited and do not count."""
        members, network = self._run.population.members, self._run.network
        waiting = {domain: None for domain, held in members[0].replicas.items() if held.counted is None}
        self._waits_since = {domain: since for domain, since in self._waits_since.items() if domain in waiting}
        for domain in waiting:
            self._lasts("waiting_s_max", self._waits_since, domain, now)
        for domain, count in self._readers.at.items():
            behind = domain and members[0].sequence - members[domain].sequence > STALE_EVENTS
            if behind and count >= 1.0 and network.reaches(0, domain):
                self._lasts("stale_s_max", self._stale_since, domain, now)
            else:
                self._stale_since.pop(domain, None)

    def _lasts(self, name: str, since: dict[int, float], domain: int, now: float) -> None:
        self._most(name, now - since.setdefault(domain, now))

    def _changed(self, _: int, event: PlacementChanged, __: float) -> None:
        self._steps.append(self._run.time)

    def _count(self, name: str) -> None:
        self._seen[name] += 1


def _p99_ms(busy: float) -> float:
    return NET_MS + SERVICE_MS * log(100) / (1.0 - min(busy, BUSY_MAX))


def _percentile(delays: list[tuple[float, float]], share: float) -> float:
    total, counted = sum(count for _, count in delays), 0.0
    for delay, count in sorted(delays):
        counted += count
        if counted >= share * total:
            return delay
    return max((delay for delay, _ in delays), default=0.0)
