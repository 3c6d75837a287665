"""Measurements for watch rules: the values that each kind of rule needs, from SQL and Redis, in few round trips.

Synchronous: runs in a thread of the leading gateway, each second. It reads present state and does not follow the
administrative logs: a measurement after a takeover or an outage is as good as any other, and RPs with rules need no
more samples in their histories than others. The findings are reported there as alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from eventing.conf import config
from eventing.core.events import vectors
from eventing.log import control
from eventing.operations.alarms import findings
from eventing.operations.alarms.evaluation import ABOUTS_MAX, Observed
from eventing.operations.alarms.findings import EndpointMeasurement, LagMeasurement, LeaseMeasurement
from eventing.operations.alarms.sources import SourceMeasurements
from eventing.operations.samples import progress
from eventing.operations.samples.sampling import counts
from eventing.peering.services.deliveries import deliveries_shown
from eventing.replication.reliability.planning import decisions_of
from eventing.rps.rules.watches import AUDIENCE, WatchRule
from eventing.rps.selectors.rendezvous_points import rp_leases
from eventing.rps.selectors.watches import InForce, Watched
from eventing.store import audience
from eventing.store.load import gateway_lateness_ms
from eventing.store.presence import gateways_alive
from eventing.subscriptions.push.selectors import endpoints_failing
from eventing.subscriptions.selectors.subscriptions import subscriptions_ending

RPS_PER_ROUND = 200  # bound: RPs measured per second; the RPs take turns
"""RPs measured in a turn of a second; beyond that they take turns: each of 1,000 is measured every 5 s."""

LEASES_MAX = ABOUTS_MAX
"""Durable subscriptions of an RP whose leases are measured, the soonest to expire: no more than have alarms."""


class Measurements:
    """The measurements of one gateway while it leads, with what must be remembered between two of them."""

    def __init__(self) -> None:
        self._at = 0
        self._sources = SourceMeasurements()
        self._behind: dict[tuple[str, str], tuple[float, Mapping[str, int], bool]] = {}

    def measure(self, rules: InForce, now: float) -> list[Observed]:
        """Return the findings at the rules of the domain, and of the RPs whose turn it is. Raises redis.RedisError,
        SQL's errors.
        """
        self._at = self._at if self._at < len(rules.rps) else 0
        some = rules.rps[self._at : self._at + RPS_PER_ROUND]
        self._at += RPS_PER_ROUND
        self._forget(rules)
        return [*self._domain(rules.domain, now), *self._rps(some, now)]

    def _forget(self, rules: InForce) -> None:
        watched = {one.rp for one in rules.rps}
        self._sources.forget(watched)
        self._behind = {key: value for key, value in self._behind.items() if key[0] in watched}

    # The domain

    def _domain(self, rules: Sequence[WatchRule], now: float) -> Iterable[Observed]:
        kinds = {rule.kind for rule in rules}
        shown = deliveries_shown() if "backlog" in kinds else {}
        peers = [LagMeasurement(name, row["backlog"], _seconds(row["oldest_at"])) for name, row in shown.items()]
        held = counts() if "history_quota" in kinds else {}
        late_ms = _late_ms(now) if "process_lag" in kinds else {}
        failing = _failing(None) if "endpoint" in kinds else []
        for rule in rules:
            match rule.kind:
                case "backlog":
                    yield Observed(rule.id, findings.backlog(rule, "", peers, now))
                case "history_quota":
                    found = findings.history_quota(rule, held["reserved_bytes"], held["quota_bytes"])
                    yield Observed(rule.id, found)
                case "endpoint":
                    yield Observed(rule.id, findings.endpoint(rule, [one for _, one in failing], now))
                case "process_lag":
                    yield Observed(rule.id, findings.process_lag(rule, late_ms))

    # The RPs

    def _rps(self, some: Sequence[Watched], now: float) -> Iterable[Observed]:
        kinds: dict[str, Callable[[list[tuple[Watched, WatchRule]], float], Iterable[Observed]]] = {
            "lag": _lags,
            "backlog": self._backlogs,
            "lease_gap": _leases,
            "endpoint": _endpoints,
            "silence": self._silences,
            "reliability": _reliabilities,
            AUDIENCE: _audiences,
        }
        for kind, measured in kinds.items():
            pairs = [(one, rule) for one in some for rule in one.rules if rule.kind == kind]
            if pairs:
                yield from measured(pairs, now)

    def _backlogs(self, pairs: list[tuple[Watched, WatchRule]], now: float) -> Iterable[Observed]:
        me = config().domain
        found = progress.replicas(_ids(pairs))
        behind: dict[str, list[LagMeasurement]] = {}
        for rp, domains in found.items():
            held = domains[me]["vector"]
            behind[rp] = [
                self._behind_since(rp, domain, row, held, now)
                for domain, row in domains.items()
                if domain != me and row["behind"] is not None
            ]
        for one, rule in pairs:
            yield Observed(rule.id, findings.backlog(rule, one.label, behind.get(one.rp, ()), now))

    def _behind_since(
        self, rp: str, domain: str, row: Mapping[str, Any], held: Mapping[str, int], now: float
    ) -> LagMeasurement:
        """Return since when the oldest event that the peer lacks is held here: the last time at which it had all of
        them.
        """
        key = rp, domain
        since = self._behind.get(key)
        if not row["behind"]:
            self._behind[key] = now, held, True
        elif since is None:
            self._behind[key] = now, held, False  # its lag may be older
        elif vectors.covers(row["vector"], since[1]):
            self._behind[key] = now, held, True
        at, _, sure = self._behind[key]
        return LagMeasurement(domain, row["behind"], at, sure)

    def _silences(self, pairs: list[tuple[Watched, WatchRule]], now: float) -> Iterable[Observed]:
        ends = _ends(_ids(pairs))
        wanted: dict[str, set[str]] = {}
        for one, rule in pairs:
            if "source" in rule.settings:
                wanted.setdefault(one.rp, set()).add(rule.settings["source"])
        lasts = self._sources.measure({rp: frozenset(sources) for rp, sources in wanted.items()})
        for one, rule in pairs:
            last_at, sure = ends.get(one.rp), True
            if "source" in rule.settings:
                last_at, sure = lasts[one.rp, rule.settings["source"]]
            made_at = one.created_at.timestamp()
            yield Observed(rule.id, findings.silence(rule, one.label, last_at or made_at, now, sure=sure))


def _lags(pairs: list[tuple[Watched, WatchRule]], now: float) -> Iterable[Observed]:
    found: dict[str, dict[str, progress.Lag]] = {}
    left = _ids(pairs)
    while left:
        count = progress.affordable(left)
        found |= progress.lags(left[:count])
        left = left[count:]
    for one, rule in pairs:
        if one.rp in found:
            readers = [
                LagMeasurement(name, lag["events"], _seconds(lag["oldest_at"]), lost=lag["lost"])
                for name, lag in found[one.rp].items()
            ]
            yield Observed(rule.id, findings.lag(rule, one.label, readers, now))


def _leases(pairs: list[tuple[Watched, WatchRule]], now: float) -> Iterable[Observed]:
    widest = max(rule.settings["s"] for _, rule in pairs)
    before = datetime.fromtimestamp(now, UTC) + timedelta(seconds=widest)
    leases: dict[str, list[LeaseMeasurement]] = {rp: [] for rp in _ids(pairs)}
    for rp, ends in rp_leases(list(leases)):
        leases[rp].append(LeaseMeasurement("", "the rendezvous point", ends.timestamp()))
    for rp, name, ends in subscriptions_ending(list(leases), before, LEASES_MAX):
        leases[rp].append(LeaseMeasurement(name, f"the durable subscription {name}", ends.timestamp()))
    labels = {one.rp: one.label for one, _ in pairs}
    for one, rule in pairs:
        yield Observed(rule.id, findings.lease_gap(rule, labels[one.rp], leases[one.rp], now))


def _endpoints(pairs: list[tuple[Watched, WatchRule]], now: float) -> Iterable[Observed]:
    failing = _failing(_ids(pairs))
    for one, rule in pairs:
        yield Observed(rule.id, findings.endpoint(rule, [found for rp, found in failing if rp == one.rp], now))


def _failing(rps: list[str] | None) -> list[tuple[str, EndpointMeasurement]]:
    """Return the RP and the measurement of endpoints that fail: at each RP, or in all, as many as have alarms."""
    return [
        (one.rp, EndpointMeasurement(one.id, one.label, one.url, one.state, one.reason, one.since.timestamp()))
        for one in endpoints_failing(rps, ABOUTS_MAX)
    ]


def _reliabilities(pairs: list[tuple[Watched, WatchRule]], now: float) -> Iterable[Observed]:
    decisions = decisions_of(_ids(pairs))
    for one, rule in pairs:
        decision = decisions.get(one.rp)
        missed = decision.missed if decision is not None and decision.state == "missed" else {}
        target, since = (0.0, now) if decision is None else (decision.target, decision.missed_since)
        yield Observed(rule.id, findings.reliability(rule, one.label, target, missed, since, now))


def _audiences(pairs: list[tuple[Watched, WatchRule]], now: float) -> Iterable[Observed]:
    present = audience.present(_ids(pairs), now)
    for one, rule in pairs:
        yield Observed(rule.id, findings.audience(rule, one.label, present[one.rp]))


def _ids(pairs: Iterable[tuple[Watched, WatchRule]]) -> list[str]:
    return sorted({one.rp for one, _ in pairs})


def _late_ms(now: float) -> dict[str, float]:
    """Return how late the event loop of each gateway was, as each gateway states every second."""
    return gateway_lateness_ms(gateways_alive(datetime.fromtimestamp(now, UTC)))


def _ends(rps: Sequence[str]) -> dict[str, float]:
    """Return when the newest event of each log was stored, without RPs that have none. Two round trips."""
    states = zip(rps, control.log_states(rps), strict=True)
    held = {rp: state.next - 1 for rp, state in states if state is not None and state.next > state.first}
    return {rp: at for rp, at in control.stored_at(held.items()) if at is not None}


def _seconds(moment: str | None) -> float | None:
    return None if moment is None else datetime.fromisoformat(moment).timestamp()
