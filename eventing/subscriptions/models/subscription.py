"""Durable subscriptions: a reader's standing interest with a lease. The acknowledged cursor is in the data plane."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.conf import config
from eventing.core.events.cursors import POSITION_CHARS_MAX
from eventing.core.ids import DOMAIN_ADMIN, DOMAIN_ADMINS
from eventing.rps.models import RendezvousPoint
from eventing.sql.columns import HistoryColumns, LeaseColumns, lease_and_history_constraints, lease_indexes

SUBSCRIPTION_ID_CHARS = 30
REFERENCE_CHARS = 32


class Subscription(LeaseColumns, HistoryColumns):
    """A durable subscription.

    `at` is the id of the RP read: an RP's own, its administrative RP's, or the domain's. `rp` is the RP whose end also
    ends the subscription; None for the domain's administrative RP only. `start` is the cursor at which it began, used
    while the data plane has none.
    `keeper` is the domain where a shared subscription was created (shared_subscription.py); empty for one that only
    this domain holds.
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
    start = models.CharField(max_length=POSITION_CHARS_MAX)
    keeper = models.CharField(max_length=253, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            *lease_and_history_constraints("subscription"),
            models.CheckConstraint(
                condition=Q(rp__isnull=False) | Q(at__in=DOMAIN_ADMINS), name="subscription_ends_with_its_rp"
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
        """Return the RP that is read; `domain.admin` for those of the domain, which has one place for its own changes."""
        return DOMAIN_ADMIN if self.at in DOMAIN_ADMINS else self.at

    @property
    def lease_s_default(self) -> int:
        """Return the setting's default lease for subscriptions, seconds."""
        return config().subscription_lease_s

    @property
    def renewed_by_use(self) -> bool:
        """True if use renews the lease: reading does, being delivered to does not, since no token is checked then."""
        return bool(self.deliver.get("mode") == "pull")

    @property
    def asked_again_s(self) -> int | None:
        """Return the lease that the owner asked for; only a shared subscription's keeper knows it, elsewhere it is the
        granted one.
        """
        return self.granted_s if self.keeper not in ("", config().domain) else self.asked_s
