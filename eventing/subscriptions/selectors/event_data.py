"""Durable subscriptions as administrative events and answers show them."""

from __future__ import annotations

from typing import Any

from eventing.outbox.administrative_events import history_data, lease_data
from eventing.subscriptions.models import Subscription


def subscription_data(row: Subscription) -> dict[str, Any]:
    """A subscription as its events show it."""
    return {
        "id": row.id,
        "at": row.at,
        "owner": row.owner,
        "version": row.version,
        "history": history_data(row),
        "deliver": row.deliver,
        "lease": lease_data(row),
    }
