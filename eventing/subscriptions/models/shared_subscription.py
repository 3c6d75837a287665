"""Durable subscriptions recorded at several domains: the keeper's signed record of each, and its recipients."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from eventing.subscriptions.models.subscription import REFERENCE_CHARS, SUBSCRIPTION_ID_CHARS

DOMAIN_CHARS = 253


class SharedSubscription(models.Model):
    """A shared subscription, beside its row in Subscription; kept alone after its end, until its lease would have
    expired.

    Attributes:
        keeper: the domain where it was created.
        version: of the record.
        statement: the record, packed (rps/rules/statements.py: packed).
        ended: whether it was deleted, as the record states.
        told: the version that each other holder has acknowledged; used by the keeper, and by a holder asked for the
            record.
        expires_at: when the row can be removed.

    Values that change with every acknowledgement and beat are in the data plane (log/shared_subscriptions.py).
    """

    id = models.CharField(primary_key=True, max_length=SUBSCRIPTION_ID_CHARS)
    rp = models.CharField(max_length=REFERENCE_CHARS)
    keeper = models.CharField(max_length=DOMAIN_CHARS)
    version = models.BigIntegerField()
    statement = models.BinaryField()
    ended = models.BooleanField(default=False)
    told = models.JSONField(default=dict)
    expires_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(version__gte=1), name="shared_subscription_has_a_version")
        ]
        indexes: ClassVar = [
            models.Index(fields=["keeper"], name="shared_by_keeper"),  # counted against the domain's quota
            models.Index(fields=["expires_at"], name="shared_by_end"),
        ]

    def __str__(self) -> str:
        return self.id
