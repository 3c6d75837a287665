"""Events of the overlay, stored and reported on `domain.admin`: each link made, dropped or replaced with its reason, domains
admitted and expired, proofs of equivocation, suspicions, effects of scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.utils import timezone

from eventing.core.ids import DOMAIN_ADMIN
from eventing.membership.models import OverlayLink
from eventing.membership.services.directory import directory_convict
from eventing.membership.services.map_changes import map_links_report
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change

NAMED_MAX = 100
"""Domains named in one event; the others are counted."""
ACCUSERS_MAX = 16
"""Accusers named in one event: more than a domain has monitors."""
EFFECTS = ("demoted", "not-chosen", "condemned")
"""Effects of scores, the mildest first."""
ENDED_MAX = 1000  # bound: ended links that are remembered; the oldest are forgotten


class LinkMade(msgspec.Struct, frozen=True):
    """A link was made. `reason`: chosen, accepted, anchor, nearer or rotated. `replaces`: the domain whose link it replaced."""

    peer: str
    chosen: bool
    anchor: bool
    reason: str
    replaces: str | None = None
    rtt_ms: float | None = None


class LinkDropped(msgspec.Struct, frozen=True):
    """A link ended. `reason`: transport, silent, evicted, leaving, quarantine, stopped. `replaced_by`: the domain that took its place."""

    peer: str
    reason: str
    replaced_by: str | None = None


class DirectoryChanged(msgspec.Struct, frozen=True):
    """Domains were admitted to the directory, or their records expired."""

    admitted: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()


class EquivocationProved(msgspec.Struct, frozen=True):
    """A domain signed contradictory statements."""

    domain: str
    detail: str


class SelfSuspected(msgspec.Struct, frozen=True):
    """So many links were silent at once that this domain suspects itself."""

    silent: int
    links: int


class DomainSuspected(msgspec.Struct, frozen=True):
    """Monitors accuse a domain of being silent, and it has not rebutted that."""

    domain: str
    accusers: tuple[str, ...]


class DomainSuspicionEnded(msgspec.Struct, frozen=True):
    """A domain is suspected no longer. `reason`: rebutted or withdrawn."""

    domain: str
    reason: str


class OwnSuspicionRebutted(msgspec.Struct, frozen=True):
    """This domain was accused, and has rebutted that."""

    accusers: tuple[str, ...]


class AccusationsPaused(msgspec.Struct, frozen=True):
    """This domain accuses nobody, as so many are silent."""

    silent: int
    observed: int


class AccusationsResumed(msgspec.Struct, frozen=True):
    """This domain accuses silent domains again."""


class RowsContradict(msgspec.Struct, frozen=True):
    """A domain signed two different rows of one version."""

    domain: str
    object: str
    version: int


class ScoreEffect(msgspec.Struct, frozen=True):
    """An effect of a score began. `effect`: of EFFECTS."""

    peer: str
    region: str
    effect: str
    score: float
    reason: str
    back_off_s: float | None = None


class ScorePardoned(msgspec.Struct, frozen=True):
    """An effect of a score ended."""

    peer: str
    region: str
    effect: str
    score: float


class QueuesAreFull(msgspec.Struct, frozen=True):
    """This domain sends more than it can."""

    full: int
    links: int


Happening = (
    LinkMade
    | LinkDropped
    | DirectoryChanged
    | EquivocationProved
    | SelfSuspected
    | DomainSuspected
    | DomainSuspicionEnded
    | OwnSuspicionRebutted
    | AccusationsPaused
    | AccusationsResumed
    | RowsContradict
    | ScoreEffect
    | ScorePardoned
    | QueuesAreFull
)
_KINDS: dict[type[Any], str] = {
    LinkMade: events.OVERLAY_LINK_MADE,
    LinkDropped: events.OVERLAY_LINK_DROPPED,
    EquivocationProved: events.OVERLAY_EQUIVOCATION,
    SelfSuspected: events.OVERLAY_SELF_SUSPECTED,
    DomainSuspected: events.OVERLAY_SUSPECTED,
    DomainSuspicionEnded: events.OVERLAY_SUSPICION_ENDED,
    OwnSuspicionRebutted: events.OVERLAY_SUSPICION_REBUTTED,
    AccusationsPaused: events.OVERLAY_ACCUSATIONS_PAUSED,
    AccusationsResumed: events.OVERLAY_ACCUSATIONS_RESUMED,
    RowsContradict: events.OVERLAY_ROWS_CONTRADICT,
    ScoreEffect: events.OVERLAY_SCORE_EFFECT,
    ScorePardoned: events.OVERLAY_SCORE_PARDONED,
    QueuesAreFull: events.OVERLAY_QUEUES_FULL,
}


def happenings_store(happenings: Sequence[Happening], *, now: datetime | None = None) -> None:
    """Store and report happenings, in order."""
    now = now or timezone.now()
    with change(now, patient=False) as outbox:
        for one in happenings:
            if isinstance(one, EquivocationProved):
                directory_convict(one.domain, outbox=outbox)
            kind, data = _told(one)
            outbox.event(kind, DOMAIN_ADMIN, data)
        map_links_report(outbox, _links_store(happenings, now))


def links_end(reason: str, *, now: datetime | None = None) -> int:
    """Mark all links as ended: the process that held them has ended. Returns how many."""
    now = now or timezone.now()
    rows = list(OverlayLink.objects.filter(up=True).order_by("peer"))
    if rows:
        with change(now, patient=False) as outbox:
            OverlayLink.objects.filter(up=True).update(up=False, reason=reason, since=now)
            for row in rows:
                row.up = False
            map_links_report(outbox, rows)
    return len(rows)


def _told(one: Happening) -> tuple[str, dict[str, object]]:
    if isinstance(one, DirectoryChanged):
        return events.OVERLAY_DIRECTORY_CHANGED, {
            "admitted": list(one.admitted[:NAMED_MAX]),
            "expired": list(one.expired[:NAMED_MAX]),
            "admitted_count": len(one.admitted),
            "expired_count": len(one.expired),
        }
    data = msgspec.structs.asdict(one)
    if "accusers" in data:
        data["accusers"] = list(data["accusers"][:ACCUSERS_MAX])
    return _KINDS[type(one)], data


def _links_store(happenings: Sequence[Happening], now: datetime) -> list[OverlayLink]:
    """Store links that were made or ended; return their rows, the last state of each."""
    rows: dict[str, OverlayLink] = {}
    for one in happenings:
        if isinstance(one, LinkMade):
            rows[one.peer] = OverlayLink(
                peer=one.peer, up=True, chosen=one.chosen, anchor=one.anchor, reason=one.reason, since=now
            )
        elif isinstance(one, LinkDropped):
            rows[one.peer] = OverlayLink(
                peer=one.peer, up=False, chosen=False, anchor=False, reason=one.reason, since=now
            )
    if not rows:
        return []
    OverlayLink.objects.bulk_create(
        rows.values(),
        update_conflicts=True,
        unique_fields=["peer"],
        update_fields=["up", "chosen", "anchor", "reason", "since"],
    )
    ended = OverlayLink.objects.filter(up=False).order_by("-since").values_list("peer", flat=True)
    beyond = list(ended[ENDED_MAX : ENDED_MAX + 500])
    if beyond:
        OverlayLink.objects.filter(peer__in=beyond).delete()
    return list(rows.values())
