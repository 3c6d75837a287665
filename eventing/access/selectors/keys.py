"""Reads of the domain's keys: the signing one, the verifying ones, the published ones."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from eventing.access.models import DomainKey
from eventing.sql.remembered import remembered

NEWEST_FIRST = ("-not_before", F("not_after").desc(nulls_first=True), "kid")


def _running(now: datetime) -> QuerySet[DomainKey]:
    return DomainKey.objects.filter(Q(not_after=None) | Q(not_after__gt=now)).order_by(*NEWEST_FIRST)


def is_prepared() -> bool:
    """Return True if the domain has a key, as every database has after its first start."""
    return DomainKey.objects.exists()


def signing_key(now: datetime | None = None) -> dict[str, Any] | None:
    """Return the private JWK that signs now, the newest that has begun; None before the domain has a key.

    Additional members: `kid`, and if its end is known, `exp` (Unix seconds): no token may outlive the key.
    """
    now = now or timezone.now()
    begun = (key for key in _all() if key.not_before <= now and (key.not_after is None or key.not_after > now))
    key = next(begun, None)
    return {**key.private_jwk, "kid": key.kid, **_end(key)} if key else None


@remembered
def _all() -> list[DomainKey]:
    """Return all keys, the newest first. They are few: only rotations make them."""
    return list(DomainKey.objects.order_by(*NEWEST_FIRST))


def verification_keys(now: datetime | None = None) -> dict[str, dict[str, Any]]:
    """Return public JWKs by `kid`: all that have not ended, with their windows as `nbf` and `exp` (Unix seconds).

    They include published keys that do not sign yet, so that verifiers know them in time.
    """
    return {key.kid: {**key.public_jwk, **_begin(key), **_end(key)} for key in _running(now or timezone.now())}


def public_keys(now: datetime | None = None) -> list[dict[str, Any]]:
    """Return the keys as published: JWKs with `kid`, `use` and `alg`, and their window as `nbf` and `exp` (Unix seconds)."""
    return [
        {**key.public_jwk, "kid": key.kid, "use": "sig", "alg": "Ed25519", **_begin(key), **_end(key)}
        for key in _running(now or timezone.now())
    ]


def key_get(kid: str) -> DomainKey | None:
    """Return one key; None if there is none."""
    return DomainKey.objects.filter(kid=kid).first()


def keys_running(now: datetime, *, lock: bool = False) -> list[DomainKey]:
    """Return all keys that have not ended, newest first."""
    rows = _running(now)
    return list(rows.select_for_update() if lock else rows)


def keys_latest(limit: int) -> list[DomainKey]:
    """Return the newest keys, including ended ones, newest first."""
    return list(DomainKey.objects.order_by("-not_before", "kid")[:limit])


def _begin(key: DomainKey) -> dict[str, int]:
    return {"nbf": int(key.not_before.timestamp())}


def _end(key: DomainKey) -> dict[str, int]:
    return {"exp": int(key.not_after.timestamp())} if key.not_after else {}
