"""Durable subscriptions: a reader's standing interest with a lease. What it has acknowledged is in the data plane."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.conf import config
from eventing.core.events.cursors import PLACE_CHARS_MAX
from eventing.core.ids import DOMAIN_ADMIN
from eventing.rps.models import RendezvousPoint
from eventing.sql.columns import HistoryColumns, LeaseColumns, lease_and_history_constraints, lease_indexes

SUBSCRIPTION_ID_CHARS = 30
REFERENCE_CHARS = 32


class Subscription(LeaseColumns, HistoryColumns):
    """One durable subscription.

    `at` is the id of the RP read: an RP's own, its administrative RP's, or the domain's. `rp` is the RP that it ends with;
    None for the domain's administrative RP only. `start` is the cursor it began at, used while the data plane holds none.
    `keeper` is the domain where a shared one was created (shared_subscription.py); empty for one that is this domain's alone.
    """

    lease_of = "subscription"

    id = models.CharField(primary_key=True, max_length=SUBSCRIPTION_ID_CHARS)
    rp = models.ForeignKey(
        RendezvousPoint, on_delete=models.CASCADE, null=True, related_name="subscriptions", db_index=False
    )
    at = models.CharField(max_length=REFERENCE_CHARS)
    owner = models.CharField(max_length=IDENTITY_CHARS_MAX)
    version = models.BigIntegerField(default=1)
    deliver = models.JSONField()
    start = models.CharField(max_length=PLACE_CHARS_MAX)
    keeper = models.CharField(max_length=253, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            *lease_and_history_constraints("subscription"),
            models.CheckConstraint(
                condition=Q(rp__isnull=False) | Q(at=DOMAIN_ADMIN), name="subscription_ends_with_its_rp"
            ),
        ]
        indexes = [
            *lease_indexes("subscription"),
            models.Index(fields=["rp", "created_at"], name="subscription_of_rp"),
            models.Index(fields=["at", "id"], name="subscription_at"),
            models.Index(fields=["owner", "id"], name="subscription_of_owner"),  # counted against the owner's quota
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def lease_at(self) -> str:
        """The RP that is read."""
        return self.at

    @property
    def lease_s_default(self) -> int:
        """As of any lease, by the setting for subscriptions."""
        return config().subscription_lease_s

    @property
    def asked_again_s(self) -> int | None:
        """What the owner of a shared subscription asked for is known at its keeper only: elsewhere it is what was granted."""
        return self.granted_s if self.keeper not in ("", config().domain) else self.asked_s
