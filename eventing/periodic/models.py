"""Table of the periodic tasks."""

from __future__ import annotations

from django.db import models


class PeriodicTask(models.Model):
    """One periodic task. Times are Unix seconds of the database's clock.

    Attributes:
        holder: process that took the newest run, for people.
        fence: number of the newest run; only a run with this number may write what must not be written twice.
        due_at: when it is to be run next.
        lease_until: until when the newest run holds it.
    """

    name = models.CharField(max_length=100, primary_key=True)
    holder = models.CharField(max_length=100, db_default="")
    fence = models.BigIntegerField(db_default=0)
    due_at = models.FloatField(db_default=0.0)
    lease_until = models.FloatField(db_default=0.0)

    def __str__(self) -> str:
        return f"{self.name} {self.fence}"
