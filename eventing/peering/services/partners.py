"""Writes about partners: contact of an active peer or an acquaintance."""

from __future__ import annotations

from eventing.peering.selectors.partners import acquaintance_get
from eventing.peering.services.acquaintances import acquaintance_contacted
from eventing.peering.services.peers import peer_contacted


def partner_contacted(name: str) -> None:
    """Note authenticated contact: it renews a peer's lease. Written rarely."""
    row = acquaintance_get(name)
    if row is not None:
        acquaintance_contacted(row)
    else:
        peer_contacted(name)
