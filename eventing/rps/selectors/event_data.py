"""Rendezvous points as administrative events and answers show them."""

from __future__ import annotations

from typing import Any

from eventing.conf import config
from eventing.core.timestamps import timestamp
from eventing.outbox.administrative_events import history_data, lease_data
from eventing.rps.models import RendezvousPoint


def rp_data(row: RendezvousPoint) -> dict[str, Any]:
    """An RP as its events show it. Not its policy: that may be longer than an event should be, and is not everybody's."""
    return {
        "id": row.id,
        "name": row.name,
        "title": row.title,
        "creator": row.creator,
        "home": row.home or config().domain,
        "version": row.version,
        "ack": row.ack,
        "history": history_data(row),
        "lease": lease_data(row),
        "created_at": timestamp(row.created_at),
        "paused": paused_data(row),
    }


def paused_data(row: RendezvousPoint) -> dict[str, Any] | None:
    """Since when, by whom and why publishing is paused, as events and answers show it; None while it is not."""
    if row.paused_at is None:
        return None
    return {"at": timestamp(row.paused_at), "by": row.paused_by, "reason": row.paused_reason}
