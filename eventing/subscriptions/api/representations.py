"""Representations of durable subscriptions in answers."""

from __future__ import annotations

from msgspec import UNSET

from eventing.rest.paths import BASE
from eventing.rest.shapes import HistoryAnswer, LeaseAnswer
from eventing.rps.api.representations import rp_path
from eventing.subscriptions.ports import lease_notice
from eventing.subscriptions.selectors.shared_subscriptions import shared_shown
from eventing.subscriptions.selectors.subscription_lists import SubscriptionLag
from eventing.subscriptions.shapes import SubscriptionAnswer, SubscriptionLinks


def subscription(found: SubscriptionLag, *, whole: bool = True) -> SubscriptionAnswer:
    """Return a durable subscription with its acknowledged cursor and lag; `whole` adds the notice."""
    row = found.row
    path = subscription_path(row.id)
    return SubscriptionAnswer.of(
        row,
        rp=row.at,
        history=HistoryAnswer.of(row),
        lease=LeaseAnswer.of(row),
        cursor=str(found.cursor),
        lag=found.lag.events,
        lost=found.lag.lost,
        shared=shared_shown(row),
        links=SubscriptionLinks(events=f"{path}/events", ack=f"{path}/ack", renew=f"{path}/renew", rp=rp_path(row.at)),
        notice=lease_notice(row) if whole else UNSET,
    )


def subscription_path(subscription_id: str) -> str:
    """Return the path of the subscription's resource."""
    return f"{BASE}/subscriptions/{subscription_id}"
