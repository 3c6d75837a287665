"""State of forwarding to a peer: failures, next attempt, backlog."""

from __future__ import annotations

from django.db import models

from eventing.peering.models.delivery_columns import DeliveryColumns, delivery_constraints
from eventing.peering.models.peer import Peer


class PeerDelivery(DeliveryColumns):
    """The delivery to one peer; there is no row before its first failure or backlog."""

    peer = models.OneToOneField(Peer, primary_key=True, on_delete=models.CASCADE, related_name="delivery")

    class Meta:
        constraints = delivery_constraints("delivery")
        indexes = [models.Index(fields=["next_try_at"], name="delivery_by_next_try")]

    def __str__(self) -> str:
        return f"to {self.peer_id}"

    @property
    def partner(self) -> str:
        """The peer's name."""
        return self.peer_id
