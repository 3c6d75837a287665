"""Events of the overlay, stored and reported on `domain.admin`: each link made, dropped or replaced with its reason, domains
admitted and expired, proofs of equivocation, own suspicions.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from django.utils import timezone

from eventing.core.ids import DOMAIN_ADMIN
from eventing.membership.models import OverlayLink
from eventing.membership.services.directory import directory_convict
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change

NAMED_MAX = 100
"""Domains named in one event; the others are counted."""
ENDED_MAX = 1000  # bound: ended links that are remembered; the oldest are forgotten


class LinkMade(msgspec.Struct, frozen=True):
    """A link was made. `reason`: chosen, accepted, anchor, nearer or rotated. `replaces`: the domain whose link it replaced."""

    peer: str
    chosen: bool
    anchor: bool
    reason: str
    replaces: str | None = None


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


Happening = LinkMade | LinkDropped | DirectoryChanged | EquivocationProved | SelfSuspected


def happenings_store(happenings: Sequence[Happening], *, now: datetime | None = None) -> None:
    """Store and report happenings, in order."""
    now = now or timezone.now()
    with change(now, patient=False) as outbox:
        for one in happenings:
            if isinstance(one, EquivocationProved):
                directory_convict(one.domain, now=now)
            kind, data = _told(one)
            outbox.event(kind, DOMAIN_ADMIN, data)
        _links_store(happenings, now)


def links_end(reason: str, *, now: datetime | None = None) -> int:
    """Mark all links as ended: the process that held them has ended. Returns how many."""
    return OverlayLink.objects.filter(up=True).update(up=False, reason=reason, since=now or timezone.now())


def _told(one: Happening) -> tuple[str, dict[str, object]]:
    match one:
        case LinkMade():
            return events.OVERLAY_LINK_MADE, msgspec.structs.asdict(one)
        case LinkDropped():
            return events.OVERLAY_LINK_DROPPED, msgspec.structs.asdict(one)
        case EquivocationProved():
            return events.OVERLAY_EQUIVOCATION, msgspec.structs.asdict(one)
        case SelfSuspected():
            return events.OVERLAY_SELF_SUSPECTED, msgspec.structs.asdict(one)
        case DirectoryChanged():
            return events.OVERLAY_DIRECTORY_CHANGED, {
                "admitted": list(one.admitted[:NAMED_MAX]),
                "expired": list(one.expired[:NAMED_MAX]),
                "admitted_count": len(one.admitted),
                "expired_count": len(one.expired),
            }


def _links_store(happenings: Sequence[Happening], now: datetime) -> None:
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
        return
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
