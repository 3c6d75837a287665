"""Writes that sinks of WS-Eventing ask for: a durable subscription with the mode `ws-eventing`, its renewal and its end.

The subscription manager of each subscription has an address of its own, with a key that is derived from the subscription's
id. Who subscribed with a token shows it again; for who subscribed without one the address is the credential, and the owner is
`#ADDRESS`, which is no token's identity: quotas count those of one address together.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import replace
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from eventing.conf import config
from eventing.core.client_address import address_key
from eventing.core.errors import Gone, InvalidRequest, NotFound, Unauthenticated
from eventing.core.principals import ANONYMOUS, Principal
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import BY_OWNER, EndpointState
from eventing.subscriptions.push.services.endpoints import endpoint_resume
from eventing.subscriptions.push.ws_eventing.dialects import MessageForm
from eventing.subscriptions.push.ws_eventing.durations import duration_text
from eventing.subscriptions.push.ws_eventing.faults import (
    EXPIRATION_VALUE,
    UNABLE_TO_RENEW,
    UNKNOWN_SUBSCRIPTION,
    UNUSABLE_ADDRESS,
    FaultKind,
    FaultRaised,
)
from eventing.subscriptions.push.ws_eventing.leases import lease_request
from eventing.subscriptions.push.ws_eventing.requests import Renew, Subscribe
from eventing.subscriptions.push.ws_eventing.sinks import MODE, sink_of, sink_text
from eventing.subscriptions.selectors.subscriptions import subscription_get
from eventing.subscriptions.services.permission import require_managed
from eventing.subscriptions.services.subscriptions import subscription_create, subscription_delete, subscription_renew

_STRANGER = "#"
_MAPPED = "::ffff:"
"""The begin of an IPv4 address as an IPv6 socket states it."""
_KEY_BYTES = 15  # 24 characters of base32
_PURPOSE = b"herald ws-eventing manager "


def stranger(address: str) -> Principal:
    """Return the principal of requests without a token from an address: its identity is that of no token."""
    return replace(ANONYMOUS, subject=address_key(address))


def manager_address(subscription_id: str) -> str:
    """Return the address of a subscription's manager."""
    return f"{config().base_url}/api/v1/subscriptions/{subscription_id}/ws-eventing/{manager_key(subscription_id)}"


def manager_key(subscription_id: str) -> str:
    """Return the key in the address of a subscription's manager."""
    made = hmac.digest(str(settings.SECRET_KEY).encode(), _PURPOSE + subscription_id.encode(), "sha256")
    return base64.b32encode(made[:_KEY_BYTES]).decode().lower()


def sink_subscribe(
    *,
    reference: str,
    principal: Principal,
    form: MessageForm,
    wish: Subscribe,
    requester: str,
    now: datetime | None = None,
) -> tuple[str, str]:
    """Create the subscription of a Subscribe, from now on.

    Args:
        requester: address from which it was sent.

    Returns the id and the granted lease as it is stated. Raises FaultRaised, and what `subscription_create` does.
    """
    now = now or timezone.now()
    lease = lease_request(form.eventing, wish.expires, now=now, longest_s=config().lease_s_max)
    try:
        row = subscription_create(
            reference=reference,
            principal=principal,
            lease_s=lease.lease_s,
            deliver={"mode": MODE, "sink": sink_text(sink_of(form, wish, requester.removeprefix(_MAPPED)))},
            now=now,
        )
    except InvalidRequest as error:
        raise FaultRaised(UNUSABLE_ADDRESS, error.detail.replace("deliver.url", "NotifyTo")) from None
    return row.id, lease.stated(row.granted_s, now)


def sink_renew(
    *,
    subscription_id: str,
    key: str,
    principal: Principal,
    form: MessageForm,
    wish: Renew,
    now: datetime | None = None,
) -> str:
    """Renew the lease from now, and continue with an endpoint that was paused because it failed.

    Returns the granted lease as it is stated. Raises FaultRaised, Forbidden, Unauthenticated.
    """
    now = now or timezone.now()
    unknown = UNABLE_TO_RENEW if form.eventing.year == 2004 else UNKNOWN_SUBSCRIPTION
    row, owner = _managed(subscription_id, key, principal, now, unknown)
    lease = lease_request(form.eventing, wish.expires, now=now, longest_s=config().lease_s_max)
    shorter = lease.lease_s is not None and lease.lease_s < (row.expires_at - now).total_seconds()
    if shorter and form.eventing.exact and not (wish.expires and wish.expires.best_effort):
        raise FaultRaised(EXPIRATION_VALUE, "A renewal does not shorten the lease; send BestEffort to keep it.")
    granted = subscription_renew(subscription_id=row.id, principal=owner, lease_s=lease.lease_s, now=now)
    endpoint = PushEndpoint.objects.filter(pk=row.id).first()
    if endpoint is not None and endpoint.state == EndpointState.PAUSED and endpoint.reason != BY_OWNER:
        endpoint_resume(subscription_id=row.id, principal=owner, now=now)
    return lease.stated(granted.granted_s, now)


def sink_status(*, subscription_id: str, key: str, principal: Principal, now: datetime | None = None) -> str:
    """Return the remaining lease as a duration. Raises FaultRaised, Forbidden, Unauthenticated."""
    now = now or timezone.now()
    row, _ = _managed(subscription_id, key, principal, now)
    return duration_text((row.expires_at - now).total_seconds())


def sink_unsubscribe(*, subscription_id: str, key: str, principal: Principal, now: datetime | None = None) -> None:
    """End the subscription. Raises FaultRaised, Forbidden, Unauthenticated."""
    row, owner = _managed(subscription_id, key, principal, now or timezone.now())
    subscription_delete(subscription_id=row.id, principal=owner, now=now)


def _managed(
    subscription_id: str, key: str, principal: Principal, now: datetime, kind: FaultKind = UNKNOWN_SUBSCRIPTION
) -> tuple[Subscription, Principal]:
    """Return the subscription, and the principal that manages it: of one without a token, its owner.

    Args:
        kind: the fault of a subscription that is not known.
    """
    if not hmac.compare_digest(key.encode(), manager_key(subscription_id).encode()):
        raise FaultRaised(kind, "There is no such subscription.")
    try:
        row = subscription_get(subscription_id, now=now)
        descriptor = descriptor_get(row.at, now=now)
    except (NotFound, Gone):
        raise FaultRaised(kind, "There is no such subscription; it may have ended.") from None
    if row.deliver.get("mode") != MODE:
        raise FaultRaised(kind, "There is no such subscription.")
    if row.owner.startswith(_STRANGER):
        return row, replace(ANONYMOUS, subject=row.owner.removeprefix(_STRANGER))
    if principal.anonymous:
        raise Unauthenticated("The subscription was made with a token; send one of its owner.")
    require_managed(row, descriptor, principal)
    return row, principal
