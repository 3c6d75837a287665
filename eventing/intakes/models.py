"""Table of intakes: addresses at which other systems' webhooks become events of an RP."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.conf import config
from eventing.intakes.rules.formats import HEADER_CHARS_MAX, NAMES
from eventing.rps.models import RendezvousPoint
from eventing.sql.columns import LeaseColumns, lease_indexes

INTAKE_ID_CHARS = 29
FORMAT_CHARS = 32
TITLE_CHARS_MAX = 255
SOURCE_CHARS_MAX = 255


class Intake(LeaseColumns):
    """An intake at an RP, which ends with it.

    Attributes:
        token_hash: SHA-256 of the token in its address, hexadecimal; the token itself is not stored.
        owner: subject of the local principal as which it publishes.
        secret: the sender's secret, sealed (sql/sealed.py); None for none.
        previous: the secret before the last change, sealed; accepted until `previous_until`.
        source: `source` of events whose sender states none.
        timestamp_header: lower-case name of the header with the time of Grafana's signature; empty for none.
    """

    lease_of = "intake"

    id = models.CharField(primary_key=True, max_length=INTAKE_ID_CHARS)
    rp = models.ForeignKey(RendezvousPoint, on_delete=models.CASCADE, related_name="intakes", db_index=False)
    token_hash = models.CharField(max_length=64, unique=True)
    owner = models.CharField(max_length=IDENTITY_CHARS_MAX)
    version = models.BigIntegerField(default=1)
    format = models.CharField(max_length=FORMAT_CHARS)
    title = models.CharField(max_length=TITLE_CHARS_MAX, blank=True, default="")
    source = models.CharField(max_length=SOURCE_CHARS_MAX)
    secret = models.BinaryField(null=True)
    previous = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)
    timestamp_header = models.CharField(max_length=HEADER_CHARS_MAX, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(granted_s__gte=1), name="intake_lease_lasts"),
            models.CheckConstraint(condition=Q(warn_at__lte=F("expires_at")), name="intake_warned_before_end"),
            models.CheckConstraint(condition=Q(format__in=NAMES), name="intake_format_is_known"),
            models.CheckConstraint(
                condition=Q(previous=None, previous_until=None)
                | Q(previous__isnull=False, previous_until__isnull=False),
                name="intake_previous_secret_ends",
            ),
        ]
        indexes: ClassVar = [*lease_indexes("intake"), models.Index(fields=["rp", "id"], name="intake_of_rp")]

    def __str__(self) -> str:
        return self.id

    @property
    def lease_at(self) -> str:
        """Return the RP at which it publishes."""
        return self.rp_id

    @property
    def lease_s_default(self) -> int:
        """Return the longest lease, seconds: the sender of webhooks cannot renew."""
        return config().lease_s_max
