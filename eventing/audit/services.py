"""Writing of the audit: acts in the transaction of the act, refusals and failures in a transaction of their own.

    with transaction.atomic():
        ... the act ...
        audit_record(action="key.rotate", principal=principal, on=("key", kid))      # last, see below

    audit_record(action="login.failed", outcome=REFUSED, who="ann", reason="The password is wrong.")

The entries form a chain (audit/rules/chain.py), so they are added one after another, under a lock that is held until
the transaction ends: **record last in your transaction**, after every other lock and write. Acts are rare and refusals
are gathered (audit/refusals.py), so nobody waits long.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from eventing.audit.models import (
    ACTION_CHARS,
    ADDRESS_CHARS,
    KIND_CHARS,
    REQUEST_ID_CHARS,
    TEXT_CHARS,
    WHO_CHARS,
    AuditEntry,
)
from eventing.audit.rules.chain import FIRST, ChainKey
from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.errors import ApplicationError
from eventing.core.principals import Principal
from eventing.core.request_origin import NO_REQUEST, Origin, current_origin
from eventing.sql.locking import lock_audit

OK, REFUSED, FAILED = AuditEntry.Outcome.OK, AuditEntry.Outcome.REFUSED, AuditEntry.Outcome.FAILED
# Compact JSON.
DETAILS_CHARS_MAX = 2048  # bound: characters of an entry's details; the details are left out, with a note
# bound: entries removed by one purge; the others are left to the next purge; a sweep runs purges for up to 4 s
# A purge holds the chain's lock for some tenths of a second.
PURGE_BATCH = 10_000
DOMAIN = "domain"
"""Actor recorded for automatic acts such as the retention's purge."""


@dataclass(frozen=True, slots=True)
class AuditAct:
    """An act to be recorded; fields as the arguments of `audit_record`."""

    action: str
    outcome: str = OK
    principal: Principal | None = None
    who: str = ""
    on: tuple[str, str] = ("", "")
    error: ApplicationError | None = None
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1
    origin: Origin | None = None
    at: datetime | None = None
    purged_through: int | None = None


def audit_record(
    *,
    action: str,
    outcome: str = OK,
    principal: Principal | None = None,
    who: str = "",
    on: tuple[str, str] = ("", ""),
    error: ApplicationError | None = None,
    reason: str = "",
    details: Mapping[str, Any] | None = None,
    count: int = 1,
    origin: Origin | None = None,
    now: datetime | None = None,
) -> AuditEntry:
    """Add one entry. Within a transaction it is kept or dropped with it; call it last there.

    Args:
        action: stable dotted name, OBJECT.VERB: `rp.create`, `login`, `login.failed`.
        outcome: OK, REFUSED or FAILED.
        principal: the actor, whose identity, issuer and token id are recorded. None or anonymous: see `who`.
        who: name of an actor that is not a principal, such as the name given at a login; empty: the client's address,
            or for a command `command:USER` with the user who runs it on the server's machine.
        on: kind and id of the object: ("rp", id), ("subscription", id), ("token", jti), ("key", kid), ("user", name).
        error: cause of the refusal or failure, whose code and detail are recorded.
        reason: one sentence, where there is no `error`.
        details: small JSON, such as {"version": [3, 4]}. Never a payload, token, cookie or password.
        origin: origin of the act; None: that of the current request.
    """
    act = AuditAct(action, outcome, principal, who, on, error, reason, details or {}, count, origin, now)
    return audit_record_all([act])[0]


def audit_record_all(acts: Sequence[AuditAct]) -> list[AuditEntry]:
    """Add several entries, in order."""
    if not acts:
        return []
    with transaction.atomic(savepoint=False):
        lock_audit()
        last = AuditEntry.objects.order_by("-id").only("id", "seal").first()
        number, seal = (last.id, last.seal) if last is not None else (0, FIRST)
        key, entries = chain_key(), []
        for act in acts:
            number += 1
            entry = _entry(act)
            entry.id, entry.previous = number, seal
            entry.seal = seal = key.seal(seal, entry.content())
            entries.append(entry)
        AuditEntry.objects.bulk_create(entries)
    return entries


def audit_purge(*, now: datetime | None = None) -> int:
    """Remove the entries of days beyond the retention (`HERALD_AUDIT_DAYS`), at most PURGE_BATCH. Returns their number.

    The removal is an entry itself: it has the greatest id removed and the seal of that entry, to which the oldest
    remaining one is chained. Whole days are removed at once, so that there is one such entry a day.
    """
    now = now or timezone.now()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    before = today - timedelta(days=config().audit_days)
    with transaction.atomic():
        lock_audit()
        first = AuditEntry.objects.order_by("id").first()
        if first is None or first.recorded_at >= before:
            return 0
        kept = AuditEntry.objects.filter(recorded_at__gte=before).order_by("id").first()
        newest = AuditEntry.objects.order_by("-id").values_list("id", flat=True)[0]
        through = min(first.id + PURGE_BATCH - 1, newest if kept is None else kept.id - 1)
        if through < first.id:
            return 0  # an entry out of order in time precedes; it is removed with its day
        last = AuditEntry.objects.get(id=through)
        details = {"first": first.id, "through": through, "seal": last.seal, "before": before.isoformat()}
        act = AuditAct("audit.purge", who=DOMAIN, details=details, origin=NO_REQUEST, at=now, purged_through=through)
        audit_record_all([act])
        with connection.cursor() as cursor:  # the model refuses the deletion, and the triggers allow it
            table = connection.ops.quote_name(AuditEntry._meta.db_table)
            cursor.execute(f"DELETE FROM {table} WHERE id <= %s", [through])  # noqa: S608 - our own table's name
    return through - first.id + 1


def chain_key() -> ChainKey:
    """Return the key that seals the entries of this domain."""
    return ChainKey(str(settings.SECRET_KEY))


def digest(value: Any) -> str:
    """Compute the SHA-256 of JSON that is too long for details: enough to identify one of several known values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@per_process
def _operator() -> str:
    """Name the user who runs a command on the server's machine: `command:USER`."""
    try:
        return f"command:{getpass.getuser()}"
    except (KeyError, OSError):  # a user without a name, as in containers
        return f"command:{os.getuid()}"


def _entry(act: AuditAct) -> AuditEntry:
    """Make the row of an act, with every text within its column's bound."""
    origin = act.origin or current_origin.get()
    if act.outcome != OK and origin is not NO_REQUEST:
        origin.refusal_recorded = True
    principal = act.principal if act.principal is not None and not act.principal.anonymous else None
    who = principal.identity if principal is not None else act.who or origin.address or _operator()
    return AuditEntry(
        recorded_at=act.at or timezone.now(),
        who=_text(who, WHO_CHARS),
        issuer=_text(principal.issuer if principal else "", TEXT_CHARS),
        token_id=_text(principal.token_id if principal else "", TEXT_CHARS),
        via=_text(origin.via, KIND_CHARS),
        action=_text(act.action, ACTION_CHARS),
        on_kind=_text(act.on[0], KIND_CHARS),
        on_id=_text(act.on[1], TEXT_CHARS),
        outcome=act.outcome,
        problem=_text(act.error.code if act.error else "", KIND_CHARS),
        reason=_text(act.error.detail if act.error else act.reason, TEXT_CHARS),
        count=act.count,
        address=_text(origin.address, ADDRESS_CHARS),
        request_id=_text(origin.request_id, REQUEST_ID_CHARS),
        details=_details(act.details),
        purged_through=act.purged_through,
    )


def _text(text: str, chars: int) -> str:
    """Make `text` acceptable for a column: cut, without NUL (PostgreSQL refuses it) and lone surrogates (every database
    refuses them)."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:chars]


def _details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Make `details` plain, bounded JSON."""
    plain: dict[str, Any] = _plain(details)
    if len(json.dumps(plain)) > DETAILS_CHARS_MAX:
        return {"note": f"The details were longer than {DETAILS_CHARS_MAX} characters and are left out."}
    return plain


def _plain(value: Any) -> Any:
    """Make `value` JSON that every database stores unchanged: numbers that are not integers become text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return {_text(str(name), TEXT_CHARS): _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(member) for member in value]
    return _text(str(value), DETAILS_CHARS_MAX + 1)
