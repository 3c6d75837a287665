"""Reads of misbehaviour: pages, the latest first."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q, Sum

from eventing.peering.models import Misbehaviour
from eventing.sql.pages import LIMIT_DEFAULT, Page, page_newest


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
    return page_newest(rows, "misbehaviour", cursor=cursor, limit=limit)
