"""Reads of durable subscriptions."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from eventing.core.errors import Gone, NotFound
from eventing.core.events.cursors import Cursor
from eventing.core.events.history import HistoryBounds
from eventing.sql.leases import renewed_from
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of
from eventing.subscriptions.models import Subscription

SUBSCRIPTION_PATTERN = re.compile(r"sub_[a-z2-7]{26}")


@dataclass(frozen=True, slots=True)
class SubscriptionState:
    """A durable subscription as the hot path needs it.

    Attributes:
        rp: id of the RP read (possibly an administrative RP).
        owner: subject that may read and acknowledge.
        history: bounds of its lag, within the RP's own bounds.
        start: the cursor at which it began, valid while the data plane has none.
        expires_at: Unix time in seconds.
        keeper: the domain where a shared subscription was created; empty for one that only this domain holds.
        renewed_from: Unix seconds from which on use renews the lease; infinity for never.
    """

    id: str
    rp: str
    owner: str
    history: HistoryBounds
    start: Cursor
    expires_at: float
    keeper: str = ""
    renewed_from: float = math.inf


def subscription_view(subscription_id: str, *, now: datetime | None = None) -> SubscriptionState:
    """Return the subscription for the hot path. Raises NotFound, and Gone if its lease has expired."""
    row = subscription_get(subscription_id, now=now)
    start, until = Cursor.parse(row.start), row.expires_at.timestamp()
    return SubscriptionState(row.id, row.at, row.owner, row.bounds, start, until, row.keeper, renewed_from(row))


def subscription_get(subscription_id: str, *, now: datetime | None = None, lock: bool = False) -> Subscription:
    """Return the row; `lock` locks it until the transaction ends. Raises NotFound and Gone."""
    row = None
    if SUBSCRIPTION_PATTERN.fullmatch(subscription_id):
        rows = Subscription.objects.select_for_update() if lock else Subscription.objects.all()
        row = rows.filter(id=subscription_id).first()
    if row is None:
        raise NotFound("There is no such subscription.")
    if row.expires_at <= (now or timezone.now()):
        raise Gone("The subscription has ended: its lease expired.")
    return row


def subscriptions_of_rp(rp: str, count: int) -> list[Subscription]:
    """Return up to `count` subscriptions at the RP, by id."""
    return list(Subscription.objects.filter(at=rp).order_by("id")[:count])


def subscriptions_ending(rps: Collection[str], before: datetime, each_max: int) -> list[tuple[str, str, datetime]]:
    """Return RP, id and end of the subscriptions at these RPs that end before a time: of each RP the first `each_max`."""
    soonest = Window(RowNumber(), partition_by="at", order_by=["expires_at", "id"])  # however many another RP has
    ending = Subscription.objects.filter(at__in=rps, expires_at__lt=before).annotate(place=soonest)
    return list(ending.filter(place__lte=each_max).values_list("at", "id", "expires_at"))


def subscriptions_page(
    *,
    at: str,
    owner: str | None = None,
    cursor: str | None = None,
    limit: int = LIMIT_DEFAULT,
    now: datetime | None = None,
) -> Page[Subscription]:
    """Return a page of the subscriptions at the RP with id `at`, by id; with `owner` only that subject's. Raises
    InvalidCursor.
    """
    rows = Subscription.objects.filter(at=at, expires_at__gt=now or timezone.now()).order_by("id")
    if owner is not None:
        rows = rows.filter(owner=owner)
    if cursor is not None:
        rows = rows.filter(id__gt=key_of("subscription", cursor))
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    return Page(found, cursor_of("subscription", found[-1].id) if more else None)
