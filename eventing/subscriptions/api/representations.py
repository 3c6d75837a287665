"""How durable subscriptions look in answers."""

from __future__ import annotations

from typing import Any

from eventing.core.timestamps import timestamp
from eventing.outbox.administrative_events import history_data, lease_data
from eventing.rest.paths import BASE
from eventing.rps.api.representations import rp_path
from eventing.subscriptions.ports import lease_notice
from eventing.subscriptions.selectors.shared_subscriptions import shared_shown
from eventing.subscriptions.selectors.subscription_lists import Behind


def subscription(found: Behind, *, whole: bool = True) -> dict[str, Any]:
    """A durable subscription, with what it has acknowledged and how far that is behind; `whole` adds what is deleted when."""
    row = found.row
    path = subscription_path(row.id)
    return {
        "id": row.id,
        "rp": row.at,
        "owner": row.owner,
        "version": row.version,
        "history": history_data(row),
        "deliver": row.deliver,
        "lease": lease_data(row),
        "cursor": str(found.cursor),
        "lag": found.lag.events,
        "lost": found.lag.lost,
        "shared": shared_shown(row),
        "created_at": timestamp(row.created_at),
        "links": {"events": f"{path}/events", "ack": f"{path}/ack", "renew": f"{path}/renew", "rp": rp_path(row.at)},
        **({"notice": lease_notice(row)} if whole else {}),
    }


def subscription_path(subscription_id: str) -> str:
    """Where a subscription is managed."""
    return f"{BASE}/subscriptions/{subscription_id}"
