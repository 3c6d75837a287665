"""Durable subscriptions that only this domain holds, given a second holder before this domain stops.

The life of it: the owner's pull subscription -> a peer that takes part in the RP and trusts this domain with `host` is chosen -> the
subscription is a shared one from then on, from its acknowledged cursor, with this domain as its keeper -> the other holder delivers
while this one drains or is down (subscriptions/sharing). The owner reads there with the token of this domain. Subscriptions with
endpoints stay: their secrets are disclosed to no other domain but by their owners.
"""

from __future__ import annotations

from datetime import datetime

from eventing.core.errors import Conflict
from eventing.core.events.cursors import Cursor
from eventing.log import control
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.selectors.event_data import subscription_data
from eventing.subscriptions.selectors.subscriptions import subscription_get
from eventing.subscriptions.services.shared_subscriptions import shared_prepare

HOLDERS = 2


def subscription_share(subscription_id: str, *, now: datetime) -> Subscription:
    """Have another domain hold a pull subscription as well. Returns it.

    Raises Conflict (no peer that can hold it, an endpoint), InvalidCursor (its cursor is of an earlier log), NotFound, Gone,
    redis.RedisError (nothing is changed then).
    """
    with change(now) as outbox:
        row = subscription_get(subscription_id, now=now, lock=True)
        if row.keeper:
            return row
        if row.deliver["mode"] != "pull":
            raise Conflict("Only its owner can state the endpoint of a subscription at another domain.")
        cursor = control.subscription_cursor(row.at, row.id) or Cursor.parse(row.start)
        prepared = shared_prepare(row, HOLDERS, cursor, cursor, now)
        if prepared is not None:
            row.version += 1
            row.save()
            prepared.begin()
        outbox.act("subscription.share", None, "subscription", row.id, who="domain", rp=row.at)
        outbox.event(
            events.SUBSCRIPTION_CHANGED, row.lease_at, {"subscription": subscription_data(row)}, domain_too=True
        )
    return row
