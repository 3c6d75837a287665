"""Outbox table: pending effects of committed changes on the data plane."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class OutboxEntry(models.Model):
    """One effect, written in the transaction of its cause and removed once carried out. All effects may be carried out
    twice.

    `event`: append the administrative event in `content` ({"id", "source", "type", "time", "data"}) to the log of `rp`.
    `ensure`: make the log of `rp` with its present bounds. `announce`: notify gateways that `rp` changed. `delete`:
    remove the log of `rp`. `forget`: drop the cursor of the subscription in `content` ({"subscription"}).
    """

    class Kind(models.TextChoices):
        """Kind of effect."""

        EVENT = "event"
        ENSURE = "ensure"
        ANNOUNCE = "announce"
        DELETE = "delete"
        FORGET = "forget"

    kind = models.CharField(max_length=8, choices=Kind.choices)
    rp = models.CharField(max_length=32)
    content = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=["event", "ensure", "announce", "delete", "forget"]), name="outbox_kind_is_known"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.rp}"
