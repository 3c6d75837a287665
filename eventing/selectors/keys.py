"""The domain's keys: which one signs now, which ones verify, what is published."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from eventing.models import DomainKey


def _valid(now: datetime) -> QuerySet[DomainKey]:
    return DomainKey.objects.filter(Q(not_after=None) | Q(not_after__gt=now), not_before__lte=now)


def signing_key(now: datetime | None = None) -> dict[str, Any] | None:
    """The private JWK (with `kid`) that signs now: the newest valid one; None before the domain has a key."""
    key = _valid(now or timezone.now()).order_by("-not_before", "kid").first()
    return {**key.private_jwk, "kid": key.kid} if key else None


def verification_keys(now: datetime | None = None) -> dict[str, dict[str, Any]]:
    """Public JWKs by `kid`: all that verify tokens now."""
    return {key.kid: key.public_jwk for key in _valid(now or timezone.now())}


def public_keys(now: datetime | None = None) -> list[dict[str, Any]]:
    """The valid keys as published: JWKs with `kid`, `use` and `alg`, and their window as `nbf` and `exp` (Unix seconds)."""
    return [
        {
            **key.public_jwk,
            "kid": key.kid,
            "use": "sig",
            "alg": "Ed25519",
            "nbf": int(key.not_before.timestamp()),
            **({"exp": int(key.not_after.timestamp())} if key.not_after else {}),
        }
        for key in _valid(now or timezone.now()).order_by("-not_before", "kid")
    ]
