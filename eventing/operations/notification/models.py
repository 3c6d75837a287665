"""Tables of notification: contact points, and which alarms each was notified of."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.operations.models import Alarm
from eventing.operations.notification.rules.contact_points import KINDS, NAME_CHARS_MAX, TARGET_CHARS_MAX
from eventing.rps.rules.watches import SEVERITIES

ID_CHARS = 29
REASON_CHARS_MAX = 255


class ContactPoint(models.Model):
    """A receiver of notifications about alarms: a webhook, or addresses of mail.

    Attributes:
        shown: the URL without its query, or the addresses.
        sealed: URL and signing secret, or the addresses (services/vault.py).
        severity: the least severity that is notified.
        resolved: whether the end of notified alarms is notified, too.
        group_s: least seconds between two messages.
        next_at: when something may be sent again.
        failures: failed attempts in a row; `failure`: the reason of the last one.
    """

    id = models.CharField(primary_key=True, max_length=ID_CHARS)
    name = models.CharField(max_length=NAME_CHARS_MAX, unique=True)
    kind = models.CharField(max_length=8)
    shown = models.CharField(max_length=TARGET_CHARS_MAX + 700)
    sealed = models.BinaryField()
    severity = models.CharField(max_length=8)
    resolved = models.BooleanField(default=True)
    group_s = models.IntegerField()
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=IDENTITY_CHARS_MAX)
    next_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True)
    failures = models.IntegerField(default=0)
    failure = models.CharField(max_length=REASON_CHARS_MAX, blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=KINDS), name="contact_point_kind_is_known"),
            models.CheckConstraint(condition=Q(severity__in=SEVERITIES), name="contact_point_severity_is_known"),
        ]
        indexes = [models.Index(fields=["next_at"], name="contact_point_due")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class AlarmNotice(models.Model):
    """An alarm of which a contact point was notified; `resolved`: of its end, too."""

    id = models.BigAutoField(primary_key=True)
    contact_point = models.ForeignKey(ContactPoint, on_delete=models.CASCADE, db_index=False)
    alarm = models.ForeignKey(Alarm, on_delete=models.CASCADE)
    resolved = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["contact_point", "alarm"], name="alarm_notice_is_one")]
        indexes = [models.Index(fields=["contact_point"], condition=Q(resolved=False), name="alarm_notice_open")]

    def __str__(self) -> str:
        return f"{self.contact_point_id} {self.alarm_id}"
