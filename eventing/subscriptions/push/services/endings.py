"""Messages to subscribers whose subscription ends before its lease, where the mode has such a message: SubscriptionEnd of
WS-Eventing, the denial of WebSub.

Nothing is sent at the natural end of a lease, after the owner's own request, and to an endpoint that never consented.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import QuerySet

from eventing.core.principals import Principal
from eventing.outbox.services import Outbox
from eventing.rps.models import RendezvousPoint
from eventing.store.errors import RedisError
from eventing.store.push_endings import ENDINGS_MAX, PushEnding, endings_add
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import DOMAIN_CLOSES
from eventing.subscriptions.push.services.notices import deliverer_notify
from eventing.subscriptions.push.services.websub import WEBSUB
from eventing.subscriptions.push.ws_eventing.notifications import CANCELLING, DELIVERY_FAILURE, SHUTTING_DOWN
from eventing.subscriptions.push.ws_eventing.sinks import MODE as WS_EVENTING

GONE_REASON = "endpoint-gone"
"""Reason of the end of a subscription whose endpoint answered 410."""
CLOSES = "The domain closes. Subscribe at another one."
ANNOUNCED = (WS_EVENTING, WEBSUB)
"""Modes whose subscribers are notified."""
logger = logging.getLogger(__name__)


def subscription_ended(row: Subscription, reason: str, by: Principal | None) -> None:
    """Queue the message of a subscription that ends, within the caller's transaction."""
    mode = row.deliver.get("mode")
    if mode not in ANNOUNCED:
        return
    by_other = reason == "deleted" and by is not None and by.identity != row.owner
    gone = reason == GONE_REASON and mode == WS_EVENTING  # EndTo may be another address than the one that is gone
    closes = reason == DOMAIN_CLOSES
    if not by_other and not gone and not closes:
        return
    status = DELIVERY_FAILURE if gone else SHUTTING_DOWN if closes else CANCELLING
    text = "The receiver answered 410." if gone else CLOSES if closes else "The subscription was deleted."
    _queue(PushEndpoint.objects.filter(pk=row.id), status, text)


def rp_ended(row: RendezvousPoint, outbox: Outbox, reason: str) -> None:
    """Queue the messages of the subscriptions that end with an RP (rps/ports.py: rp_ending)."""
    ending = PushEndpoint.objects.filter(subscription__rp=row.id, subscription__deliver__mode__in=ANNOUNCED)
    _queue(ending.order_by("pk"), CANCELLING, "The rendezvous point has ended.")


def _queue(ending: QuerySet[PushEndpoint], status: str, reason: str) -> None:
    found = ending.filter(verified=True).select_related("subscription")[:ENDINGS_MAX]
    endings = [
        PushEnding(
            one.pk, bytes(one.sealed), status, reason, one.subscription.deliver["mode"], one.subscription.rp_id or ""
        )
        for one in found
    ]
    if endings:
        transaction.on_commit(lambda: _add(endings), robust=True)


def _add(endings: list[PushEnding]) -> None:
    try:
        endings_add(endings)
    except RedisError as error:
        logger.warning("%d subscribers are not notified of the end of their subscription: %s", len(endings), error)
        return
    deliverer_notify(endings[0].subscription)
