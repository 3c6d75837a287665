"""Columns that several tables share: leases and history bounds."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from eventing.conf import config
from eventing.core.events.history import HistoryBounds


class LeaseColumns(models.Model):
    """A lease: requested duration (seconds; None: not stated), granted duration, time of the warning, time of the end."""

    asked_s = models.BigIntegerField(null=True)
    granted_s = models.BigIntegerField()
    warn_at = models.DateTimeField()
    warned_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()

    class Meta:
        abstract = True

    lease_of: ClassVar[str]
    """Name in administrative events of the thing that is leased; only of tables whose leases they report."""

    @property
    def lease_at(self) -> str:
        """Id of the RP at which the lease is held; its administrative RP reports changes of the lease."""
        raise NotImplementedError

    @property
    def lease_s_default(self) -> int:
        """Lease in seconds that a row of this table is granted when a request states none."""
        return config().lease_s_default

    @property
    def renewed_by_use(self) -> bool:
        """True if use renews the lease."""
        return True

    @property
    def asked_again_s(self) -> int | None:
        """Duration in seconds that a renewal by use requests; None for the default."""
        return self.asked_s


class HistoryColumns(models.Model):
    """Granted history bounds; `max_age_s` None for no bound by age."""

    max_events = models.BigIntegerField()
    max_bytes = models.BigIntegerField()
    max_age_s = models.BigIntegerField(null=True)

    class Meta:
        abstract = True

    @property
    def bounds(self) -> HistoryBounds:
        """The bounds as a value."""
        return HistoryBounds(self.max_events, self.max_bytes, self.max_age_s)

    def bounds_set(self, bounds: HistoryBounds) -> None:
        """Set the columns to `bounds`; the caller saves."""
        self.max_events, self.max_bytes, self.max_age_s = bounds.max_events, bounds.max_bytes, bounds.max_age_s


def lease_and_history_constraints(prefix: str) -> list[models.BaseConstraint]:
    """Constraints of the database on these columns."""
    return [
        models.CheckConstraint(condition=Q(granted_s__gte=1), name=f"{prefix}_lease_lasts"),
        models.CheckConstraint(condition=Q(warn_at__lte=F("expires_at")), name=f"{prefix}_warned_before_end"),
        models.CheckConstraint(
            condition=Q(max_events__gte=1) & Q(max_bytes__gte=1) & (Q(max_age_s=None) | Q(max_age_s__gte=1)),
            name=f"{prefix}_history_holds_an_event",
        ),
    ]


def lease_indexes(prefix: str) -> list[models.Index]:
    """Indexes for the reaper's searches for ended leases and due warnings, and for lists of leases ordered by end."""
    return [
        models.Index(fields=["expires_at", "id"], name=f"{prefix}_by_end"),
        models.Index(fields=["warn_at"], condition=Q(warned_at=None), name=f"{prefix}_to_warn"),
    ]
