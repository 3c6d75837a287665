"""What durable subscriptions ask of other subjects, and tell them (core/ports.py)."""

from __future__ import annotations

from datetime import datetime

from eventing.core.events.lag import Lag
from eventing.core.ports import Hook, Port
from eventing.core.principals import Principal
from eventing.outbox.services import Outbox
from eventing.subscriptions.models import Subscription


@Port
def takes_part(rp: str, domain: str, now: datetime, /) -> bool:
    """Whether the domain takes part in the RP now: it is the home, or admitted by the home."""
    raise NotImplementedError


@Port
def admitted_url(rp: str, domain: str) -> str:
    """The address of a domain as its admission to the RP says; empty if there is none."""
    raise NotImplementedError


@Hook
def subscription_ending(
    row: Subscription, outbox: Outbox, reason: str, *, lag: Lag | None = None, by: Principal | None = None
) -> None:
    """Settle what ends with a subscription, within the caller's transaction, before its row goes.

    Args:
        reason: why it ends: `deleted`, `lease-expired`.
        lag: how far it is behind; None if nobody could say.
        by: who deletes it; None for nobody here.
    """


@Port
def lease_notice(row: Subscription) -> str:
    """What ends with the lease of a durable subscription, in a sentence for people."""
    raise NotImplementedError
