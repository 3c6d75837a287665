"""Sentences for people: what is deleted when a lease expires, and how to prevent that."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from eventing.core.events.positions import LogState
from eventing.rps.models import RendezvousPoint
from eventing.sql.leases import renewed_from
from eventing.subscriptions.models import Subscription


def rp_notice(row: RendezvousPoint, log: LogState | None) -> str | None:
    """Return what ends with the lease of an RP; None for a replica, whose domain renews it."""
    if row.home:
        return None
    held = 0 if log is None else log.next - log.first
    parts = [_plural(held, "event")]
    if subscriptions := row.subscriptions.count():
        parts.append(_plural(subscriptions, "subscription"))
    return f"Deleted with its {' and '.join(parts)} on {_moment(row.expires_at)} {_unless(row)}."


def subscription_notice(row: Subscription) -> str:
    """Return what ends with the lease of a durable subscription, and with that of its RP if it expires earlier."""
    own = f"Deleted with its place on {_moment(row.expires_at)} {_unless(row)}"
    rp = row.rp
    if rp is None or rp.home or rp.expires_at >= row.expires_at:
        return f"{own}."
    return f"{own}; its rendezvous point is deleted on {_moment(rp.expires_at)}, and the subscription with it, {_unless(rp)}."


def _unless(row: RendezvousPoint | Subscription) -> str:
    return "unless renewed" if renewed_from(row) == math.inf else "unless used or renewed"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
