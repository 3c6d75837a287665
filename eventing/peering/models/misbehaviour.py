"""Counts of other domains' misbehaviour: one row for each kind, carrier and origin."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

DETAIL_CHARS = 255


class Misbehaviour(models.Model):
    """The count of one kind (peering/rules/misbehaviour.py) received through `carrier` about `origin`, with place and
    detail of the last occurrence.

    `reported_at`, `reported`: time and count of the last event about this row on `domain.admin`.
    """

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=32)
    carrier = models.CharField(max_length=253)
    origin = models.CharField(max_length=253, blank=True, default="")
    count = models.BigIntegerField(default=1)
    rp = models.CharField(max_length=64, blank=True, default="")
    detail = models.CharField(max_length=DETAIL_CHARS, blank=True, default="")
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    reported = models.BigIntegerField(default=0)
    reported_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "carrier", "origin"], name="misbehaviour_is_counted_once"),
            models.CheckConstraint(condition=Q(count__gte=1), name="misbehaviour_happened"),
        ]
        indexes = [
            models.Index(fields=["last_at", "id"], name="misbehaviour_by_time"),
            models.Index(fields=["carrier"], name="misbehaviour_by_carrier"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.carrier} {self.origin} {self.count}"
