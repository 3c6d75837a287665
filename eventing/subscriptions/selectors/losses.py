"""Durable subscriptions whose lag is read, and the lag of those that are about to end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eventing.core.events.lag import Lag
from eventing.log.lags import COLUMNS, LagQuery, asked_of, lags
from eventing.sql.remembered import remembered
from eventing.store.errors import RedisError
from eventing.store.inspection import require_answer
from eventing.subscriptions.models import Subscription

# bound: durable subscriptions of an expired RP checked for loss; the alarm does not cover the others
CHECKED_MAX = 1000
"""Durable subscriptions of an ending RP whose loss is checked; more would delay the end."""


def losses_of(ids: Iterable[str]) -> dict[str, Lag]:
    """Return the lag of these subscriptions, by id; empty while the data plane does not answer.

    Called before the transaction that ends them.
    """
    asked = asked_of(Subscription.objects.filter(id__in=list(ids)).order_by("at", "id").values(*COLUMNS))
    return _lags(asked)


def losses_at(rp: str) -> dict[str, Lag]:
    """Return the lag of the subscriptions that end with an RP, at most CHECKED_MAX."""
    return _lags(asked_of(Subscription.objects.filter(rp=rp).order_by("at", "id").values(*COLUMNS)[:CHECKED_MAX]))


def _lags(asked: list[Any]) -> dict[str, Lag]:
    if not asked:
        return {}
    try:
        require_answer()
        return {one.id: found.lag for one, found in zip(asked, lags(asked), strict=True)}
    except RedisError:
        return {}


def asked_by_id(ids: Sequence[str]) -> list[LagQuery]:
    """Return these subscriptions."""
    return asked_of(Subscription.objects.filter(id__in=ids).values(*COLUMNS))


@remembered
def asked_after(rp: str, subscription: str, count: int) -> list[LagQuery]:
    """Return up to `count` subscriptions in the order of RP and id, those after this one."""
    rows = Subscription.objects.order_by("at", "id").filter(at__gte=rp).exclude(at=rp, id__lte=subscription)
    return asked_of(rows.values(*COLUMNS)[:count])


def asked_at(rps: Sequence[str], count: int) -> list[LagQuery]:
    """Return up to `count` subscriptions of these RPs, in the order of RP and id."""
    return asked_of(Subscription.objects.filter(at__in=rps).order_by("at", "id").values(*COLUMNS)[:count])
