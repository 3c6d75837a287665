"""Durable subscriptions as administrative events show them."""

from __future__ import annotations

from eventing.rest.shapes import HistoryAnswer, LeaseAnswer
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.shapes import SubscriptionData


def subscription_data(row: Subscription) -> SubscriptionData:
    """Return a subscription as its events show it."""
    return SubscriptionData.of(row, history=HistoryAnswer.of(row), lease=LeaseAnswer.of(row))
