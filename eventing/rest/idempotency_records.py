"""Records of idempotency keys: a creation repeated with the same key gets the first answer, for a day.

Life of a record: rest/idempotency_model.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from eventing.core.errors import Conflict, IdempotencyMismatch, InvalidRequest, RateLimited
from eventing.core.ids import canonical_json
from eventing.core.principals import Principal
from eventing.rest.idempotency_model import IdempotencyRecord

KEPT_S = 86_400  # bound: seconds that an idempotency key is stored; the key is discarded
CLAIM_S = 60  # after this a claim whose request never ended may be taken over; longer than any request takes
# Each holds one answer, about 2 KB.
KEYS_PER_PRINCIPAL_MAX = 10_000  # bound: idempotency keys of a principal; 429 `rate-limited`
KEY_CHARS_MAX = 255
PURGE_BATCH = 1000


@dataclass(frozen=True, slots=True)
class IdempotencyClaim:
    """The right to carry out the request with this key."""

    record: int


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """Result of the first request: its answer, or (`status` None, after a crash) only the created resource."""

    record: int
    resource: str
    status: int | None
    body: Any
    headers: Mapping[str, str]


def idempotency_claim(
    *, principal: Principal, key: str, method: str, path: str, body: Mapping[str, Any], now: datetime | None = None
) -> IdempotencyClaim | StoredAnswer:
    """Claim `key` for a request, or return the result of the first request with it.

    Raises InvalidRequest (a key that is not 1 to 255 visible ASCII characters), Conflict (the first is still running),
    IdempotencyMismatch (the key was used for another request), RateLimited (too many keys).
    """
    now = now or timezone.now()
    if not (1 <= len(key) <= KEY_CHARS_MAX and key.isascii() and key.isprintable()):
        raise InvalidRequest(f"Idempotency-Key is 1 to {KEY_CHARS_MAX} visible ASCII characters.")
    who = principal.identity  # not issuer and subject: keys from another JWKS address make another bearer
    digest = hashlib.sha256(canonical_json({"method": method, "path": path, "body": body})).hexdigest()
    claimed_until = now + timedelta(seconds=CLAIM_S)
    fresh = {"digest": digest, "claimed_until": claimed_until, "expires_at": now + timedelta(seconds=KEPT_S)}
    with transaction.atomic():
        IdempotencyRecord.objects.filter(principal=who, key=key, expires_at__lte=now).delete()
        record, created = IdempotencyRecord.objects.select_for_update().get_or_create(
            principal=who, key=key, defaults=fresh
        )
        if created:
            if IdempotencyRecord.objects.filter(principal=who).count() > KEYS_PER_PRINCIPAL_MAX:
                raise RateLimited(
                    "Too many idempotency keys within the last day. Try again later, or send the request without a key.",
                    retry_after_s=3600,
                )
            return IdempotencyClaim(record.pk)
        if record.digest != digest:
            raise IdempotencyMismatch("Use a new Idempotency-Key for another request.")
        if record.resource:
            return StoredAnswer(record.pk, record.resource, record.status, record.body, record.headers)
        if record.claimed_until > now:
            raise Conflict("The first request with this Idempotency-Key is still in progress.", retry_after_s=1)
        record.claimed_until = claimed_until
        record.save(update_fields=["claimed_until"])
        return IdempotencyClaim(record.pk)


def claim_fulfil(claim: IdempotencyClaim, resource: str) -> None:
    """Record the created resource; called in the transaction that makes it.

    Raises Conflict, and so undoes that transaction, if the claim was taken over and fulfilled in the meantime.
    """
    if not IdempotencyRecord.objects.filter(pk=claim.record, resource="").update(resource=resource):
        raise Conflict(
            "Another request with this Idempotency-Key was faster; repeat the request to get its answer.",
            retry_after_s=1,
        )


def idempotency_answer(*, record: int, status: int, body: Any, headers: Mapping[str, str]) -> None:
    """Store the answer for repetitions."""
    IdempotencyRecord.objects.filter(pk=record).update(status=status, body=body, headers=dict(headers))


def idempotency_release(*, claim: IdempotencyClaim) -> None:
    """Release the key after a failure; only success is stored."""
    IdempotencyRecord.objects.filter(pk=claim.record, resource="").delete()


def idempotency_purge(*, now: datetime | None = None) -> int:
    """Remove records that are a day old, at most PURGE_BATCH. Returns their number."""
    late = IdempotencyRecord.objects.filter(expires_at__lte=now or timezone.now()).order_by("expires_at")
    removed, _ = IdempotencyRecord.objects.filter(pk__in=list(late.values_list("pk", flat=True)[:PURGE_BATCH])).delete()
    return removed
