"""Figures of a page of rendezvous points for lists: size, readers, lag and alarms, by a fixed number of reads.

Two queries of SQL and three round trips to Redis for all of them together, however many RPs the domain has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgspec
from django.utils import timezone

from eventing.core.decoding import Undecodable, json_reader
from eventing.core.principals import Principal
from eventing.core.roles import oversees
from eventing.log.lags import lags
from eventing.operations.models import Alarm
from eventing.operations.selectors.console import rendezvous_points_listed
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.store.load import rps_loads
from eventing.store.presence import gateways_alive
from eventing.subscriptions.selectors.losses import asked_at

LAGS_MAX = 2000  # bound: durable subscriptions whose lag is read for a page of a list; the others do not count
CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class RpFigures:
    """Figures of one RP. `readers`, `behind`, `lost` and the alarms are None for those who may not follow its admin RP.

    Attributes:
        events, bytes: what the history holds.
        readers: readings now.
        subscriptions: its durable subscriptions.
        behind, lost: of the one that is furthest behind, and of all, what left the history before it was read.
        alarms, critical: alarms in force, and how many of them are critical.
    """

    events: int
    bytes: int
    readers: int | None = None
    subscriptions: int | None = None
    behind: int | None = None
    lost: int | None = None
    alarms: int | None = None
    critical: int | None = None


class _Sample(msgspec.Struct):
    """The member of an RP's sample that is needed (operations/samples/flow_samples.py)."""

    readings: int = 0


_read = json_reader(_Sample)


def rp_figures(*, principal: Principal, ids: Collection[str]) -> dict[str, RpFigures]:
    """Return the figures of those of `ids` (at most EXTENTS_MAX) that `principal` may describe. Raises redis.RedisError."""
    listed = rendezvous_points_listed(principal=principal, ids=ids)
    everywhere = oversees(principal)
    followed = [item.rp.id for item in listed if everywhere or descriptor_of(item.rp).allows(principal, "administer")]
    readers, alarms, critical = _readers(followed), *_alarms(followed)
    subscriptions, behind, lost = _lags(followed)
    found = {}
    for item in listed:
        rp, log = item.rp.id, item.log
        held = (log.next - log.first, log.bytes) if log else (0, 0)
        found[rp] = (
            RpFigures(*held, readers[rp], subscriptions[rp], behind[rp], lost[rp], alarms[rp], critical[rp])
            if rp in followed
            else RpFigures(*held)
        )
    return found


def _readers(rps: list[str]) -> Counter[str]:
    alive = set(gateways_alive(timezone.now()))
    found: Counter[str] = Counter()
    for rp, samples in rps_loads(rps).items():
        found[rp] = sum(_readings(row for gateway, row in samples.items() if gateway in alive))
    return found


def _readings(rows: Iterable[bytes]) -> Iterable[int]:
    for row in rows:
        try:
            yield _read(row).readings
        except Undecodable:
            continue


def _lags(rps: list[str]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return by RP the number of durable subscriptions, the greatest lag, and the events lost to all of them."""
    count, behind, lost = Counter[str](), Counter[str](), Counter[str]()
    asked = asked_at(rps, LAGS_MAX)
    for one, found in zip(asked, lags(asked), strict=True):
        count[one.rp] += 1
        behind[one.rp] = max(behind[one.rp], found.lag.events)
        lost[one.rp] += found.lag.lost or 0
    return count, behind, lost


def _alarms(rps: list[str]) -> tuple[Counter[str], Counter[str]]:
    rows = list(Alarm.objects.filter(cleared_at=None, rp__in=rps).values_list("rp", "severity"))
    return Counter(rp for rp, _ in rows), Counter(rp for rp, severity in rows if severity == CRITICAL)
