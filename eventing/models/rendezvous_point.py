"""Rendezvous points: the descriptor's source, its lease, and what it reserves of the domain's quota."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.core.ids import RP_ID_CHARS
from eventing.core.names import NAME_CHARS_MAX
from eventing.core.tokens import IDENTITY_CHARS_MAX
from eventing.models.columns import HistoryColumns, LeaseColumns, lease_and_history_constraints, lease_indexes

TITLE_CHARS_MAX = 255
ACK_CHARS_MAX = 16


class RendezvousPoint(LeaseColumns, HistoryColumns):
    """One RP. `id` is the hash of `genesis`; `version` grows with every change of what is not the lease."""

    id = models.CharField(primary_key=True, max_length=RP_ID_CHARS)
    genesis = models.JSONField()
    name = models.CharField(max_length=NAME_CHARS_MAX, unique=True, null=True)  # noqa: DJ001 - no name is not an empty one
    title = models.CharField(max_length=TITLE_CHARS_MAX, blank=True, default="")
    creator = models.CharField(max_length=IDENTITY_CHARS_MAX)
    version = models.BigIntegerField(default=1)
    policy = models.JSONField()
    ack = models.CharField(max_length=ACK_CHARS_MAX)
    properties = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    trimmed_at = models.DateTimeField()

    class Meta:
        constraints = [
            *lease_and_history_constraints("rp"),
            models.CheckConstraint(condition=Q(version__gte=1), name="rp_version_counts"),
            models.CheckConstraint(
                condition=Q(name=None) | (Q(name__startswith="/") & Q(name__endswith="/")), name="rp_name_is_path"
            ),
        ]
        indexes = [
            *lease_indexes("rp"),
            models.Index(fields=["created_at", "id"], name="rp_by_creation"),
            models.Index(fields=["trimmed_at"], name="rp_by_trimming"),
            models.Index(fields=["max_bytes"], name="rp_reserved_bytes"),  # the quota's sum reads the index only
            models.Index(fields=["creator", "max_bytes"], name="rp_of_creator"),  # and so does the creator's
        ]

    def __str__(self) -> str:
        return self.name or self.id
