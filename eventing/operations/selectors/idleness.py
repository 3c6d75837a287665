"""Reads by which a small domain knows when its periodic tasks can find something to do (workers/quiet_schedule.py)."""

from __future__ import annotations

from django.db.models import Min, Q

from eventing.intakes.models import Intake
from eventing.membership.models import OverlayMembership
from eventing.operations.models import DomainDrain
from eventing.peering.models import Acquaintance, Peer
from eventing.replication.models import ReplicaLink
from eventing.rps.models import RendezvousPoint
from eventing.subscriptions.models import SharedSubscription, Subscription

_OF_FEDERATION = (Peer, Acquaintance, ReplicaLink, SharedSubscription, OverlayMembership, DomainDrain)
_LEASED = (RendezvousPoint, Subscription, Intake)


def domain_is_alone() -> bool:
    """Return True if no other domain is known that anything is exchanged with, or taken over from."""
    return not any(model._default_manager.exists() for model in _OF_FEDERATION)


def lease_due_at() -> float | None:
    """Return when the next lease expires or is warned of, Unix seconds; None if there is none."""
    found = []
    for model in _LEASED:
        times = model._default_manager.aggregate(
            ends=Min("expires_at"), warned=Min("warn_at", filter=Q(warned_at__isnull=True))
        )
        found += [at.timestamp() for at in times.values() if at is not None]
    return min(found, default=None)
