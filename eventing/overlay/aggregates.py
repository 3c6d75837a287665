"""Aggregates: counts, sums, maxima and load by zone, computed here from signed rows; each figure with its coverage.

The own zone is summed up from the rows of its domains. For a foreign zone there are the totals of three reporters, of which the highest
and the lowest are trimmed, and the signed rows of a sample of its domains, which a coalition of reporters cannot forge: where the trimmed
totals differ from the sample by more than DISPUTE, the estimate by the sample is used, and the figure is marked as disputed. All
claims are clamped to capacity classes, so a domain that states no load or an endless one moves a figure by its capacity at most.

No push-sum: with liars it gets worse with every round (Mousazadeh and Ladani 2013), with loss it converges to a wrong value
(arXiv 1504.08193). Rows may be lost and repeated: a figure is computed from the present rows.

A domain that is a reporter of its zone contributes totals; this machine does so by itself, as it contributes the own load
(`LoadMeasured`) to the objects that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from eventing.overlay.gossip import Contribute, Withdraw
from eventing.overlay.gossip_rows import RowSet
from eventing.overlay.load_rows import (
    AMOUNT_MAX,
    CAPACITY,
    FIELDS,
    DomainLoad,
    LoadSample,
    LoadTotals,
    ZoneLoad,
    ZoneTotals,
    clamped,
    load_of,
    payload_of,
    totals_of,
)
from eventing.overlay.machine import Chance, Fired, Id, SetTimer
from eventing.overlay.zone_index import ZoneIndex

REPORT_S = 60.0
"""Between two totals of a reporter; gossip sends fewer where there are many zones."""
DISPUTE = 3.0
"""Factor between totals and sample above which the sample is used (guess: samples of loads with long tails differ by less)."""
SAMPLE_MIN = 32
"""Rows of a sample needed to dispute totals."""
DISPUTABLE = ("sessions", "events_out_per_s", "bytes_per_s", "events_in_per_s")
"""Fields by whose sums reporters could attract or repel."""
AGE_STEP_S = 300
"""Ages of rows in totals are rounded up to this, so that totals of an idle zone are not stated anew every minute."""

Outputs = list[Any]


class LoadMeasured(msgspec.Struct, frozen=True, gc=False):
    """Command: the own load, measured now."""

    load: DomainLoad


class ReportDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: contribute totals, if this domain is a reporter."""


REPORT_DUE = ReportDue()


class Figure(NamedTuple):
    """A number with what it rests on.

    Attributes:
        value: of the domains that are covered, or estimated from a sample.
        coverage: share of live domains whose rows it rests on, 0 to 1.
        oldest_s: age of the oldest row.
        disputed: whether reporters and sample contradict each other.
    """

    value: int
    coverage: float
    oldest_s: int
    disputed: bool = False


class ZoneFigures(NamedTuple):
    """Figures of one zone.

    Attributes:
        known: domains of the directory.
        live: those that are not suspected.
        reporting: domains with a row.
        sums, maxima: by field of `DomainLoad`.
    """

    known: int
    live: int
    reporting: Figure
    sums: dict[str, Figure]
    maxima: dict[str, Figure]


class Aggregates:
    """Figures at one domain.

    Outputs `Contribute` and `Withdraw` are commands for the domain's gossip.

    Args:
        me: its id.
        sets: rows of the gossip objects, by name.
        index: zones at a time.
        suspected: domains that do not count as live.
        started_s: wall clock, in seconds since 1970, at time 0 of `now`.
    """

    def __init__(
        self,
        me: Id,
        sets: Mapping[str, RowSet],
        *,
        index: Callable[[float], ZoneIndex],
        suspected: Container[Id] = (),
        started_s: float = 0.0,
    ) -> None:
        self.me = me
        self.index = index
        self._loads = sets[ZoneLoad.name]
        self._sample = sets[LoadSample.name]
        self._totals = sets[LoadTotals.name]
        self._suspected = suspected
        self._started_s = started_s
        self._shown = False
        self._reported = False

    def begin(self, chance: Chance) -> Outputs:
        """Start the timer, at a random phase."""
        return [SetTimer(REPORT_DUE, REPORT_S * chance.random())]

    def handle(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Take in the own load or the timer."""
        out: Outputs = []
        if type(given) is LoadMeasured:
            payload, index = payload_of(given.load), self.index(now)
            out.append(Contribute(ZoneLoad.name, payload))
            shows = len(index.zones) > 1 and index.in_sample(self.me)
            self._shown = self._member_of(LoadSample.name, shows, payload, self._shown, out)
        elif type(given) is Fired and type(given.timer) is ReportDue:
            out.append(SetTimer(REPORT_DUE, REPORT_S * (0.95 + 0.1 * chance.random())))
            index = self.index(now)
            zone = index.zone_of(self.me)
            reports = len(index.zones) > 1 and zone is not None and self.me in index.reporters(zone)
            payload = payload_of(self._stated_totals(index, zone or "", now)) if reports else b""
            self._reported = self._member_of(LoadTotals.name, reports, payload, self._reported, out)
        return out

    def _member_of(self, name: str, belongs: bool, payload: bytes, before: bool, out: Outputs) -> bool:
        if belongs:
            out.append(Contribute(name, payload))
        elif before:
            out.append(Withdraw(name))
        return belongs

    # Figures

    def zones(self, now: float) -> dict[str, ZoneFigures]:
        """Compute the figures of every zone."""
        index = self.index(now)
        own = index.zone_of(self.me)
        return {
            zone: self._own_zone(index, zone, now) if zone == own else self._foreign_zone(index, zone, now)
            for zone in index.zones
        }

    def whole(self, zones: Mapping[str, ZoneFigures]) -> ZoneFigures:
        """Compute the figures of the whole federation from those of its zones."""
        of = list(zones.values())

        def over(figures: Iterable[Figure], value: Callable[[list[int]], int]) -> Figure:
            found = list(figures)
            weighted = [(one.live, figure) for one, figure in zip(of, found, strict=True)]
            return _over_zones(weighted, value([figure.value for figure in found]))

        return ZoneFigures(
            sum(one.known for one in of),
            sum(one.live for one in of),
            over((one.reporting for one in of), sum),
            {field: over((one.sums[field] for one in of), sum) for field in FIELDS},
            {field: over((one.maxima[field] for one in of), lambda values: max(values, default=0)) for field in FIELDS},
        )

    def load(self, domain: Id, now: float) -> tuple[DomainLoad, int] | None:
        """Return the clamped load of a domain and the age of its row; None if no row of it is held here."""
        return self._loads_of([domain], now).get(domain)

    def loads(self, now: float, most: int) -> dict[Id, tuple[DomainLoad, int]]:
        """Return the loads of domains, as `load` does, at most so many."""
        owners = dict.fromkeys((*self._loads.rows, *self._sample.rows))
        return self._loads_of(list(owners)[:most], now)

    def _loads_of(self, domains: Iterable[Id], now: float) -> dict[Id, tuple[DomainLoad, int]]:
        index, found = self.index(now), {}
        for domain in domains:
            row = self._loads.rows.get(domain) or self._sample.rows.get(domain)
            load = load_of(row.payload) if row is not None else None
            if row is not None and load is not None and domain in index.capacity:
                found[domain] = clamped(load, index.capacity[domain]), self._age_s(row.version, now)
        return found

    def total(self, field: str, now: float) -> Figure:
        """Sum a field over all zones."""
        figures = [(of.live, of.sums[field]) for of in self.zones(now).values()]
        return _over_zones(figures, sum(one.value for _, one in figures))

    def maximum(self, field: str, now: float) -> Figure:
        """Compute the maximum of a field over all zones."""
        figures = [(of.live, of.maxima[field]) for of in self.zones(now).values()]
        return _over_zones(figures, max((one.value for _, one in figures), default=0))

    def domains(self, now: float) -> Figure:
        """Count the live domains with a row."""
        figures = [(of.live, of.reporting) for of in self.zones(now).values()]
        return _over_zones(figures, sum(one.value for _, one in figures))

    def _live(self, index: ZoneIndex, zone: str) -> list[Id]:
        return [domain for domain in index.zones[zone] if domain not in self._suspected]

    def _rows(self, of: RowSet, index: ZoneIndex, domains: Iterable[Id], now: float) -> tuple[list[DomainLoad], int]:
        """Return the clamped loads of domains, and the age of the oldest."""
        loads, oldest_s = [], 0
        for domain in domains:
            row = of.rows.get(domain)
            load = load_of(row.payload) if row is not None else None
            if row is not None and load is not None:
                loads.append(clamped(load, index.capacity[domain]))
                oldest_s = max(oldest_s, self._age_s(row.version, now))
        return loads, oldest_s

    def _age_s(self, version: int, now: float) -> int:
        return max(0, int(self._started_s + now) - version)

    def _own_totals(self, index: ZoneIndex, zone: str, now: float) -> ZoneTotals:
        loads, oldest_s = self._rows(self._loads, index, self._live(index, zone), now)
        return ZoneTotals(zone, len(loads), oldest_s, _added(loads), _highest(loads))

    def _stated_totals(self, index: ZoneIndex, zone: str, now: float) -> ZoneTotals:
        found = self._own_totals(index, zone, now)
        return msgspec.structs.replace(found, oldest_s=-(-found.oldest_s // AGE_STEP_S) * AGE_STEP_S)

    def _own_zone(self, index: ZoneIndex, zone: str, now: float) -> ZoneFigures:
        live = len(self._live(index, zone))
        found = self._own_totals(index, zone, now)
        return _figures(index, zone, live, found, _share(found.domains, live))

    def _foreign_zone(self, index: ZoneIndex, zone: str, now: float) -> ZoneFigures:
        domains = self._live(index, zone)
        live = len(domains)
        estimate, rows = self._estimate(index, domains, zone, now)
        trimmed = self._trimmed(index, zone, live, now)
        if trimmed is None:
            return _figures(index, zone, live, estimate, _share(rows, live))
        disputed = [field for field in DISPUTABLE if rows >= SAMPLE_MIN and _differ(trimmed, estimate, field)]
        used = msgspec.structs.replace(
            trimmed,
            sums=msgspec.structs.replace(trimmed.sums, **{field: getattr(estimate.sums, field) for field in disputed}),
        )
        return _figures(index, zone, live, used, _share(trimmed.domains, live), disputed)

    def _estimate(self, index: ZoneIndex, domains: list[Id], zone: str, now: float) -> tuple[ZoneTotals, int]:
        """Estimate a zone from its sample; return the number of rows as well."""
        sample = [domain for domain in domains if index.may_be_in_sample(domain)]
        loads, oldest_s = self._rows(self._sample, index, sample, now)
        sums, count = _added(loads), max(1, len(loads))
        scaled = DomainLoad(*(getattr(sums, field) * len(domains) // count for field in FIELDS))
        found = len(loads) * len(domains) // max(1, len(sample))
        return ZoneTotals(zone, found, oldest_s, scaled, _highest(loads)), len(loads)

    def _trimmed(self, index: ZoneIndex, zone: str, live: int, now: float) -> ZoneTotals | None:
        """Return, field by field, the median of what the zone's reporters state; None without any."""
        stated: list[ZoneTotals] = []
        for reporter in index.zones[zone]:
            row = self._totals.rows.get(reporter)
            if not index.may_report(reporter):
                break
            totals = totals_of(row.payload) if row is not None else None
            if row is not None and totals is not None and totals.zone == zone and len(stated) < 3:
                stated.append(msgspec.structs.replace(totals, oldest_s=totals.oldest_s + self._age_s(row.version, now)))
        if not stated:
            return None
        return ZoneTotals(
            zone,
            min(live, _median([one.domains for one in stated])),
            max(one.oldest_s for one in stated),
            DomainLoad(*(_median([getattr(one.sums, field) for one in stated]) for field in FIELDS)),
            DomainLoad(*(_median([getattr(one.maxima, field) for one in stated]) for field in FIELDS)),
        )


def _figures(
    index: ZoneIndex, zone: str, live: int, of: ZoneTotals, coverage: float, disputed: Iterable[str] = ()
) -> ZoneFigures:
    """Make figures of totals; sums are no more than the capacity of all domains of the zone, maxima than that of the largest."""
    capacities = [CAPACITY[index.capacity[domain]] for domain in index.zones[zone]]
    most, largest = _added(capacities), _highest(capacities)
    age_s, doubtful = of.oldest_s, list(disputed)

    def figure(value: int, limit: int, field: str) -> Figure:
        return Figure(min(value, limit), coverage, age_s, field in doubtful)

    return ZoneFigures(
        len(index.zones[zone]),
        live,
        Figure(of.domains, coverage, age_s),
        {field: figure(getattr(of.sums, field), getattr(most, field), field) for field in FIELDS},
        {field: figure(getattr(of.maxima, field), getattr(largest, field), "") for field in FIELDS},
    )


def _over_zones(figures: list[tuple[int, Figure]], value: int) -> Figure:
    live = sum(weight for weight, _ in figures)
    coverage = sum(weight * one.coverage for weight, one in figures) / live if live else 0.0
    oldest_s = max((one.oldest_s for _, one in figures), default=0)
    return Figure(value, coverage, oldest_s, any(one.disputed for _, one in figures))


def _added(loads: list[DomainLoad]) -> DomainLoad:
    return DomainLoad(*(min(sum(getattr(one, field) for one in loads), AMOUNT_MAX) for field in FIELDS))


def _highest(loads: list[DomainLoad]) -> DomainLoad:
    return DomainLoad(*(max((getattr(one, field) for one in loads), default=0) for field in FIELDS))


def _median(of: list[int]) -> int:
    """Return the lower median."""
    return sorted(of)[(len(of) - 1) // 2]


def _share(part: int, of: int) -> float:
    return min(1.0, part / of) if of else 0.0


def _differ(one: ZoneTotals, other: ZoneTotals, field: str) -> bool:
    """Return True if two sums differ by more than DISPUTE; small ones do not count."""
    low, high = sorted((getattr(one.sums, field), getattr(other.sums, field)))
    return bool(high > DISPUTE * max(low, other.domains))


TIMERS = frozenset({ReportDue})
