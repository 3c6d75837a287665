"""Columns of the delivery to another domain: failures, next attempt, backlog."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.peering.rules.deliveries import DETAIL_CHARS_MAX, Failure


class DeliveryColumns(models.Model):
    """State of forwarding to one domain.

    Attributes:
        failures: consecutive failures; 0 while delivery works.
        failure, detail: class of the last failure (peering/rules/deliveries.py) and its sentence; empty while delivery
            works.
        first_failure_at: time of the first of the consecutive failures.
        next_try_at: earliest next attempt; None while delivery works and when it is stopped.
        stopped_at: since when delivery is stopped until an administrator or the other domain changes something.
        backlog, oldest_at: events that wait for the other domain, and the time of the oldest, as of the last sweep.
        changed_at: time of the last change of any of these.
    """

    failures = models.BigIntegerField(default=0)
    failure = models.CharField(
        max_length=16, blank=True, default="", choices=[(one.value, one.value) for one in Failure]
    )
    detail = models.CharField(max_length=DETAIL_CHARS_MAX, blank=True, default="")
    first_failure_at = models.DateTimeField(null=True)
    next_try_at = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)
    backlog = models.BigIntegerField(default=0)
    oldest_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField()

    class Meta:
        abstract = True

    @property
    def partner(self) -> str:
        """Name of the other domain."""
        raise NotImplementedError


def delivery_constraints(prefix: str) -> list[models.BaseConstraint]:
    """Constraints of the database on these columns."""
    return [
        models.CheckConstraint(
            condition=Q(failure__in=["", "unreachable", "busy", "refused", "invalid"]),
            name=f"{prefix}_failure_is_known",
        ),
        models.CheckConstraint(
            condition=Q(failures=0, failure="", first_failure_at=None, next_try_at=None, stopped_at=None)
            | Q(failures__gte=1, first_failure_at__isnull=False) & ~Q(failure=""),
            name=f"{prefix}_fails_or_not",
        ),
    ]
