"""Durable subscriptions that are recorded at several domains: the keeper's signed word on each, and who was told."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from eventing.subscriptions.models.subscription import REFERENCE_CHARS, SUBSCRIPTION_ID_CHARS

DOMAIN_CHARS = 253


class SharedSubscription(models.Model):
    """One shared subscription, beside its row in Subscription; alone once it has ended, until its lease would have.

    Attributes:
        keeper: where it was created.
        version: of the record.
        statement: the record, packed (rps/rules/statements.py: packed).
        ended: it was deleted; the record says so.
        told: which version each other holder has taken; used by the keeper, and by who was asked for the record.
        expires_at: when nothing of it is needed any more.
    What moves with every acknowledgement and beat is in the data plane (log/shared_subscriptions.py).
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
            models.Index(fields=["keeper"], name="shared_by_keeper"),  # counted against what is kept for a domain
            models.Index(fields=["expires_at"], name="shared_by_end"),
        ]

    def __str__(self) -> str:
        return self.id
