"""Endpoints of a domain that closes: their subscribers are notified as their protocol provides.

WS-Eventing has SubscriptionEnd with the status SourceShuttingDown, WebSub the denial: both end the subscription. Other endpoints are
paused, and the owner is warned where a `warn_url` is stated: it may state the endpoint elsewhere, and nothing is lost if the domain stays.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import Q, QuerySet

from eventing.outbox.services import change
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import DOMAIN_CLOSES, EndpointState, paused
from eventing.subscriptions.push.selectors import standing_of
from eventing.subscriptions.push.services.endings import ANNOUNCED
from eventing.subscriptions.push.services.notices import deliverer_notify
from eventing.subscriptions.push.services.standings import changed_event, standing_set
from eventing.subscriptions.services.subscriptions import remove

BATCH = 200  # bound: endpoints that are closed in one transaction; the others follow with the next


def endpoints_open(now: datetime) -> QuerySet[PushEndpoint]:
    """Return the endpoints whose subscribers are still to be notified: only this domain delivers to them."""
    ours = PushEndpoint.objects.filter(subscription__keeper="", subscription__expires_at__gt=now)
    quiet = Q(state__in=(EndpointState.PAUSED, EndpointState.GONE))
    return ours.exclude(~Q(subscription__deliver__mode__in=ANNOUNCED) & quiet)


def endpoints_close(*, now: datetime) -> int:
    """End or pause up to BATCH of them, with their subscribers notified. Returns how many."""
    with change(now) as outbox:
        rows = list(
            endpoints_open(now).select_for_update(of=("self",)).select_related("subscription").order_by("pk")[:BATCH]
        )
        for endpoint in rows:
            subscription: Subscription = endpoint.subscription
            if subscription.deliver.get("mode") in ANNOUNCED:
                remove(subscription, outbox, DOMAIN_CLOSES)
                continue
            standing_set(endpoint, paused(standing_of(endpoint), DOMAIN_CLOSES), now)
            endpoint.generation += 1
            if subscription.deliver.get("warn_url"):
                endpoint.warn_at = now
            endpoint.save()
            changed_event(outbox, endpoint, subscription)
            transaction.on_commit(partial(deliverer_notify, endpoint.pk), robust=True)
    return len(rows)
