"""Ports of durable subscriptions to other subjects (core/ports.py)."""

from __future__ import annotations

from datetime import datetime

from eventing.core.events.lag import Lag
from eventing.core.ports import Hook, Port
from eventing.core.principals import Principal
from eventing.outbox.services import Outbox
from eventing.subscriptions.models import Subscription


@Port
def takes_part(rp: str, domain: str, now: datetime, /) -> bool:
    """Return whether the domain takes part in the RP now: it is the home, or admitted by the home."""
    raise NotImplementedError


@Port
def admitted_url(rp: str, domain: str) -> str:
    """Return the address of a domain in its admission to the RP; empty if there is none."""
    raise NotImplementedError


@Hook
def subscription_ending(
    row: Subscription, outbox: Outbox, reason: str, *, lag: Lag | None = None, by: Principal | None = None
) -> None:
    """Settle what ends with a subscription, within the caller's transaction, before its row is deleted.

    Args:
        reason: why it ends: `deleted`, `lease-expired`.
        lag: its lag; None if not known.
        by: the principal that deletes it; None for none here.
    """


@Port
def lease_notice(row: Subscription) -> str:
    """Return a sentence for people: what ends with the lease of a durable subscription."""
    raise NotImplementedError
