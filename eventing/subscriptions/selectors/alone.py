"""Reads of the durable subscriptions that only this domain holds: those that another domain can hold too, and the others."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, F, QuerySet

from eventing.core.ids import ADMIN_SUFFIX
from eventing.peering.selectors.peers import peer_get
from eventing.rps.ports import links_of_rps
from eventing.subscriptions.models import Subscription

RPS_MAX = 1000  # bound: RPs whose pull subscriptions are looked at; those of others stay


def peers_to_hold(rp: str) -> list[str]:
    """Return the peers that can hold subscriptions of this domain at an RP: linked there, and trusting it with `host`."""
    peers = ((name, peer_get(name)) for name in links_of_rps([rp]).get(rp, ()))
    return [name for name, peer in peers if peer is not None and peer.active and peer.host]


def alone(now: datetime) -> QuerySet[Subscription]:
    """Return the running subscriptions that only this domain holds."""
    return Subscription.objects.filter(keeper="", expires_at__gt=now)


def alone_by_mode(now: datetime) -> dict[str, int]:
    """Return how many of these there are, by mode of delivery."""
    found = alone(now).values_list("deliver__mode").annotate(count=Count("id")).order_by("deliver__mode")
    return {str(mode): count for mode, count in found}


def shareable(now: datetime) -> QuerySet[Subscription]:
    """Return those that another domain can hold too: pull subscriptions of RPs at which a fit peer takes part."""
    pulled = alone(now).filter(deliver__mode="pull", rp__isnull=False, at=F("rp_id")).exclude(at__endswith=ADMIN_SUFFIX)
    rps = pulled.order_by("at").values_list("at", flat=True).distinct()[:RPS_MAX]
    fit = [rp for rp in rps if peers_to_hold(rp)]
    return pulled.filter(at__in=fit)
