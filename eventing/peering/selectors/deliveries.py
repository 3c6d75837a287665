"""Reads of the state of delivery to a peer."""

from __future__ import annotations

from eventing.peering.models import PeerDelivery


def delivery_get(peer: str) -> PeerDelivery | None:
    """Return the delivery to the peer; None if it has never failed."""
    return PeerDelivery.objects.filter(peer_id=peer).first()


def deliveries_failing() -> list[PeerDelivery]:
    """Return deliveries that fail or have stopped, by next attempt, earliest first."""
    return list(PeerDelivery.objects.filter(failures__gte=1).order_by("next_try_at", "peer_id"))
