"""Revocations: credentials that are no longer valid although they have not expired."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

ISSUER_CHARS_MAX = 511  # ISSUER|JWKS, each 255
VALUE_CHARS_MAX = 255
REASON_CHARS_MAX = 255
BY_CHARS_MAX = 767  # an identity: ISSUER|JWKS#SUBJECT


class Revocation(models.Model):
    """State of one credential: revoked, or (`lifted`) no longer revoked, which processes must learn as well.

    `id` is the serial of the change: written under the domain's lock, so that rows become visible in its order and a
    reader of one has seen all before it. A row is never changed: a change is a new row in place of the old. `before`:
    of a subject, the tokens issued before are revoked; null for a token or a key. `until`: time after which nothing
    that it covers can be valid any more, and the row is purged.
    """

    class Kind(models.TextChoices):
        """Kind of `value`."""

        TOKEN = "token"  # noqa: S105 - jti
        SUBJECT = "subject"
        KEY = "key"

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    issuer = models.CharField(max_length=ISSUER_CHARS_MAX)
    value = models.CharField(max_length=VALUE_CHARS_MAX)
    reason = models.CharField(max_length=REASON_CHARS_MAX, blank=True, default="")
    by = models.CharField(max_length=BY_CHARS_MAX)
    before = models.DateTimeField(null=True)
    lifted = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "issuer", "value"], name="revocation_is_one"),
            models.CheckConstraint(condition=Q(kind__in=["token", "subject", "key"]), name="revocation_kind_is_known"),
            models.CheckConstraint(
                condition=(Q(kind="subject") & Q(before__isnull=False)) | (~Q(kind="subject") & Q(before=None)),
                name="revocation_of_subject_has_moment",
            ),
        ]
        indexes = [models.Index(fields=["until"], name="revocation_by_end")]

    def __str__(self) -> str:
        return f"{self.kind} {self.issuer} {self.value}"
