"""Origins whose events are refused here until an administrator lifts the quarantine."""

from __future__ import annotations

from django.db import models

WHY_CHARS = 255


class Quarantine(models.Model):
    """A quarantined origin. Lifting removes the row; the audit records who did. `evidence` is None if put by hand."""

    origin = models.CharField(primary_key=True, max_length=253)
    why = models.CharField(max_length=WHY_CHARS)
    evidence = models.ForeignKey("eventing.Evidence", null=True, on_delete=models.PROTECT, db_index=False)
    since = models.DateTimeField()

    def __str__(self) -> str:
        return self.origin
