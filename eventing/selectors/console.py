"""Reads that only the console needs: search by the beginning of a name, and the extents of many logs at once."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import connection
from django.utils import timezone

from eventing.conf import config
from eventing.core.names import NAME_CHARS_MAX
from eventing.core.principals import Principal
from eventing.log import control
from eventing.models import RendezvousPoint
from eventing.selectors.descriptors import descriptor_of
from eventing.selectors.pages import Page, cursor_of, key_of
from eventing.selectors.rendezvous_points import Listed

EXTENTS_MAX = 100
_AFTER_ALL_CHARACTERS = "\x7f"  # names are ASCII


def rendezvous_points_named(
    *, principal: Principal, text: str, limit: int, cursor: str | None = None, now: datetime | None = None
) -> Page[Listed]:
    """The RPs that `principal` may describe and whose name begins with `text`, by name.

    Unlike a prefix of the API, `text` may end within a part of the name; without leading slash it is put under this
    domain. `limit` bounds the RPs looked at. Raises InvalidCursor.
    """
    start = (text if text.startswith("/") else f"/{config().domain}/{text}")[: NAME_CHARS_MAX + 1]
    rows = RendezvousPoint.objects.filter(expires_at__gt=now or timezone.now()).order_by("name")
    if connection.vendor == "sqlite":
        # SQLite's LIKE ignores case and uses no index; byte order does neither.
        rows = rows.filter(name__gte=start, name__lt=start + _AFTER_ALL_CHARACTERS)
    else:
        rows = rows.filter(name__startswith=start)
    if cursor is not None:
        rows = rows.filter(name__gt=key_of("name", cursor))
    found = list(rows[: limit + 1])
    following = cursor_of("name", str(found[limit - 1].name)) if len(found) > limit else None
    return Page(_with_logs(found[:limit], principal), following)


def rendezvous_points_listed(
    *, principal: Principal, ids: Collection[str], now: datetime | None = None
) -> list[Listed]:
    """Those of `ids` (at most EXTENTS_MAX are looked at) that exist and that `principal` may describe."""
    wanted = list(ids)[:EXTENTS_MAX]
    rows = RendezvousPoint.objects.filter(id__in=wanted, expires_at__gt=now or timezone.now())
    return _with_logs(list(rows), principal)


def _with_logs(rows: list[RendezvousPoint], principal: Principal) -> list[Listed]:
    seen = [row for row in rows if descriptor_of(row).allows(principal, "describe")]
    logs = control.log_states([row.id for row in seen])
    return [Listed(row, log) for row, log in zip(seen, logs, strict=True)]
