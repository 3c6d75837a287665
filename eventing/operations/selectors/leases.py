"""Reads of all leases of the domain together, the soonest to expire first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from eventing.core.errors import InvalidCursor, InvalidRequest
from eventing.core.timestamps import timestamp
from eventing.intakes.models import Intake
from eventing.operations.shapes import LeaseListed
from eventing.peering.models import Peer
from eventing.rps.models import RendezvousPoint
from eventing.sql.leases import renewed_from
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of
from eventing.subscriptions.models import Subscription

# bound: leases of a kind that the Overview counts; leases that expire later are not counted
# About 30 ms.
ENDING_COUNTED_MAX = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRONG = "Use `next` of the previous page, with the same filters."


@dataclass(frozen=True, slots=True)
class _Source:
    """The source of leases of a kind: the rows, the column of their ids, and the conversion to a LeaseListed."""

    rows: Callable[[], QuerySet[Any]]
    id: str
    columns: tuple[str, ...]
    about: Callable[..., tuple[str | None, str | None, str | None]]


_SOURCES: dict[str, _Source] = {
    "intake": _Source(lambda: Intake.objects.all(), "id", ("rp_id", "owner"), lambda id, rp, owner: (rp, None, owner)),
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
"""The order of leases that expire at the same instant."""


def leases_page(
    *,
    kind: str | None = None,
    ends_before: datetime | None = None,
    cursor: str | None = None,
    limit: int = LIMIT_DEFAULT,
    now: datetime | None = None,
) -> Page[LeaseListed]:
    """Return a page of the valid leases, the soonest to expire first.

    Args:
        kind: of KINDS; None for all.
        ends_before: only those that expire before this time.

    Raises InvalidRequest, InvalidCursor.
    """
    if kind is not None and kind not in KINDS:
        raise InvalidRequest(f"kind must be one of {', '.join(KINDS)}.")
    place = None if cursor is None else _place(cursor)
    found: list[LeaseListed] = []
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
            LeaseListed(each, id, *source.about(id, *more), granted_s, timestamp(expires_at), warned_at is not None)
            for id, granted_s, expires_at, warned_at, *more in values
        ]
    found.sort(key=lambda lease: (lease.expires_at, lease.kind, lease.id))
    more, found = len(found) > limit, found[:limit]
    return Page(found, _cursor(found[-1]) if more else None)


def leases_ending(*, within: timedelta, now: datetime | None = None) -> int:
    """Return how many RPs, intakes, durable subscriptions and peers expire within a time unless they are used or renewed.

    Objects in use are not counted: use renews them. Nor are replicas, which this domain renews. Of each kind the
    ENDING_COUNTED_MAX soonest to expire are examined.
    """
    now = now or timezone.now()
    ending = Q(expires_at__gt=now, expires_at__lt=now + within)
    rps = RendezvousPoint.objects.filter(ending, home="").only("expires_at", "asked_s", "renew_on_use", "home")
    subscriptions = Subscription.objects.filter(ending).only("expires_at", "asked_s", "granted_s", "keeper")
    intakes = Intake.objects.filter(ending).only("expires_at", "asked_s")
    idle = sum(_idle(row, now) for row in rps.order_by("expires_at")[:ENDING_COUNTED_MAX])
    idle += sum(_idle(row, now) for row in intakes.order_by("expires_at")[:ENDING_COUNTED_MAX])
    idle += sum(_idle(row, now) for row in subscriptions.order_by("expires_at")[:ENDING_COUNTED_MAX])
    return idle + Peer.objects.filter(ending).count()


def _idle(row: RendezvousPoint | Subscription | Intake, now: datetime) -> bool:
    """Return whether use does not renew the lease, or has not recently."""
    return not now.timestamp() < renewed_from(row) < math.inf


def _beyond(kind: str, id_column: str, moment: datetime, of_kind: str, id: str) -> Q:
    """Return the condition for rows of this kind after a place in the order of (end, kind, id)."""
    if kind < of_kind:
        return Q(expires_at__gt=moment)
    if kind > of_kind:
        return Q(expires_at__gte=moment)
    return Q(expires_at__gt=moment) | Q(**{"expires_at": moment, f"{id_column}__gt": id})


def _cursor(lease: LeaseListed) -> str:
    micros = (datetime.fromisoformat(lease.expires_at) - _EPOCH) // timedelta(microseconds=1)
    return cursor_of("leases", f"{micros} {lease.kind} {lease.id}")


def _place(cursor: str) -> tuple[datetime, str, str]:
    micros, kind, id = [*key_of("leases", cursor).split(" ", 2), "", ""][:3]
    if not (micros.isascii() and micros.isdigit() and len(micros) <= 17 and kind in KINDS and id):
        raise InvalidCursor(_WRONG)
    return _EPOCH + timedelta(microseconds=int(micros)), kind, id
