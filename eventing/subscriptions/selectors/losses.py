"""How far durable subscriptions are behind that are about to end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redis.exceptions import RedisError

from eventing.core.events.lag import Lag
from eventing.log import control
from eventing.log.lags import COLUMNS, asked_of, lags
from eventing.subscriptions.models import Subscription

LOOKED_MAX = 1000
"""Durable subscriptions of an RP that ends whose loss is looked at; an end must not wait for more."""


def losses_of(ids: Iterable[str]) -> dict[str, Lag]:
    """How far these subscriptions are behind, by id; none of them while the data plane does not answer.

    For a caller that is about to end them: to be asked before its transaction begins.
    """
    asked = asked_of(Subscription.objects.filter(id__in=list(ids)).order_by("at", "id").values(*COLUMNS))
    return _lags(asked)


def losses_at(rp: str) -> dict[str, Lag]:
    """The same of the subscriptions that end with an RP, at most LOOKED_MAX."""
    return _lags(asked_of(Subscription.objects.filter(rp=rp).order_by("at", "id").values(*COLUMNS)[:LOOKED_MAX]))


def _lags(asked: list[Any]) -> dict[str, Lag]:
    if not asked:
        return {}
    try:
        control.require_answer()
        return {one.id: found.lag for one, found in zip(asked, lags(asked), strict=True)}
    except RedisError:
        return {}
