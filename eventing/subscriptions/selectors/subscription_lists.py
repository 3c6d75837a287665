"""Lists of the whole domain's durable subscriptions for operators, with their lag.

Acknowledged cursors and ends of logs are in the data plane, so the order by lag covers at most LAGS_MAX subscriptions
at LOGS_MAX RPs. Beyond that the answer states that it is partial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import nsmallest

from django.db.models import Q, QuerySet
from django.utils import timezone

from eventing.core.errors import InvalidCursor, InvalidRequest
from eventing.core.events.cursors import Cursor
from eventing.core.events.lag import Lag
from eventing.log.lags import COLUMNS, LagQuery, LagResult, asked_of, lags
from eventing.sql.pages import LIMIT_DEFAULT, cursor_of, key_of
from eventing.subscriptions.models import Subscription

# The most subscriptions of one RP.
LAGS_MAX = 10_000  # bound: subscriptions that an order by lag covers; the answer states that it is partial
# Measured: 0.2 s.
LOGS_MAX = 2000  # bound: RPs of these subscriptions; the answer states that it is partial
SORTS = ("id", "ends", "lag")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRONG = "Use `next` of the previous page, with the same filters."


@dataclass(frozen=True, slots=True)
class SubscriptionLag:
    """A subscription, its acknowledged cursor, and its lag."""

    row: Subscription
    cursor: Cursor
    lag: Lag


@dataclass(frozen=True, slots=True)
class SubscriptionLagPage:
    """A page; `complete`: whether the order covers all subscriptions that match."""

    items: list[SubscriptionLag]
    next: str | None
    complete: bool


def subscriptions_listed(
    *,
    at: str | None = None,
    owner: str | None = None,
    sort: str = "id",
    cursor: str | None = None,
    limit: int = LIMIT_DEFAULT,
    now: datetime | None = None,
) -> SubscriptionLagPage:
    """Return a page of the domain's durable subscriptions.

    Args:
        at: only those at the RP with this id.
        owner: only this identity's.
        sort: of SORTS: by id, by end of lease (earliest first), or by lag (greatest first).

    Raises InvalidRequest, InvalidCursor, redis.RedisError.
    """
    if sort not in SORTS:
        raise InvalidRequest(f"sort must be one of {', '.join(SORTS)}.")
    rows = Subscription.objects.filter(expires_at__gt=now or timezone.now())
    if at is not None:
        rows = rows.filter(at=at)
    if owner is not None:
        rows = rows.filter(owner=owner)
    if sort == "lag":
        return listed_by_lag(rows, cursor, limit)
    found = list((_by_id if sort == "id" else _by_end)(rows, cursor)[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    key = (found[-1].id if sort == "id" else f"{_micros(found[-1].expires_at)} {found[-1].id}") if more else ""
    return SubscriptionLagPage(
        subscriptions_behind(found), cursor_of(f"subscriptions-{sort}", key) if more else None, True
    )


def subscriptions_behind(rows: Sequence[Subscription]) -> list[SubscriptionLag]:
    """Return these rows with cursor and lag, in order. Raises redis.RedisError."""
    return [_behind(row, one) for row, one in zip(rows, lags([_asked(row) for row in rows]), strict=True)]


def _asked(row: Subscription) -> LagQuery:
    return LagQuery(row.at, row.id, row.start, row.bounds, bool(row.keeper))


def _behind(row: Subscription, found: LagResult) -> SubscriptionLag:
    return SubscriptionLag(row, found.cursor, found.lag)


def listed_by_lag(rows: QuerySet[Subscription], cursor: str | None, limit: int) -> SubscriptionLagPage:
    """Return a page of these rows, the greatest lag first. Raises InvalidCursor, redis.RedisError."""
    looked, complete = _lag_queries(rows)
    behind = {one.id: found for one, found in zip(looked, lags(looked), strict=True)}
    keys = [(-found.lag.events, one) for one, found in behind.items()]
    if cursor is not None:
        lag, _, one = key_of("subscriptions-lag", cursor).partition(" ")
        if not (lag.isascii() and lag.isdigit() and len(lag) <= 16):
            raise InvalidCursor(_WRONG)
        keys = [key for key in keys if key > (-int(lag), one)]
    first = nsmallest(limit + 1, keys)
    more, first = len(first) > limit, first[:limit]
    found = Subscription.objects.in_bulk([one for _, one in first])
    items = [_behind(found[one], behind[one]) for _, one in first if one in found]
    following = f"{-first[-1][0]} {first[-1][1]}" if more else ""
    return SubscriptionLagPage(items, cursor_of("subscriptions-lag", following) if more else None, complete)


def _lag_queries(rows: QuerySet[Subscription]) -> tuple[list[LagQuery], bool]:
    """Return the subscriptions that the order by lag covers, and whether those are all."""
    logs: set[str] = set()
    found: list[LagQuery] = []
    for one in asked_of(rows.order_by("at", "id").values(*COLUMNS)[: LAGS_MAX + 1]):
        logs.add(one.rp)
        if len(logs) > LOGS_MAX or len(found) == LAGS_MAX:
            return found, False
        found.append(one)
    return found, True


def _by_id(rows: QuerySet[Subscription], cursor: str | None) -> QuerySet[Subscription]:
    if cursor is not None:
        rows = rows.filter(id__gt=key_of("subscriptions-id", cursor))
    return rows.order_by("id")


def _by_end(rows: QuerySet[Subscription], cursor: str | None) -> QuerySet[Subscription]:
    if cursor is not None:
        micros, _, one = key_of("subscriptions-ends", cursor).partition(" ")
        if not (micros.isascii() and micros.isdigit() and len(micros) <= 17):
            raise InvalidCursor(_WRONG)
        moment = _EPOCH + timedelta(microseconds=int(micros))
        rows = rows.filter(Q(expires_at__gt=moment) | Q(expires_at=moment, id__gt=one))
    return rows.order_by("expires_at", "id")


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
