"""Operators' actions on a peer that need no decision about trust: retry now, renew the lease.

Trust, rates and states are administrators' decisions, in peers.py.
"""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from eventing.access.rules.permission import require_operator
from eventing.core import leases
from eventing.core.errors import Conflict
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.core.timestamps import timestamp
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.peering.models import Peer, PeerDelivery
from eventing.peering.rules import peers
from eventing.peering.rules.peers import PeeringState
from eventing.peering.selectors.event_data import peer_data
from eventing.peering.selectors.peers import peer_row, peers_forget


def peer_retry(*, principal: Principal, name: str, now: datetime | None = None) -> Peer:
    """Retry a peer now, whatever pause was agreed, also one whose delivery had stopped.

    Count and start of the failures stay until the peer acknowledges a request. The next hello becomes due as well. The
    caller wakes forwarding (replication/operating.py). Returns the peer. Raises Forbidden, NotFound, Conflict (not
    active).
    """
    now = now or timezone.now()
    require_operator(principal)
    peer_row(name)
    with change(now) as outbox:
        row = Peer.objects.select_for_update().get(name=name)
        if row.state not in (PeeringState.ACTIVE, PeeringState.PROPOSED):
            raise Conflict(f"{name} is {row.state}: nothing is sent to it.", state=row.state)
        if row.hello_at is not None:
            row.hello_at = now
            row.save(update_fields=["hello_at"])
        failing = PeerDelivery.objects.filter(peer_id=name, failures__gte=1)
        failing.update(next_try_at=now, stopped_at=None, changed_at=now)
        data = {"peer": peer_data(row), "by": principal.identity}
        outbox.event(events.PEER_RETRIED, DOMAIN_ADMIN, data)
        outbox.act("peer.retry", principal, "peer", name)
    peers_forget()
    return row


def peer_renew(*, principal: Principal, name: str, now: datetime | None = None) -> Peer:
    """Renew a peer's lease from now, as contact does. Returns the peer. Raises Forbidden, NotFound."""
    now = now or timezone.now()
    require_operator(principal)
    peer_row(name)
    with change(now) as outbox:
        row = Peer.objects.select_for_update().get(name=name)
        longest_s = peers.ASKED_LEASE_S if row.state == PeeringState.ASKED else peers.LEASE_S
        granted = leases.renew(row.expires_at, None, now, default_s=longest_s, longest_s=longest_s)
        row.granted_s, row.warn_at, row.expires_at = granted.granted_s, granted.warn_at, granted.expires_at
        row.warned_at = None
        row.save(update_fields=["granted_s", "warn_at", "warned_at", "expires_at"])
        lease = {"asked_s": None, "granted_s": row.granted_s, "expires_at": timestamp(row.expires_at)}
        outbox.event(events.LEASE_RENEWED, DOMAIN_ADMIN, {"what": "peer", "id": name, **lease})
        outbox.act("peer.renew", principal, "peer", name, granted_s=row.granted_s)
    return row
