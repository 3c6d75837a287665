"""Ports of durable subscriptions to other subjects (core/ports.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from eventing.core.events.lag import Lag
from eventing.core.ports import Hook, Port
from eventing.core.principals import Principal
from eventing.outbox.services import Outbox
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.rules.delivery_ability import EndpointAbility


@Port
def takes_part(rp: str, domain: str, now: datetime, /) -> bool:
    """Return whether the domain takes part in the RP now: it is the home, or admitted by the home."""
    raise NotImplementedError


@Port
def admitted_url(rp: str, domain: str) -> str:
    """Return the address of a domain in its admission to the RP; empty if there is none."""
    raise NotImplementedError


@Port
def endpoint_checked(deliver: Mapping[str, Any], before: Subscription | None, /) -> dict[str, Any]:
    """Validate a `deliver` whose mode is not `pull`, and return it as it is shown: without secrets.

    Args:
        before: the subscription that is changed; members that `deliver` lacks stay as they are. None for a new one.

    Raises InvalidRequest.
    """
    raise NotImplementedError


@Port
def endpoint_set(row: Subscription, deliver: Mapping[str, Any] | None, outbox: Outbox, /) -> None:
    """Write the endpoint of a subscription within the caller's transaction, after the subscription's row and its event.

    Args:
        deliver: as stated by the client; None: the subscription has no endpoint any more.

    Raises QuotaExceeded.
    """
    raise NotImplementedError


@Port
def endpoints_able(ids: Sequence[str], /) -> Mapping[str, EndpointAbility]:
    """Return, of these subscriptions, the endpoints that have consented and are active."""
    raise NotImplementedError


@Port
def draining() -> bool:
    """Return whether this domain hands over what it can, so that others deliver. Not connected: it does not."""
    return False


@Hook
def subscription_ending(
    row: Subscription, outbox: Outbox, reason: str, *, lag: Lag | None = None, by: Principal | None = None
) -> None:
    """Settle what ends with a subscription, within the caller's transaction, before its row is deleted.

    Args:
        reason: why it ends: `deleted`, `domain-closes`, `endpoint-gone`, `lease-expired`.
        lag: its lag; None if not known.
        by: the principal that deletes it; None for none here.
    """


@Port
def lease_notice(row: Subscription) -> str:
    """Return a sentence for people: what ends with the lease of a durable subscription."""
    raise NotImplementedError
