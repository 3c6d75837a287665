"""Pausing of a rendezvous point: this domain refuses publishes there until it is resumed.

A pause is local to this domain. At a replica it stops publishes here; the home and the other replicas continue, and
their events still arrive. Readers, subscriptions and their leases are unaffected, and administrative events are still
written. Gateways are notified as of any changed descriptor, so the hot path needs no further check.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone

from eventing.core.errors import InvalidRequest
from eventing.core.principals import Principal
from eventing.core.timestamps import timestamp
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.rps.models import REASON_CHARS_MAX, RendezvousPoint
from eventing.rps.selectors.event_data import rp_data
from eventing.rps.services.permission import rp_administered

COLUMNS = ["paused_at", "paused_by", "paused_reason"]


def rendezvous_point_pause(
    *, reference: str, principal: Principal, reason: str = "", now: datetime | None = None
) -> RendezvousPoint:
    """Refuse publishes in this domain from now on; `reason` is the explanation to publishers (may be empty).

    Pausing a paused RP changes only the reason. Returns the RP. Raises NotFound, Gone, Forbidden, InvalidRequest.
    """
    now = now or timezone.now()
    if len(reason) > REASON_CHARS_MAX:
        raise InvalidRequest(f"A reason has at most {REASON_CHARS_MAX} characters.")
    with change(now) as outbox:
        row = rp_administered(reference, principal, now)
        if row.paused_at is None or row.paused_reason != reason:
            row.paused_at, row.paused_by, row.paused_reason = row.paused_at or now, principal.identity, reason
            row.save(update_fields=COLUMNS)
            outbox.announce(row.id)
            outbox.event(events.RP_PAUSED, row.id, _data(row, principal), domain_too=True)
            outbox.act("rp.pause", principal, "rp", row.id, reason=reason)
    return row


def rendezvous_point_resume(*, reference: str, principal: Principal, now: datetime | None = None) -> RendezvousPoint:
    """Accept publishes again. Resuming an RP that is not paused changes nothing. Returns the RP. Raises NotFound, Gone,
    Forbidden."""
    now = now or timezone.now()
    with change(now) as outbox:
        row = rp_administered(reference, principal, now)
        if row.paused_at is not None:
            since = timestamp(row.paused_at)
            row.paused_at, row.paused_by, row.paused_reason = None, "", ""
            row.save(update_fields=COLUMNS)
            outbox.announce(row.id)
            outbox.event(events.RP_RESUMED, row.id, _data(row, principal), domain_too=True)
            outbox.act("rp.resume", principal, "rp", row.id, paused_since=since)
    return row


def _data(row: RendezvousPoint, principal: Principal) -> dict[str, Any]:
    return {"rp": rp_data(row), "by": principal.identity}
