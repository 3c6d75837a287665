"""Tables of access: the domain's signing keys with their windows, foreign issuers that policies name, revocations."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from eventing.access.rules.policy_issuers import ADDRESS_CHARS_MAX


class DomainKey(models.Model):
    """One Ed25519 key. `kid` is its RFC 7638 thumbprint; it signs from `not_before` until `not_after` (None: no end yet)."""

    kid = models.CharField(primary_key=True, max_length=64)
    private_jwk = models.JSONField()
    public_jwk = models.JSONField()
    not_before = models.DateTimeField()
    not_after = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(not_after=None) | Q(not_after__gt=F("not_before")), name="key_window_is_open"
            )
        ]

    def __str__(self) -> str:
        return self.kid


class PolicyIssuer(models.Model):
    """An issuer that the policy of one RP names; written with the policy, removed with its RP.

    `jwks` is the address of the keys as the policy states it; empty for the issuer's own discovery. A policy that
    admits anyone has a row with the issuer `anyone`, so that domains without such policies need not check whether
    anonymous clients are admitted.
    """

    rp = models.ForeignKey(
        "eventing.RendezvousPoint", on_delete=models.CASCADE, related_name="policy_issuers", db_index=False
    )
    issuer = models.CharField(max_length=ADDRESS_CHARS_MAX)
    jwks = models.CharField(max_length=ADDRESS_CHARS_MAX, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rp", "issuer", "jwks"], name="policy_issuer_is_named_once")]
        indexes = [models.Index(fields=["issuer", "jwks"], name="policy_issuer_by_name")]

    def __str__(self) -> str:
        return f"{self.issuer} {self.jwks}".rstrip()


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
