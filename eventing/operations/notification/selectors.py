"""Reads of contact points, and of the alarms that one is to be notified of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from eventing.core.errors import NotFound
from eventing.operations.models import Alarm
from eventing.operations.notification.models import AlarmNotice, ContactPoint
from eventing.operations.notification.rules.contact_points import NAME_CHARS_MAX
from eventing.operations.notification.shapes import ContactPointAnswer
from eventing.rps.rules.watches import SEVERITIES
from eventing.sql.leases import is_due
from eventing.sql.remembered import remembered

PENDING_MAX = 1000  # bound: alarms of one message, listed or counted; the others are in the next one


@dataclass(frozen=True, slots=True)
class PendingNotification:
    """Alarms that a contact point is to be notified of, the latest first."""

    raised: Sequence[Alarm]
    resolved: Sequence[Alarm]

    @property
    def since(self) -> datetime | None:
        """Time of the first of the changes; None without any."""
        times = [row.raised_at for row in self.raised] + [row.cleared_at for row in self.resolved if row.cleared_at]
        return min(times, default=None)


def contact_points() -> Sequence[ContactPoint]:
    """Return all contact points, by name."""
    return list(ContactPoint.objects.order_by("name"))


def contact_points_due(now: datetime) -> Sequence[ContactPoint]:
    """Return the contact points to which something may be sent."""
    if not is_due(_first_due(), now):
        return []
    return list(ContactPoint.objects.filter(next_at__lte=now).order_by("next_at"))


@remembered
def _first_due() -> datetime | None:
    return ContactPoint.objects.order_by("next_at").values_list("next_at", flat=True).first()


def contact_point_get(contact_point: str, *, lock: bool = False) -> ContactPoint:
    """Return one, by its id or its name; `lock`: for a change of it. Raises NotFound."""
    rows = ContactPoint.objects.select_for_update() if lock else ContactPoint.objects.all()
    known = len(contact_point) <= NAME_CHARS_MAX and "\0" not in contact_point
    row = rows.filter(Q(id=contact_point) | Q(name=contact_point)).first() if known else None
    if row is None:
        raise NotFound("There is no such contact point.")
    return row


def pending(row: ContactPoint, now: datetime) -> PendingNotification:
    """Return what a contact point is to be notified of.

    Raised: open alarms of at least its severity, of which it was not notified, that are neither muted nor acknowledged. Resolved: alarms
    that were cleared since it was notified of them. An alarm that was raised and cleared before a message could be sent is not
    notified.
    """
    severities = SEVERITIES[SEVERITIES.index(row.severity) :]
    notified = AlarmNotice.objects.filter(contact_point=row)
    raised = (
        Alarm.objects.filter(cleared_at=None, acknowledged_at=None, severity__in=severities)
        .exclude(muted_until__gt=now)
        .exclude(id__in=notified.values("alarm"))
        .order_by("-raised_at", "-id")[:PENDING_MAX]
    )
    ended = notified.filter(resolved=False, alarm__cleared_at__isnull=False).values("alarm")
    resolved = Alarm.objects.filter(id__in=ended).order_by("-cleared_at", "-id")[:PENDING_MAX] if row.resolved else []
    return PendingNotification(list(raised), list(resolved))


def contact_point_answer(row: ContactPoint) -> ContactPointAnswer:
    """Return a contact point as answers show it."""
    return ContactPointAnswer.of(row, target=row.shown)
