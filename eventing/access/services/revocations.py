"""Revocation of tokens, subjects and keys before they expire, and its announcement to all gateways.

The announcement is only the fast path: every gateway reads SQL anyway (gateway/delivery/revocation.py). A thread of its
own therefore makes the announcement and gives up quickly: while Redis is unreachable, no caller waits for it.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from django.db import transaction
from django.utils import timezone

from eventing.access.models import ISSUER_CHARS_MAX, REASON_CHARS_MAX, VALUE_CHARS_MAX, DomainKey, Revocation
from eventing.access.rules import revocations as core
from eventing.access.selectors.revocations import revocation_get
from eventing.access.shapes import RevocationAnswer
from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, QuotaExceeded
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.core.roles import operates
from eventing.log import control
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.sql.locking import lock_domain
from eventing.store.errors import RedisError

# All of them take 40 MB of each process; ended ones are purged first.
REVOCATIONS_MAX = 100_000  # bound: revocations in force; 503 until some have ended
REVOCATIONS_BY_BEARERS_MAX = REVOCATIONS_MAX // 2  # beyond it only administrators revoke: nobody can use up their room
LIFTED_S = 3600  # retention of a lifted row; every process reads all rows again far more often
LONGEST_S = 366 * 86_400  # no token of this domain was ever granted a longer lease: the upper end of HERALD_LEASE_S_MAX
FOREIGN_S = 10 * LONGEST_S  # assumed for foreign issuers' tokens, whose expiry is unknown
PURGE_BATCH = 1000
log = logging.getLogger(__name__)
Kind = Revocation.Kind


@dataclass(frozen=True, slots=True)
class Revoked:
    """A revocation in force; `made` is True if this call made it."""

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
    """Revoke a token or a key by its id, or all tokens issued to a subject until now.

    Repeating the call for a token or a key changes nothing; for a subject it moves the time to now. A revoked key of
    this domain no longer signs.

    Args:
        principal: an administrator, or the bearer for its own token.
        kind: one of KINDS in access/rules/revocations.py.
        value: the token's `jti`, the subject, or the key's `kid`.
        issuer: issuer (ISSUER|JWKS if a policy names the keys' address); None for this domain.
        reason: explanation for administrators.

    Raises InvalidRequest, Forbidden, NotFound (no such key of this domain), QuotaExceeded.
    """
    now = now or timezone.now()
    issuer = config().domain if issuer is None else issuer
    _check(kind, value, issuer, reason)
    own = _is_own(principal, kind, issuer, value)
    if not own and (kind == Kind.KEY or not operates(principal)):  # an operator revokes tokens, not the domain's keys
        require_revoker(principal)
    local = issuer == config().domain
    if kind == Kind.KEY and local and not DomainKey.objects.filter(kid=value).exists():
        raise NotFound("This domain has no key with this kid. For a foreign key, state its issuer.")
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
    """Lift the revocation of a subject: its tokens are valid again until they expire.

    Raises Forbidden, NotFound, Conflict (the revocation of a token or a key cannot be lifted).
    """
    now = now or timezone.now()
    require_revoker(principal)
    with change(now, patient=False) as outbox:
        lock_domain()
        row = revocation_get(revocation_id, now=now)
        if row.kind != Kind.SUBJECT:
            raise Conflict("The revocation of a token or a key cannot be lifted, only that of a subject.")
        data = {"revocation": revocation_data(row), "by": principal.identity}
        row.delete()
        row.pk = None
        row.lifted, row.by, row.created_at = True, principal.identity, now
        row.until = now + timedelta(seconds=LIFTED_S)
        row.save(force_insert=True)
        transaction.on_commit(announce, robust=True)
        outbox.event(events.REVOCATION_LIFTED, DOMAIN_ADMIN, data)
        outbox.act("revocation.lift", principal, row.kind, row.value, issuer=row.issuer)


def revocation_data(row: Revocation) -> RevocationAnswer:
    """Describe a revocation for events and answers."""
    return RevocationAnswer.of(row, id=str(row.pk))


def revocations_purge(*, now: datetime | None = None) -> int:
    """Remove rows that have ended, at most PURGE_BATCH, oldest first. Returns their number."""
    return _purge(now or timezone.now())


def require_revoker(principal: Principal) -> None:
    """Raise Forbidden unless the principal is an administrator whose token is not narrowed."""
    if not principal.admin or principal.narrowed:
        raise Forbidden("Lifting revocations requires an administrator's token that is not narrowed.")


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
    """Return True if it is the principal's own token. A narrowed token may be another holder's copy of the original."""
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
            f"The domain stores at most {rows_max} revocations. Revoke a subject or a key instead of single tokens.",
            limit=rows_max,
        )


def _purge(now: datetime) -> int:
    ended = Revocation.objects.filter(until__lte=now).order_by("until").values_list("pk", flat=True)[:PURGE_BATCH]
    removed, _ = Revocation.objects.filter(pk__in=list(ended)).delete()
    return removed


# Announcements


@per_process
def _announcer() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="revocation-announcer")


_announcing = per_process(Lock)
"""Held while an announcement waits for its turn, which is of everything committed until then."""


def announce() -> None:
    """Notify all gateways of changed revocations. Returns at once; a failure is logged."""
    if _announcing().acquire(blocking=False):
        _announcer().submit(_announce, config().effective_redis_url)


def _announce(url: str) -> None:
    _announcing().release()
    try:
        control.announce_revocations(url)
    except (RedisError, OSError) as error:
        log.warning("A revocation was not announced (%s); gateways find it by reading SQL.", error)
