"""Failures of domains: when their links end, and links that end though the peer runs."""

from __future__ import annotations

from typing import ClassVar

from eventing.overlay.directory_messages import DomainExpired
from eventing.overlay.links import LinkDown, Reason
from eventing.overlay.liveness import SuspectsItself
from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values, percentile
from eventing.sim.world import DOWN


class LinkFailures(Measurement, frozen=True, kw_only=True):
    """Time until a crashed domain's links end, and links that end without a crash.

    Values: `found` links of crashed domains that ended, `found_p50_s`, `found_p99_s`, `found_max_s` after the crash; `all_p50_s` and
    `all_p99_s`: until the last link of a crashed domain ended; `not_found`: links that still stand on a running side.
    `false`: links that failed though the peer runs and is reached, `false_per_domain_hour`; `removed`: running domains that
    left a directory; `suspects_itself`: times that a domain found itself more likely cut off than its peers.
    """

    kind: ClassVar[str] = "failures"

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return _FailuresProbe(run)


class _FailuresProbe:
    def __init__(self, run: SimulationContext) -> None:
        self._run = run
        self._crashed_at: dict[int, float] = {}
        self._standing: dict[int, dict[int, None]] = {}
        self._found_s: list[float] = []
        self._all_s: list[float] = []
        self._false = self._removed = self._itself = 0
        self._domain_s = 0.0
        self._sampled_at = 0.0
        run.on_crash(self._crashed)
        run.on([LinkDown], self._link_down)
        run.on([DomainExpired], self._expired)
        run.on([SuspectsItself], self._suspects_itself)

    def _crashed(self, domain: int, silently: bool) -> None:
        links = self._run.population.links
        up = self._run.world.up
        self._crashed_at[domain] = self._run.world.now
        self._standing[domain] = {peer: None for peer in links(domain) if up[peer] and domain in links(peer)}
        for peer in links(domain):
            self._standing.get(peer, {}).pop(domain, None)

    def _link_down(self, domain: int, event: LinkDown, now: float) -> None:
        standing = self._standing.get(event.peer)
        if standing is not None and domain in standing:
            del standing[domain]
            self._found_s.append(now - self._crashed_at[event.peer])
            if not standing:
                self._all_s.append(now - self._crashed_at[event.peer])
        elif event.reason is Reason.TRANSPORT and self._run.time >= 0.0 and self._run.world.up[event.peer] != DOWN:
            self._false += self._run.network.reaches(event.peer, domain)

    def _expired(self, domain: int, event: DomainExpired, now: float) -> None:
        self._removed += self._run.world.up[event.domain] != DOWN

    def _suspects_itself(self, domain: int, event: SuspectsItself, now: float) -> None:
        self._itself += self._run.time >= 0.0

    def sample(self) -> Values:
        run = self._run
        self._domain_s += (run.time - self._sampled_at) * len(run.running)
        self._sampled_at = run.time
        found, by_all = sorted(self._found_s), sorted(self._all_s)
        return {
            "found": len(found),
            "found_p50_s": percentile(found, 0.5),
            "found_p99_s": percentile(found, 0.99),
            "found_max_s": found[-1] if found else float("nan"),
            "all_p50_s": percentile(by_all, 0.5),
            "all_p99_s": percentile(by_all, 0.99),
            "not_found": sum(len(peers) for domain, peers in self._standing.items() if not run.world.up[domain]),
            "false": self._false,
            "false_per_domain_hour": self._false / (self._domain_s / 3600.0) if self._domain_s else 0.0,
            "removed": self._removed,
            "suspects_itself": self._itself,
        }

    def summary(self) -> Values:
        return {**self.sample(), "domain_hours": self._domain_s / 3600.0}
