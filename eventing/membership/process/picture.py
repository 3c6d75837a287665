"""Picture of the federation for gateways: made by the process of the overlay from its machines, and stored in Redis.

The picture is made anew every PICTURE_S while somebody looks at it, else every UNWATCHED_S and when something has happened; never more
often than costs COST of a core. What is known of single domains (load,
round-trip times) is stored beside it, as only pages of the directory read it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from eventing.core.timestamps import timestamp
from eventing.membership.process.happened import EFFECT_NAMES
from eventing.membership.shapes import (
    OverlayDomainLoad,
    OverlayFigure,
    OverlayFigures,
    OverlayHealth,
    OverlayLoad,
    OverlayLoadFigures,
    OverlayPicture,
    OverlayScore,
    OverlaySuspicion,
    SeenDomains,
)
from eventing.overlay.aggregates import Figure, ZoneFigures
from eventing.overlay.load_rows import FIELDS, DomainLoad
from eventing.overlay.member import OverlayMember
from eventing.store.overlay_pictures import picture_store, seen_store

PICTURE_S = 5.0
UNWATCHED_S = 60.0
SOON_S = 0.5
"""After an event or the first look; the events of one moment are shown together."""
SEEN_S = 30.0
"""Between two stores of what is known of single domains."""
COST = 0.005
"""Share of a core that making pictures may take; with many domains, pictures are older."""
KEPT = 3.0
"""A picture is shown for so many of its longest periods; then the process has ended."""
SCORES_MAX = 200  # bound: scores in a picture; the best are left out
SUSPECTED_MAX = 200  # bound: suspicions in a picture; the latest are left out
SEEN_MAX = 20_000  # bound: domains of which load and round-trip times are shown; of the others none is

_encode = msgspec.msgpack.Encoder().encode


class PictureMaker:
    """Makes pictures of one run.

    Args:
        started_s: seconds since 1970 at the time 0 of the machines.
        rtt_ms: smoothed round-trip times by domain.
    """

    def __init__(self, member: OverlayMember, started_s: float, rtt_ms: Callable[[], Mapping[str, float]]) -> None:
        self._member = member
        self._started_s = started_s
        self._rtt_ms = rtt_ms
        self._due_at = self._not_before = 0.0
        self._seen_at = 0.0

    def next_at(self) -> float:
        """Return when the next picture is due."""
        return self._due_at

    def soon(self, now: float) -> None:
        """Have the next picture made at once: something has happened, or somebody looks."""
        self._due_at = min(self._due_at, max(now + SOON_S, self._not_before))

    def due(self, now: float) -> None:
        """Store a picture if it is time. Raises redis.RedisError."""
        if now < self._due_at:
            return
        began = time.thread_time()
        picture, seen_due = _encode(self.picture(now)), now >= self._seen_at
        seen = _encode(self.seen(now)) if seen_due else b""
        cost_s = time.thread_time() - began
        self._not_before = now + cost_s / COST
        self._due_at = now + UNWATCHED_S
        watched = picture_store(picture, KEPT * max(UNWATCHED_S, cost_s / COST))
        self._due_at = max(self._not_before, now + (PICTURE_S if watched else UNWATCHED_S))
        if seen_due:
            self._seen_at = max(self._not_before, now + SEEN_S)
            seen_store(seen, KEPT * max(UNWATCHED_S, cost_s / COST))

    def picture(self, now: float) -> OverlayPicture:
        """Make the picture of now."""
        member, aggregates = self._member, self._member.aggregates
        zones = {} if aggregates is None else aggregates.zones(now)
        whole = _NOTHING if aggregates is None else aggregates.whole(zones)
        own = None if aggregates is None else aggregates.load(member.me, now)
        return OverlayPicture(
            at=self._moment(now),
            whole=_figures(None, whole),
            zones=[_figures(zone, of) for zone, of in zones.items()],
            suspected=self._suspected(),
            health=self._health(now),
            scores=self._scores(now),
            load=None if own is None else OverlayLoad(**_amounts(own[0])),
        )

    def seen(self, now: float) -> SeenDomains:
        """Return what is known of single domains."""
        loads, aggregates = {}, self._member.aggregates
        if aggregates is not None:
            for domain, (load, age_s) in aggregates.loads(now, SEEN_MAX).items():
                loads[str(domain)] = OverlayDomainLoad(**_amounts(load), age_s=age_s)
        return SeenDomains(loads, dict(self._rtt_ms()))

    def _moment(self, now: float) -> str:
        return timestamp(datetime.fromtimestamp(self._started_s + now, UTC))

    def _suspected(self) -> list[OverlaySuspicion]:
        suspicion = self._member.suspicion
        if suspicion is None:
            return []
        found = sorted(suspicion.suspected.items(), key=lambda one: one[1])[:SUSPECTED_MAX]
        return [
            OverlaySuspicion(domain=domain, since=self._moment(since), accusers=list(suspicion.accusers_of(domain)))
            for domain, since in found
        ]

    def _health(self, now: float) -> OverlayHealth:
        liveness, suspicion = self._member.liveness, self._member.suspicion
        doubts = suspicion is not None and suspicion.doubts_itself
        state = "accuses-nobody" if doubts else "suspects-itself" if liveness.health > 1 else "well"
        observed, silent = (0, 0) if suspicion is None else suspicion.observed
        return OverlayHealth(
            state=state,
            wait_factor=liveness.health,
            observed=observed,
            silent=silent,
            accused_by=[] if suspicion is None else suspicion.accusers_of_own(now),
        )

    def _scores(self, now: float) -> list[OverlayScore]:
        scores = self._member.scores
        if scores is None:
            return []
        found = [
            OverlayScore(
                peer=peer,
                region=region,
                score=round(account.score, 2),
                reason=account.reason if account.score < 0 else "",
                effects=[EFFECT_NAMES[effect] for effect in account.in_force],
                held_back_s=scores.held_back_s(peer, now),
            )
            for (region, peer), account in scores.accounts.items()
        ]
        return sorted(found, key=lambda one: (one.score, one.peer, one.region))[:SCORES_MAX]


_NO_FIGURE = Figure(0, 0.0, 0)
_NOTHING = ZoneFigures(0, 0, _NO_FIGURE, dict.fromkeys(FIELDS, _NO_FIGURE), dict.fromkeys(FIELDS, _NO_FIGURE))


def _figures(zone: str | None, of: ZoneFigures) -> OverlayFigures:
    return OverlayFigures(
        zone=zone,
        known=of.known,
        live=of.live,
        reporting=_figure(of.reporting),
        sums=_of_fields(of.sums),
        maxima=_of_fields(of.maxima),
    )


def _of_fields(of: Mapping[str, Figure]) -> OverlayLoadFigures:
    return OverlayLoadFigures(**{field: _figure(figure) for field, figure in of.items()})


def _figure(of: Figure) -> OverlayFigure:
    return OverlayFigure(value=of.value, coverage=round(of.coverage, 4), oldest_s=of.oldest_s, disputed=of.disputed)


def _amounts(load: DomainLoad) -> dict[str, Any]:
    return msgspec.structs.asdict(load)


NO_FIGURES = _figures(None, _NOTHING)
"""Figures of a domain that knows of nobody."""
