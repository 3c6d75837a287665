"""Looking whether watch rules are kept: what each kind of rule needs to know, from SQL and Redis, in few round trips.

Synchronous: it runs in a thread of the leading gateway, each second. It asks for the present state of things rather than
follows the administrative logs: a look after a takeover or an outage is as good as any other, and RPs with rules need no
more samples in their histories than others. What it finds is told there as alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Window
from django.db.models.functions import RowNumber

from eventing.conf import config
from eventing.core.events import vectors
from eventing.log import control
from eventing.operations.alarms import findings
from eventing.operations.alarms.evaluation import ABOUTS_MAX, Observed
from eventing.operations.alarms.findings import Behind, Lease
from eventing.operations.alarms.sources import Sources
from eventing.operations.samples import progress
from eventing.operations.samples.presence import gateways_alive
from eventing.operations.samples.sampling import counts
from eventing.peering.services.deliveries import deliveries_shown
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.watches import AUDIENCE, Rule
from eventing.rps.selectors.watches import InForce, Watched
from eventing.store import audience, keys
from eventing.subscriptions.models import Subscription

RPS_A_LOOK = 200
"""RPs looked at in a turn of a second; with more of them they take turns: each of 1,000 is looked at every 5 s."""

LEASES_MAX = ABOUTS_MAX
"""Durable subscriptions of an RP whose leases are looked at, those that end soonest: of no more there are alarms."""


class Looks:
    """Of one gateway while it leads: what must be remembered between two looks is kept here."""

    def __init__(self) -> None:
        self._at = 0
        self._sources = Sources()
        self._behind: dict[tuple[str, str], tuple[float, Mapping[str, int], bool]] = {}

    def look(self, rules: InForce, now: float) -> list[Observed]:
        """What is found at the rules of the domain, and of the RPs whose turn it is. Raises redis.RedisError, SQL's errors."""
        self._at = self._at if self._at < len(rules.rps) else 0
        some = rules.rps[self._at : self._at + RPS_A_LOOK]
        self._at += RPS_A_LOOK
        self._forget(rules)
        return [*self._domain(rules.domain, now), *self._rps(some, now)]

    def _forget(self, rules: InForce) -> None:
        watched = {one.rp for one in rules.rps}
        self._sources.forget(watched)
        self._behind = {key: value for key, value in self._behind.items() if key[0] in watched}

    # The domain

    def _domain(self, rules: Sequence[Rule], now: float) -> Iterable[Observed]:
        kinds = {rule.kind for rule in rules}
        shown = deliveries_shown() if "backlog" in kinds else {}
        peers = [Behind(name, row["backlog"], _seconds(row["oldest_at"])) for name, row in shown.items()]
        held = counts() if "history_quota" in kinds else {}
        late_ms = _late_ms(now) if "process_lag" in kinds else {}
        for rule in rules:
            match rule.kind:
                case "backlog":
                    yield Observed(rule.id, findings.backlog(rule, "", peers, now))
                case "history_quota":
                    found = findings.history_quota(rule, held["reserved_bytes"], held["quota_bytes"])
                    yield Observed(rule.id, found)
                case "process_lag":
                    yield Observed(rule.id, findings.process_lag(rule, late_ms))

    # The RPs

    def _rps(self, some: Sequence[Watched], now: float) -> Iterable[Observed]:
        kinds: dict[str, Callable[[list[tuple[Watched, Rule]], float], Iterable[Observed]]] = {
            "lag": _lags,
            "backlog": self._backlogs,
            "lease_gap": _leases,
            "silence": self._silences,
            AUDIENCE: _audiences,
        }
        for kind, looked in kinds.items():
            pairs = [(one, rule) for one in some for rule in one.rules if rule.kind == kind]
            if pairs:
                yield from looked(pairs, now)

    def _backlogs(self, pairs: list[tuple[Watched, Rule]], now: float) -> Iterable[Observed]:
        me = config().domain
        found = progress.replicas(_ids(pairs))
        behind: dict[str, list[Behind]] = {}
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
    ) -> Behind:
        """Since when the oldest event that the peer lacks is held here: since it has not caught up with what was held then."""
        key = rp, domain
        since = self._behind.get(key)
        if not row["behind"]:
            self._behind[key] = now, held, True
        elif since is None:
            self._behind[key] = now, held, False  # it may have been behind for long
        elif vectors.covers(row["vector"], since[1]):
            self._behind[key] = now, held, True
        at, _, sure = self._behind[key]
        return Behind(domain, row["behind"], at, sure)

    def _silences(self, pairs: list[tuple[Watched, Rule]], now: float) -> Iterable[Observed]:
        ends = _ends(_ids(pairs))
        wanted: dict[str, set[str]] = {}
        for one, rule in pairs:
            if "source" in rule.settings:
                wanted.setdefault(one.rp, set()).add(rule.settings["source"])
        lasts = self._sources.look({rp: frozenset(sources) for rp, sources in wanted.items()})
        for one, rule in pairs:
            last_at, sure = ends.get(one.rp), True
            if "source" in rule.settings:
                last_at, sure = lasts[one.rp, rule.settings["source"]]
            made_at = one.created_at.timestamp()
            yield Observed(rule.id, findings.silence(rule, one.label, last_at or made_at, now, sure=sure))


def _lags(pairs: list[tuple[Watched, Rule]], now: float) -> Iterable[Observed]:
    found: dict[str, dict[str, progress.Lag]] = {}
    left = _ids(pairs)
    while left:
        count = progress.affordable(left)
        found |= progress.lags(left[:count])
        left = left[count:]
    for one, rule in pairs:
        if one.rp in found:
            readers = [
                Behind(name, lag["events"], _seconds(lag["oldest_at"]), lost=lag["lost"])
                for name, lag in found[one.rp].items()
            ]
            yield Observed(rule.id, findings.lag(rule, one.label, readers, now))


def _leases(pairs: list[tuple[Watched, Rule]], now: float) -> Iterable[Observed]:
    widest = max(rule.settings["s"] for _, rule in pairs)
    before = datetime.fromtimestamp(now, UTC) + timedelta(seconds=widest)
    leases: dict[str, list[Lease]] = {rp: [] for rp in _ids(pairs)}
    for rp, ends in RendezvousPoint.objects.filter(id__in=list(leases)).values_list("id", "expires_at"):
        leases[rp].append(Lease("", "the rendezvous point", ends.timestamp()))
    soonest = Window(RowNumber(), partition_by="at", order_by=["expires_at", "id"])  # however many another RP has
    ending = Subscription.objects.filter(at__in=list(leases), expires_at__lt=before).annotate(place=soonest)
    for rp, name, ends in ending.filter(place__lte=LEASES_MAX).values_list("at", "id", "expires_at"):
        leases[rp].append(Lease(name, f"the durable subscription {name}", ends.timestamp()))
    labels = {one.rp: one.label for one, _ in pairs}
    for one, rule in pairs:
        yield Observed(rule.id, findings.lease_gap(rule, labels[one.rp], leases[one.rp], now))


def _audiences(pairs: list[tuple[Watched, Rule]], now: float) -> Iterable[Observed]:
    present = audience.present(control.client(), _ids(pairs), now)
    for one, rule in pairs:
        yield Observed(rule.id, findings.audience(rule, one.label, present[one.rp]))


def _ids(pairs: Iterable[tuple[Watched, Rule]]) -> list[str]:
    return sorted({one.rp for one, _ in pairs})


def _late_ms(now: float) -> dict[str, float]:
    """How late the event loop of each gateway was, as it says each second whether anybody reads its samples or not."""
    alive = gateways_alive(datetime.fromtimestamp(now, UTC))
    rows: Any = control.client().mget([keys.gateway_late_key(one) for one in alive]) if alive else []
    return {gateway: float(row) for gateway, row in zip(alive, rows, strict=True) if row is not None}


def _ends(rps: Sequence[str]) -> dict[str, float]:
    """When the newest event of each log was stored; RPs without any are not in it. Two round trips."""
    states = zip(rps, control.log_states(rps), strict=True)
    held = {rp: state.next - 1 for rp, state in states if state is not None and state.next > state.first}
    return {rp: at for rp, at in control.stored_at(held.items()) if at is not None}


def _seconds(moment: str | None) -> float | None:
    return None if moment is None else datetime.fromisoformat(moment).timestamp()
