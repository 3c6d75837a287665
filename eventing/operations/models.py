"""Alarms: open and cleared; and the drain of this domain."""

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
    muted_until = models.DateTimeField(null=True)
    muted_by = models.CharField(max_length=IDENTITY_CHARS_MAX, blank=True, default="", db_default="")
    mute_reason = models.CharField(max_length=NOTE_CHARS_MAX, blank=True, default="", db_default="")

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


class DomainDrain(models.Model):
    """The latest drain of this domain: one row, or none.

    `until`: its end, unless it is ended before (`ended_at`). `done_at`: when everything was handed over. `refusals`: by RP, the
    domains that did not take over its home, with their reasons; by subscription, why no other domain holds it. `closes`: the domain
    stops for good, so the subscribers of what nobody takes over are notified; `closed`: how many were. `shared`: subscriptions that
    another domain holds since.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    by = models.CharField(max_length=IDENTITY_CHARS_MAX, blank=True, default="")
    began_at = models.DateTimeField()
    until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)
    handed_over = models.BigIntegerField(default=0)
    refusals = models.JSONField(default=dict)
    closes = models.BooleanField(default=False)
    closed = models.BigIntegerField(default=0)
    shared = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="domain_drain_is_one_row")]

    def __str__(self) -> str:
        return f"until {self.until}"
