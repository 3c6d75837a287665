"""Samples of the overlay at `overlay.admin`: once a minute, what the process of the overlay shows, the links, and the traffic between.

A sample that Redis does not take is lost: the next one covers its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from django.utils import timezone

from eventing.core.ids import OVERLAY_ADMIN
from eventing.core.timestamps import timestamp
from eventing.membership.map_shapes import (
    LINKS_MAX,
    SUSPECTED_MAX,
    ZONES_MAX,
    MapFigures,
    MapLinkTime,
    MapSample,
    MapZone,
)
from eventing.membership.models import OverlayLink
from eventing.membership.selectors.directory import domains_count
from eventing.membership.selectors.map_rows import sample_last
from eventing.membership.selectors.membership import membership_get
from eventing.membership.selectors.picture import KnownNow, known_now
from eventing.membership.shapes import OverlayFigures
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.peering.selectors.partners import partners
from eventing.periodic.services import run_require
from eventing.store.overlay_queues import overlay_running
from eventing.store.overlay_samples import overlay_sample_store
from eventing.store.peer_state import traffic_totals

INTERVAL_S_MAX = 600.0
"""A longer time between two samples is a pause: counts of it are not those of an interval."""

Totals = Mapping[str, Mapping[str, int]]
_encode = msgspec.json.encode


def overlay_sample(*, now: datetime | None = None) -> int:
    """Sample the overlay. Returns 1, or 0 if this domain takes part in none. Raises redis.RedisError, and Superseded for a run that is not
    the newest: a minute has one sample."""
    now = now or timezone.now()
    if membership_get() is None:
        return 0
    before, known, running = sample_last(), known_now(watching=False), overlay_running()
    totals = traffic_totals([one.name for one in partners()])
    interval_s = 0.0
    if before is not None:
        interval_s = (now - datetime.fromisoformat(before.figures.at)).total_seconds()
    if before is None or not 0 < interval_s <= INTERVAL_S_MAX:
        interval_s, counted = 0.0, _counted({}, totals)
    else:
        counted = _counted(before.totals, totals)
    figures = _figures(known, running, now=now, interval_s=interval_s, counted=counted)
    with change(now, patient=False) as outbox:
        run_require()
        overlay_sample_store(_encode(MapSample(figures, totals)))
        outbox.event(events.OVERLAY_SAMPLED, OVERLAY_ADMIN, msgspec.structs.asdict(figures))
    return 1


def _counted(before: Totals, after: Totals) -> dict[str, int]:
    """Return what was counted between two samples; nothing of a partner that the first one has not."""
    return {
        name: sum(max(0, after[one][name] - before[one].get(name, 0)) for one in after if one in before)
        for name in ("events", "copies", "sent")
    }


def _figures(
    known: KnownNow, running: bool, *, now: datetime, interval_s: float, counted: Mapping[str, int]
) -> MapFigures:
    picture = known.picture if running else None
    links = list(OverlayLink.objects.filter(up=True).order_by("peer"))
    times = sorted(rtt_ms for link in links if (rtt_ms := known.seen.rtt_ms.get(link.peer)) is not None)
    suspected = [] if picture is None else [one.domain for one in picture.suspected]
    zones = [] if picture is None else sorted(picture.zones, key=lambda one: (-one.known, one.zone or ""))
    return MapFigures(
        at=timestamp(now),
        interval_s=round(interval_s, 3),
        running=running,
        health=None if picture is None else picture.health.state,
        domains=domains_count(),
        live=None if picture is None else picture.whole.live,
        reporting=None if picture is None else picture.whole.reporting.value,
        coverage=None if picture is None else picture.whole.reporting.coverage,
        suspected=suspected[:SUSPECTED_MAX],
        suspected_count=len(suspected),
        chosen=sum(1 for link in links if link.chosen),
        accepted=sum(1 for link in links if not link.chosen),
        anchors=sum(1 for link in links if link.anchor),
        links=[MapLinkTime(peer=link.peer, rtt_ms=known.seen.rtt_ms.get(link.peer)) for link in links[:LINKS_MAX]],
        rtt_p50_ms=percentile(times, 0.5),
        rtt_p90_ms=percentile(times, 0.9),
        **counted,
        zones=[_zone(one) for one in zones[:ZONES_MAX]],
    )


def _zone(of: OverlayFigures) -> MapZone:
    sums = of.sums
    return MapZone(
        zone=of.zone or "",
        known=of.known,
        live=of.live,
        reporting=of.reporting.value,
        coverage=of.reporting.coverage,
        oldest_s=of.reporting.oldest_s,
        disputed=sums.sessions.disputed or sums.events_in_per_s.disputed or sums.events_out_per_s.disputed,
        sessions=sums.sessions.value,
        events_in_per_s=sums.events_in_per_s.value,
        events_out_per_s=sums.events_out_per_s.value,
        backlog=sums.backlog.value,
        links=sums.links.value,
    )


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the nearest-rank percentile of sorted values; None of none."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
