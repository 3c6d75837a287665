"""Reads of misbehaviour: pages, the latest first."""

from __future__ import annotations

import re
from collections.abc import Collection

from django.db.models import Q, Sum

from eventing.core.errors import InvalidCursor
from eventing.peering.models import Misbehaviour
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of

_ID = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


def misbehaviour_latest(count: int) -> list[Misbehaviour]:
    """Return up to `count` kinds of misbehaviour, those counted last first."""
    return list(Misbehaviour.objects.order_by("-last_at", "-id")[:count])


def misbehaviour_counts(carriers: Collection[str]) -> dict[str, int]:
    """Return how many faults are counted for each of these carriers, without those with none."""
    rows = Misbehaviour.objects.filter(carrier__in=carriers).values("carrier").annotate(total=Sum("count"))
    return {row["carrier"]: int(row["total"]) for row in rows}


def misbehaviour_page(
    *,
    kind: str | None = None,
    domain: str | None = None,
    cursor: str | None = None,
    limit: int = LIMIT_DEFAULT,
) -> Page[Misbehaviour]:
    """Return a page of counts, newest row first; with `domain` those that the domain carried or is the origin of.

    Raises InvalidCursor.
    """
    rows = Misbehaviour.objects.order_by("-id")
    if kind is not None:
        rows = rows.filter(kind=kind)
    if domain is not None:
        rows = rows.filter(Q(carrier=domain) | Q(origin=domain))
    if cursor is not None:
        key = key_of("misbehaviour", cursor)
        if not _ID.fullmatch(key):
            raise InvalidCursor("Use `next` of the previous page, with the same filters.")
        rows = rows.filter(id__lt=int(key))
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    return Page(found, cursor_of("misbehaviour", str(found[-1].pk)) if more else None)
