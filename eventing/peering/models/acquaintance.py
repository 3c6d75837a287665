"""Acquaintances: other domains that the directory identifies and no administrator approved."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from eventing.peering.models.delivery_columns import DeliveryColumns, delivery_constraints
from eventing.peering.models.peer import NAME_CHARS_MAX
from eventing.peering.rules import acquaintances
from eventing.peering.rules.peers import URL_CHARS_MAX
from eventing.sql.columns import LeaseColumns


class Acquaintance(LeaseColumns, DeliveryColumns):
    """Another domain, as forwarding needs it; it has the members of Peer that forwarding reads.

    A table of its own: nothing that reads peers can take an acquaintance for one, and software before it ignores it.

    Attributes:
        name: the domain's name. No active or suspended peer has it.
        url, fingerprint: as the directory named them when the acquaintance began or was renewed.
        heard_at: time of the last contact; None for never.
        changed_at: time of the last change of the address, which has a stopped delivery tried again.
        push: runs are accepted: inbound and outbound handle only RPs to which both domains are admitted.
        host, gossip: never.
    """

    name = models.CharField(primary_key=True, max_length=NAME_CHARS_MAX)
    url = models.CharField(max_length=URL_CHARS_MAX)
    fingerprint = models.CharField(max_length=64)
    heard_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    active: ClassVar[bool] = True
    push: ClassVar[bool] = True
    host: ClassVar[bool] = False
    gossip: ClassVar[bool] = False
    events_per_s: ClassVar[int] = acquaintances.EVENTS_PER_S
    bytes_per_s: ClassVar[int] = acquaintances.BYTES_PER_S
    requests_per_s: ClassVar[int] = acquaintances.REQUESTS_PER_S

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(granted_s__gte=1), name="acquaintance_lease_lasts"),
            *delivery_constraints("acquaintance"),
        ]
        indexes = [models.Index(fields=["expires_at"], name="acquaintance_by_end")]

    def __str__(self) -> str:
        return self.name

    @property
    def partner(self) -> str:
        """The domain's name."""
        return self.name
