"""Reads of the state of delivery to a peer or an acquaintance."""

from __future__ import annotations

from datetime import datetime

from eventing.peering.models import Acquaintance, DeliveryColumns, PeerDelivery
from eventing.peering.rules.deliveries import PROBED, STOPS, Failure
from eventing.peering.selectors.domain_documents import domain_document
from eventing.peering.selectors.partners import Partner, acquaintances_all
from eventing.sql.remembered import remembered


def delivery_get(peer: str) -> PeerDelivery | None:
    """Return the delivery to the peer; None if it has never failed."""
    return PeerDelivery.objects.filter(peer_id=peer).first()


def partner_delivery_get(name: str) -> DeliveryColumns | None:
    """Return the delivery to the peer or acquaintance; None for a peer to which it has never failed."""
    return Acquaintance.objects.filter(name=name).first() or delivery_get(name)


def deliveries_held() -> dict[str, DeliveryColumns]:
    """Return the present rows of deliveries to peers and acquaintances by name, without peers to which it has never failed."""
    return {row.partner: row for row in [*_of_peers(), *acquaintances_all()]}


@remembered
def _of_peers() -> list[PeerDelivery]:
    return list(PeerDelivery.objects.order_by("peer_id"))


def delivery_due(delivery: DeliveryColumns, peer: Partner, now: datetime, probed: bool) -> bool:
    """Return whether a failing delivery may be tried now: an attempt is due, the peer was in contact, or something was
    changed since.
    """
    failure = Failure(delivery.failure)
    if probed and failure in PROBED:
        return True
    if failure in STOPS and delivery.stopped_at is not None:  # otherwise an operator has started a retry
        stopped_at = delivery.stopped_at
        return peer.changed_at > stopped_at or _document_is_newer(peer.name, stopped_at)
    return delivery.next_try_at is None or delivery.next_try_at <= now


def _document_is_newer(peer: str, moment: datetime) -> bool:
    document = domain_document(peer)
    return document is not None and document.issued_at > moment.timestamp()
