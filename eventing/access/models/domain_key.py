"""The domain's signing keys with their validity windows."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q


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
