"""Messages to subscribers whose subscription ends before its lease, where the mode has such a message: SubscriptionEnd.

Nothing is sent at the natural end of a lease, after the owner's own request, and to an endpoint that never consented.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import transaction

from eventing.core.principals import Principal
from eventing.outbox.services import Outbox
from eventing.rps.models import RendezvousPoint
from eventing.store.errors import RedisError
from eventing.store.push_endings import ENDINGS_MAX, PushEnding, endings_add
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.services.notices import deliverer_notify
from eventing.subscriptions.push.ws_eventing.notifications import CANCELLING, DELIVERY_FAILURE
from eventing.subscriptions.push.ws_eventing.sinks import MODE as WS_EVENTING

GONE_REASON = "endpoint-gone"
"""Reason of the end of a subscription whose endpoint answered 410."""
logger = logging.getLogger(__name__)


def subscription_ended(row: Subscription, reason: str, by: Principal | None) -> None:
    """Queue the message of a subscription that ends, within the caller's transaction."""
    if row.deliver.get("mode") != WS_EVENTING:
        return
    by_other = reason == "deleted" and by is not None and by.identity != row.owner
    if not by_other and reason != GONE_REASON:
        return
    status = DELIVERY_FAILURE if reason == GONE_REASON else CANCELLING
    text = "The receiver answered 410." if reason == GONE_REASON else "The subscription was deleted."
    _queue(list(PushEndpoint.objects.filter(pk=row.id, verified=True)), status, text)


def rp_ended(row: RendezvousPoint, outbox: Outbox, reason: str) -> None:
    """Queue the messages of the subscriptions that end with an RP (rps/ports.py: rp_ending)."""
    ending = PushEndpoint.objects.filter(
        subscription__rp=row.id, subscription__deliver__mode=WS_EVENTING, verified=True
    ).order_by("pk")
    _queue(list(ending[:ENDINGS_MAX]), CANCELLING, "The rendezvous point has ended.")


def _queue(ending: Sequence[PushEndpoint], status: str, reason: str) -> None:
    endings = [PushEnding(one.pk, bytes(one.sealed), status, reason) for one in ending]
    if endings:
        transaction.on_commit(lambda: _add(endings), robust=True)


def _add(endings: list[PushEnding]) -> None:
    try:
        endings_add(endings)
    except RedisError as error:
        logger.warning("%d subscribers are not notified of the end of their subscription: %s", len(endings), error)
        return
    deliverer_notify(endings[0].subscription)
