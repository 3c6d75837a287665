"""Reads of rendezvous points: by id or name, in pages, with the extents of their logs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from eventing.conf import config
from eventing.core import names
from eventing.core.errors import Gone, InvalidCursor, NotFound
from eventing.core.events.positions import LogState
from eventing.core.principals import Principal
from eventing.log import control
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Listed:
    """An RP of a page, and its log's extent (None: no log, or none yet)."""

    rp: RendezvousPoint
    log: LogState | None


def rendezvous_point_get(reference: str, *, now: datetime | None = None, lock: bool = False) -> RendezvousPoint:
    """Return the RP denoted by `reference` (id or name); `lock` locks its row until the transaction ends.

    Raises NotFound, InvalidRequest for a malformed reference, and Gone for an RP whose lease has ended. Administrative
    RPs have no row: NotFound.
    """
    rows = RendezvousPoint.objects.select_for_update() if lock else RendezvousPoint.objects.all()
    if names.is_id(reference):
        row = rows.filter(id=reference).first()
    else:
        row = rows.filter(name=names.normalise(reference, config().domain)).first()
    if row is None:
        raise NotFound(f"There is no rendezvous point {reference}.")
    if row.expires_at <= (now or timezone.now()):
        raise Gone(f"The rendezvous point {reference} no longer exists: its lease ended.")
    return row


def rp_kept(rp: str) -> RendezvousPoint | None:
    """Return the RP with this id, until it is reaped; None if there is none."""
    return RendezvousPoint.objects.filter(id=rp).first()


def rp_live(rp: str, *, now: datetime | None = None) -> RendezvousPoint | None:
    """Return the RP with this id; None if there is none, or its lease has ended."""
    return RendezvousPoint.objects.filter(id=rp, expires_at__gt=now or timezone.now()).first()


def rp_ids() -> Iterator[str]:
    """Return the ids of all RPs, in order."""
    return RendezvousPoint.objects.order_by("id").values_list("id", flat=True).iterator()


def rps_after(rp: str, count: int) -> list[RendezvousPoint]:
    """Return up to `count` live RPs with ids after `rp`, by id, with the columns of their names."""
    rows = RendezvousPoint.objects.filter(id__gt=rp, expires_at__gt=timezone.now()).order_by("id")
    return list(rows.only("id", "name", "title", "home", "version")[:count])


def rps_newest(count: int) -> list[RendezvousPoint]:
    """Return up to `count` RPs, the newest first."""
    return list(RendezvousPoint.objects.order_by("-created_at", "-id")[:count])


def rp_leases(rps: Collection[str]) -> list[tuple[str, datetime]]:
    """Return the end of each RP's lease."""
    return list(RendezvousPoint.objects.filter(id__in=rps).values_list("id", "expires_at"))


def rendezvous_points_page(
    *,
    principal: Principal,
    cursor: str | None = None,
    limit: int = LIMIT_DEFAULT,
    prefix: str | None = None,
    now: datetime | None = None,
) -> Page[Listed]:
    """Read a page of the RPs that `principal` may describe: newest first, or with `prefix` those in that subtree by
    name.

    `limit` bounds the RPs examined, so that a page costs the same however few of them the principal may describe.
    Raises InvalidCursor and InvalidRequest (a malformed prefix).
    """
    now = now or timezone.now()
    rows = RendezvousPoint.objects.filter(expires_at__gt=now)
    rows = _newest_first(rows, cursor) if prefix is None else _by_name(rows, prefix, cursor)
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    seen = [row for row in found if descriptor_of(row).allows(principal, "describe")]
    logs = control.log_states([row.id for row in seen])
    following = None
    if more:
        last = found[-1]
        following = _creation_cursor(last) if prefix is None else cursor_of("name", str(last.name))
    return Page([Listed(row, log) for row, log in zip(seen, logs, strict=True)], following)


def replicas_page(
    *, principal: Principal, cursor: str | None = None, limit: int = LIMIT_DEFAULT, now: datetime | None = None
) -> Page[Listed]:
    """Read a page of this domain's replicas that `principal` may describe, by id, as `rendezvous_points_page`. Raises
    InvalidCursor."""
    rows = RendezvousPoint.objects.filter(expires_at__gt=now or timezone.now()).exclude(home="").order_by("id")
    if cursor is not None:
        rows = rows.filter(id__gt=key_of("replica", cursor))
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    seen = [row for row in found if descriptor_of(row).allows(principal, "describe")]
    logs = control.log_states([row.id for row in seen])
    listed = [Listed(row, log) for row, log in zip(seen, logs, strict=True)]
    return Page(listed, cursor_of("replica", found[-1].id) if more else None)


def histories_bytes(rps: Collection[str]) -> dict[str, int]:
    """Return the bytes that the history of each of these RPs may hold here."""
    return dict(RendezvousPoint.objects.filter(id__in=rps).values_list("id", "max_bytes"))


def reserved_bytes() -> int:
    """Sum the history reserved by all RPs, including those whose lease has ended, until they are reaped."""
    return RendezvousPoint.objects.aggregate(total=Sum("max_bytes"))["total"] or 0


def _newest_first(rows: QuerySet[RendezvousPoint], cursor: str | None) -> QuerySet[RendezvousPoint]:
    if cursor is not None:
        micros, _, rp = key_of("created", cursor).partition(" ")
        if not (micros.isascii() and micros.isdigit() and len(micros) <= 17):
            raise InvalidCursor("Use the `next` of the previous page.")
        created_at = _EPOCH + timedelta(microseconds=int(micros))
        rows = rows.filter(Q(created_at__lt=created_at) | Q(created_at=created_at, id__lt=rp))
    return rows.order_by("-created_at", "-id")


def _creation_cursor(row: RendezvousPoint) -> str:
    return cursor_of("created", f"{(row.created_at - _EPOCH) // timedelta(microseconds=1)} {row.id}")


def subtree(rows: QuerySet[RendezvousPoint], prefix: str) -> QuerySet[RendezvousPoint]:
    """Filter `rows` by names at or below `prefix`; all of this domain's names for "", "/" and the domain itself.

    Raises InvalidRequest for a malformed prefix.
    """
    path = (
        f"/{config().domain}/"
        if prefix in ("", "/", f"/{config().domain}/")
        else names.normalise(prefix, config().domain)
    )
    if connection.vendor == "sqlite":
        # SQLite's LIKE ignores case and uses no index; byte order does neither. "0" follows "/".
        return rows.filter(name__gte=path, name__lt=path[:-1] + "0")
    return rows.filter(name__startswith=path)


def _by_name(rows: QuerySet[RendezvousPoint], prefix: str, cursor: str | None) -> QuerySet[RendezvousPoint]:
    rows = subtree(rows, prefix)
    if cursor is not None:
        rows = rows.filter(name__gt=key_of("name", cursor))
    return rows.order_by("name")
