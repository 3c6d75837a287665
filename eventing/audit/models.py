"""Audit entries: actor, action, object, outcome and origin. Rows are added and never changed.

This model refuses to update and to delete; triggers of the database (migration 0004) refuse it to every client. The
only exception is the purge (audit/services.py): it first adds an entry with the greatest id that it removes, and only
entries covered by such an entry, and older than RETENTION_DAYS_MIN, can be deleted.
"""

from __future__ import annotations

from datetime import UTC
from typing import Any, NoReturn

from django.db import models
from django.db.models import Q

from eventing.audit.rules.chain import SEAL_CHARS

WHO_CHARS = 512
TEXT_CHARS = 255
ACTION_CHARS = 64
KIND_CHARS = 32
ADDRESS_CHARS = 64
REQUEST_ID_CHARS = 64
RETENTION_DAYS_MIN = 30
"""Least retention in days; the triggers of migration 0004 enforce the same."""


class AppendOnly(models.QuerySet["AuditEntry"]):
    """A queryset that refuses updates and deletions."""

    def update(self, **_: Any) -> NoReturn:
        """Raise TypeError."""
        raise TypeError("audit entries are never changed")

    def delete(self) -> NoReturn:
        """Raise TypeError."""
        raise TypeError("audit entries are removed by their retention only (audit_purge)")


class AuditEntry(models.Model):
    """One act, refusal or failure; `count` of them where several equal ones of one minute were gathered.

    `id` counts from 1 without holes, in the order of commits: a reader by id misses nothing. `seal` binds the entry to
    the one before it, whose seal is `previous` (audit/rules/chain.py). `purged_through` is set in the purge's own
    entries only: all entries up to this id may be deleted.
    """

    class Outcome(models.TextChoices):
        """Outcome of the act: done, not allowed, or allowed and not possible."""

        OK = "ok"
        REFUSED = "refused"
        FAILED = "failed"

    id = models.BigIntegerField(primary_key=True)
    recorded_at = models.DateTimeField()
    who = models.CharField(max_length=WHO_CHARS)
    issuer = models.CharField(max_length=TEXT_CHARS, blank=True, default="")
    token_id = models.CharField(max_length=TEXT_CHARS, blank=True, default="")
    via = models.CharField(max_length=KIND_CHARS)
    action = models.CharField(max_length=ACTION_CHARS)
    on_kind = models.CharField(max_length=KIND_CHARS, blank=True, default="")
    on_id = models.CharField(max_length=TEXT_CHARS, blank=True, default="")
    outcome = models.CharField(max_length=8, choices=Outcome.choices)
    problem = models.CharField(max_length=KIND_CHARS, blank=True, default="")
    reason = models.CharField(max_length=TEXT_CHARS, blank=True, default="")
    count = models.BigIntegerField(default=1)
    address = models.CharField(max_length=ADDRESS_CHARS, blank=True, default="")
    request_id = models.CharField(max_length=REQUEST_ID_CHARS, blank=True, default="")
    details = models.JSONField(default=dict)
    purged_through = models.BigIntegerField(null=True)
    previous = models.CharField(max_length=SEAL_CHARS, blank=True)
    seal = models.CharField(max_length=SEAL_CHARS)

    objects = AppendOnly.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(outcome__in=["ok", "refused", "failed"]), name="audit_outcome_is_known"),
            models.CheckConstraint(condition=Q(id__gte=1), name="audit_ids_count"),
            models.CheckConstraint(condition=Q(count__gte=1), name="audit_counts_something"),
        ]
        indexes = [
            models.Index(fields=["recorded_at"], name="audit_by_time"),
            models.Index(fields=["who", "id"], name="audit_by_who"),
            models.Index(fields=["action", "id"], name="audit_by_action"),
            models.Index(fields=["outcome", "id"], name="audit_by_outcome"),
            models.Index(fields=["on_id", "id"], name="audit_by_object"),
            models.Index(
                fields=["purged_through"], condition=Q(purged_through__isnull=False), name="audit_purged_through"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.action} {self.outcome}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Add the entry. Raises TypeError for one that is already in the table."""
        if not self._state.adding:
            raise TypeError("audit entries are never changed")
        kwargs["force_insert"] = True
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise TypeError."""
        raise TypeError("audit entries are removed by their retention only (audit_purge)")

    def content(self) -> dict[str, Any]:
        """Content that the seal covers: everything but the seals, as JSON."""
        columns = {field.attname: getattr(self, field.attname) for field in self._meta.concrete_fields}
        del columns["seal"], columns["previous"]
        return {**columns, "recorded_at": self.recorded_at.astimezone(UTC).isoformat(timespec="microseconds")}
