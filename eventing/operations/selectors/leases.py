"""Reads of all leases of the domain together, the soonest to end first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from eventing.core.errors import InvalidCursor, InvalidRequest
from eventing.peering.models import Peer
from eventing.rps.models import RendezvousPoint
from eventing.sql.leases import renewed_from
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of
from eventing.subscriptions.models import Subscription

ENDING_COUNTED_MAX = 10_000  # leases of a kind that are looked at to count what ends: about 30 ms
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRONG = "Use the `next` of the page before, with the same filters."


@dataclass(frozen=True, slots=True)
class Lease:
    """One lease.

    Attributes:
        kind: of KINDS: an RP of this domain, a durable subscription, this domain's replica of another's RP, a peer.
        id: of the RP or subscription; the peer's name.
        rp: id of the RP that it is of; None of a peer's.
        name: the RP's; None if it has none, and of the others.
        owner: who made it; the home's name of a replica; None of a peer's.
        warned: whether its end has been warned of.
    """

    kind: str
    id: str
    rp: str | None
    name: str | None
    owner: str | None
    granted_s: int
    expires_at: datetime
    warned: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """Where leases of a kind are: the rows, the column of their ids, and how columns become a Lease."""

    rows: Callable[[], QuerySet[Any]]
    id: str
    columns: tuple[str, ...]
    about: Callable[..., tuple[str | None, str | None, str | None]]


_SOURCES: dict[str, _Source] = {
    "peer": _Source(lambda: Peer.objects.all(), "name", (), lambda id: (None, None, None)),
    "replica": _Source(
        lambda: RendezvousPoint.objects.exclude(home=""),
        "id",
        ("name", "home"),
        lambda id, name, home: (id, name, home),
    ),
    "rp": _Source(
        lambda: RendezvousPoint.objects.filter(home=""),
        "id",
        ("name", "creator"),
        lambda id, name, creator: (id, name, creator),
    ),
    "subscription": _Source(
        lambda: Subscription.objects.all(), "id", ("at", "owner"), lambda id, at, owner: (at, None, owner)
    ),
}
KINDS = tuple(_SOURCES)
"""In the order in which leases that end at the same instant are listed."""


def leases_page(
    *,
    kind: str | None = None,
    ends_before: datetime | None = None,
    cursor: str | None = None,
    limit: int = LIMIT_DEFAULT,
    now: datetime | None = None,
) -> Page[Lease]:
    """The leases that run, the soonest to end first.

    Args:
        kind: of KINDS; None for all.
        ends_before: only those that end before then.

    Raises InvalidRequest, InvalidCursor.
    """
    if kind is not None and kind not in KINDS:
        raise InvalidRequest(f"kind is one of {', '.join(KINDS)}.")
    place = None if cursor is None else _place(cursor)
    found: list[Lease] = []
    for each in KINDS if kind is None else (kind,):
        source = _SOURCES[each]
        rows = source.rows().filter(expires_at__gt=now or timezone.now())
        if ends_before is not None:
            rows = rows.filter(expires_at__lt=ends_before)
        if place is not None:
            rows = rows.filter(_beyond(each, source.id, *place))
        ordered = rows.order_by("expires_at", source.id)[: limit + 1]
        values = ordered.values_list(source.id, "granted_s", "expires_at", "warned_at", *source.columns)
        found += [
            Lease(each, id, *source.about(id, *more), granted_s, expires_at, warned_at is not None)
            for id, granted_s, expires_at, warned_at, *more in values
        ]
    found.sort(key=lambda lease: (lease.expires_at, lease.kind, lease.id))
    more, found = len(found) > limit, found[:limit]
    return Page(found, _cursor(found[-1]) if more else None)


def leases_ending(*, within: timedelta, now: datetime | None = None) -> int:
    """How many RPs, durable subscriptions and peers end within a time unless they are used or renewed.

    What is in use is not counted: use renewed it lately and will again. Nor are replicas, which this domain renews. Of each
    kind the ENDING_COUNTED_MAX that end first are looked at.
    """
    now = now or timezone.now()
    ending = Q(expires_at__gt=now, expires_at__lt=now + within)
    rps = RendezvousPoint.objects.filter(ending, home="").only("expires_at", "asked_s", "renew_on_use", "home")
    subscriptions = Subscription.objects.filter(ending).only("expires_at", "asked_s", "granted_s", "keeper")
    idle = sum(_idle(row, now) for row in rps.order_by("expires_at")[:ENDING_COUNTED_MAX])
    idle += sum(_idle(row, now) for row in subscriptions.order_by("expires_at")[:ENDING_COUNTED_MAX])
    return idle + Peer.objects.filter(ending).count()


def _idle(row: RendezvousPoint | Subscription, now: datetime) -> bool:
    """Whether use does not renew the lease, or has not for a while."""
    return not now.timestamp() < renewed_from(row) < math.inf


def _beyond(kind: str, id_column: str, moment: datetime, of_kind: str, id: str) -> Q:
    """What follows a place in the order of (end, kind, id), of this kind."""
    if kind < of_kind:
        return Q(expires_at__gt=moment)
    if kind > of_kind:
        return Q(expires_at__gte=moment)
    return Q(expires_at__gt=moment) | Q(**{"expires_at": moment, f"{id_column}__gt": id})


def _cursor(lease: Lease) -> str:
    micros = (lease.expires_at - _EPOCH) // timedelta(microseconds=1)
    return cursor_of("leases", f"{micros} {lease.kind} {lease.id}")


def _place(cursor: str) -> tuple[datetime, str, str]:
    micros, kind, id = [*key_of("leases", cursor).split(" ", 2), "", ""][:3]
    if not (micros.isascii() and micros.isdigit() and len(micros) <= 17 and kind in KINDS and id):
        raise InvalidCursor(_WRONG)
    return _EPOCH + timedelta(microseconds=int(micros)), kind, id
