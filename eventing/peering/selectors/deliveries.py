"""Reads of how the delivery to a peer goes."""

from __future__ import annotations

from eventing.peering.models import PeerDelivery


def delivery_get(peer: str) -> PeerDelivery | None:
    """The delivery to the peer; None if nothing was ever wrong with it."""
    return PeerDelivery.objects.filter(peer_id=peer).first()


def deliveries_failing() -> list[PeerDelivery]:
    """Deliveries that fail or stopped, those that are tried next first."""
    return list(PeerDelivery.objects.filter(failures__gte=1).order_by("next_try_at", "peer_id"))
