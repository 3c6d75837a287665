"""Revoking tokens, subjects and keys before they end by themselves, and announcing it to all gateways.

The announcement is only the fast path: every gateway looks at SQL anyway (gateway/delivery/revocation.py). It is therefore made by a
thread of its own that gives up quickly: while Redis is away, nobody waits for it.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from threading import Lock
from typing import Any

import redis
from django.db import transaction
from django.utils import timezone
from redis.exceptions import RedisError

from eventing.access.models import DomainKey, Revocation
from eventing.access.models.revocation import ISSUER_CHARS_MAX, REASON_CHARS_MAX, VALUE_CHARS_MAX
from eventing.access.rules import revocations as core
from eventing.access.selectors.revocations import revocation_get
from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, QuotaExceeded
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.core.roles import operates
from eventing.core.timestamps import timestamp
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.sql.locking import lock_domain
from eventing.store import keys

REVOCATIONS_MAX = 100_000  # rows, 40 MB in each process; beyond it the ended are purged, else it is refused
REVOCATIONS_BY_BEARERS_MAX = REVOCATIONS_MAX // 2  # beyond it only administrators revoke: nobody can use up their room
LIFTED_S = 3600  # a lifted row stays so long for processes to see it; any reads all anew far more often
LONGEST_S = 366 * 86_400  # no token of ours was ever granted more: the upper end of HERALD_LEASE_S_MAX
FOREIGN_S = 10 * LONGEST_S  # we do not know when a foreign issuer's tokens end
PURGE_BATCH = 1000
ANNOUNCE_S = 1.0  # for Redis to take an announcement
log = logging.getLogger(__name__)
Kind = Revocation.Kind


@dataclass(frozen=True, slots=True)
class Revoked:
    """A revocation in force; `made` is whether this call made it."""

    row: Revocation
    made: bool


def revocation_create(
    *,
    principal: Principal,
    kind: str,
    value: str,
    issuer: str | None = None,
    reason: str = "",
    now: datetime | None = None,
) -> Revoked:
    """Revoke a token or a key by its id, or all tokens that a subject was issued before this moment.

    Repeating it for a token or a key changes nothing; for a subject it moves the moment to now. A revoked key of this
    domain signs no more.

    Args:
        principal: an administrator; the bearer, for the very token that was shown.
        kind: of core.access.revocations.KINDS.
        value: the token's `jti`, the subject, or the key's `kid`.
        issuer: who issued it (ISSUER|JWKS if a policy names the keys' address); None for this domain.
        reason: for administrators to read.

    Raises InvalidRequest, Forbidden, NotFound (no such key of this domain), QuotaExceeded.
    """
    now = now or timezone.now()
    issuer = config().domain if issuer is None else issuer
    _check(kind, value, issuer, reason)
    own = _is_own(principal, kind, issuer, value)
    if not own and (kind == Kind.KEY or not operates(principal)):  # an operator ends tokens, not the domain's keys
        require_revoker(principal)
    local = issuer == config().domain
    if kind == Kind.KEY and local and not DomainKey.objects.filter(kid=value).exists():
        raise NotFound("This domain has no key with this kid. Name the issuer of a foreign key.")
    with change(now, patient=False) as outbox:
        lock_domain()
        known = Revocation.objects.filter(kind=kind, issuer=issuer, value=value).first()
        if known is not None and not known.lifted and known.until > now and kind != Kind.SUBJECT:
            return Revoked(known, False)
        if known is None:
            _make_room(now, REVOCATIONS_MAX if not own else REVOCATIONS_BY_BEARERS_MAX)
        else:
            known.delete()
        if kind == Kind.KEY and local:
            _retire(value, now)
        before = core.moment(now.timestamp(), local=local)
        row = Revocation.objects.create(
            kind=kind,
            issuer=issuer,
            value=value,
            reason=reason,
            by=principal.identity,
            before=datetime.fromtimestamp(before, tz=now.tzinfo) if kind == Kind.SUBJECT else None,
            created_at=now,
            until=_until(principal if own else None, local, now),
        )
        transaction.on_commit(announce, robust=True)
        outbox.event(events.REVOCATION_MADE, DOMAIN_ADMIN, {"revocation": revocation_data(row)})
        outbox.act("revocation.create", principal, kind, value, issuer=issuer, reason=reason)
    return Revoked(row, True)


def revocation_lift(*, principal: Principal, revocation_id: str, now: datetime | None = None) -> None:
    """Take back the revocation of a subject: its tokens are good again until they end.

    Raises Forbidden, NotFound, Conflict (a token or a key stays revoked).
    """
    now = now or timezone.now()
    require_revoker(principal)
    with change(now, patient=False) as outbox:
        lock_domain()
        row = revocation_get(revocation_id, now=now)
        if row.kind != Kind.SUBJECT:
            raise Conflict("A token or a key stays revoked; only the revocation of a subject can be lifted.")
        data = {"revocation": revocation_data(row), "by": principal.identity}
        row.delete()
        row.pk = None
        row.lifted, row.by, row.created_at = True, principal.identity, now
        row.until = now + timedelta(seconds=LIFTED_S)
        row.save(force_insert=True)
        transaction.on_commit(announce, robust=True)
        outbox.event(events.REVOCATION_LIFTED, DOMAIN_ADMIN, data)
        outbox.act("revocation.lift", principal, row.kind, row.value, issuer=row.issuer)


def revocation_data(row: Revocation) -> dict[str, Any]:
    """A revocation as its events and answers show it."""
    return {
        "id": str(row.pk),
        "kind": row.kind,
        "issuer": row.issuer,
        "value": row.value,
        "reason": row.reason,
        "by": row.by,
        "before": None if row.before is None else timestamp(row.before),
        "created_at": timestamp(row.created_at),
        "until": timestamp(row.until),
    }


def revocations_purge(*, now: datetime | None = None) -> int:
    """Remove rows that have ended, at most PURGE_BATCH, oldest first. Returns how many."""
    return _purge(now or timezone.now())


def require_revoker(principal: Principal) -> None:
    """Raises Forbidden for all but administrators whose token is not narrowed."""
    if not principal.admin or principal.narrowed:
        raise Forbidden("Only an administrator's token that is not narrowed lifts revocations.")


def _check(kind: str, value: str, issuer: str, reason: str) -> None:
    if kind not in Kind.values:
        raise InvalidRequest(f"kind is one of {', '.join(Kind.values)}.")
    for name, text, low, high in (
        ("value", value, 1, VALUE_CHARS_MAX),
        ("issuer", issuer, 1, ISSUER_CHARS_MAX),
        ("reason", reason, 0, REASON_CHARS_MAX),
    ):
        if not low <= len(text) <= high or "\0" in text:
            raise InvalidRequest(f"{name} is a text of {low} to {high} characters.")


def _is_own(principal: Principal, kind: str, issuer: str, value: str) -> bool:
    """Whether it is the token that was shown. One with conditions added may be somebody else's copy of the original."""
    shown = (core.issuer_of(principal), principal.token_id)
    return kind == Kind.TOKEN and bool(value) and (issuer, value) == shown and principal.restriction is None


def _until(own: Principal | None, local: bool, now: datetime) -> datetime:
    longest = now + timedelta(seconds=LONGEST_S if local else FOREIGN_S)
    if own is None:
        return longest
    return min(longest, datetime.fromtimestamp(min(own.expires_at, longest.timestamp()), tz=now.tzinfo))


def _retire(kid: str, now: datetime) -> None:
    """End the key's window, so that another one signs."""
    key = DomainKey.objects.select_for_update().filter(kid=kid).first()
    if key is not None and (key.not_after is None or key.not_after > now):
        key.not_after = max(now, key.not_before + timedelta(microseconds=1))
        key.save(update_fields=["not_after"])


def _make_room(now: datetime, rows_max: int) -> None:
    if Revocation.objects.count() < rows_max:
        return
    _purge(now)
    if Revocation.objects.count() >= rows_max:
        raise QuotaExceeded(
            f"The domain keeps at most {rows_max} revocations. Revoke a subject or a key instead of single tokens.",
            limit=rows_max,
        )


def _purge(now: datetime) -> int:
    ended = Revocation.objects.filter(until__lte=now).order_by("until").values_list("pk", flat=True)[:PURGE_BATCH]
    removed, _ = Revocation.objects.filter(pk__in=list(ended)).delete()
    return removed


# Announcing


@lru_cache(maxsize=1)
def _announcer() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="revocation-announcer")


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=ANNOUNCE_S, socket_connect_timeout=ANNOUNCE_S, protocol=2)


_announcing = Lock()  # held while an announcement waits for its turn: it will tell of everything committed until then


def announce() -> None:
    """Have all gateways look at the revocations soon. Returns at once; a failure is a line in the log."""
    if _announcing.acquire(blocking=False):
        _announcer().submit(_announce, config().effective_redis_url)


def _announce(url: str) -> None:
    _announcing.release()
    try:
        _client(url).publish(keys.REVOCATION_CHANNEL, "")
    except (RedisError, OSError) as error:
        log.warning("A revocation was not announced (%s); gateways find it by themselves.", error)
