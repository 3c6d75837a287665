"""Alarms: open and cleared."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.operations.rules.alarms import (
    ABOUT_CHARS_MAX,
    DETAIL_CHARS_MAX,
    LINK_CHARS_MAX,
    NOTE_CHARS_MAX,
    WHY_CHARS_MAX,
)


class Alarm(models.Model):
    """An alarm: open until `cleared_at`. `rp` is empty for the domain's; an alarm outlives its RP and its rule."""

    id = models.BigAutoField(primary_key=True)
    rule = models.CharField(max_length=16)
    rp = models.CharField(max_length=64, blank=True, default="")
    kind = models.CharField(max_length=16)
    about = models.CharField(max_length=ABOUT_CHARS_MAX, blank=True, default="")
    severity = models.CharField(max_length=8)
    detail = models.CharField(max_length=DETAIL_CHARS_MAX)
    values = models.JSONField(default=list)
    link = models.CharField(max_length=LINK_CHARS_MAX, blank=True, default="")
    since = models.DateTimeField()
    raised_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    cleared_at = models.DateTimeField(null=True)
    cleared_why = models.CharField(max_length=WHY_CHARS_MAX, blank=True, default="")
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=IDENTITY_CHARS_MAX, blank=True, default="")
    note = models.CharField(max_length=NOTE_CHARS_MAX, blank=True, default="")

    class Meta:
        constraints = [
            # Two gateways that both lead for a moment cannot raise the same alarm twice.
            models.UniqueConstraint(fields=["rule", "about"], condition=Q(cleared_at=None), name="alarm_is_open_once"),
            models.CheckConstraint(condition=Q(severity__in=["warning", "critical"]), name="alarm_severity_is_known"),
            models.CheckConstraint(
                condition=Q(acknowledged_at__isnull=False) | Q(acknowledged_by="", note=""),
                name="alarm_acknowledged_or_not",
            ),
        ]
        indexes = [
            models.Index(fields=["-id"], condition=Q(cleared_at=None), name="alarm_open"),
            models.Index(fields=["rp", "-id"], name="alarm_of_rp"),
            models.Index(fields=["cleared_at"], condition=Q(cleared_at__isnull=False), name="alarm_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.severity} {self.kind} {self.rp or 'domain'} {self.about}"
