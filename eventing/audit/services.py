"""Writing the audit: acts in the transaction of the act, refusals and failures in one of their own.

    with transaction.atomic():
        ... the act ...
        audit_record(action="key.rotate", principal=principal, on=("key", kid))      # last, see below

    audit_record(action="login.failed", outcome=REFUSED, who="ann", reason="The password is wrong.")

The entries form a chain (audit/rules/chain.py), so they are added one after another, under a lock that is held until the
transaction ends: **record last in your transaction**, after every other lock and write. Acts are rare and refusals are
gathered (audit/refusals.py), so nobody waits long.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
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
from eventing.core.errors import HeraldError
from eventing.core.principals import Principal
from eventing.core.request_origin import NO_REQUEST, Origin, current_origin
from eventing.sql.locking import lock_audit

OK, REFUSED, FAILED = AuditEntry.Outcome.OK, AuditEntry.Outcome.REFUSED, AuditEntry.Outcome.FAILED
DETAILS_CHARS_MAX = 2048  # of JSON; larger details are replaced by a note that they were too large
PURGE_BATCH = 10_000  # entries of one purge, which holds the chain's lock: some tenths of a second
DOMAIN = "domain"
"""Who does what nobody asked for: the retention's purge."""


@dataclass(frozen=True, slots=True)
class Act:
    """What is to be recorded; the arguments of `audit_record`."""

    action: str
    outcome: str = OK
    principal: Principal | None = None
    who: str = ""
    on: tuple[str, str] = ("", "")
    error: HeraldError | None = None
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
    error: HeraldError | None = None,
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
        principal: who did it; its identity, issuer and token id are kept. None or anonymous: see `who`.
        who: a name for who is no principal, such as the name given at a login; empty: the client's address, or for a
            command `command:USER`, the user of the server's machine who runs it.
        on: kind and id of what it was done to: ("rp", id), ("subscription", id), ("token", jti), ("key", kid), ("user", name).
        error: why it was refused or failed: its code and detail are kept.
        reason: one sentence, where there is no `error`.
        details: small JSON, such as {"version": [3, 4]}. Never a payload, token, cookie or password.
        origin: where it came from; None: that of the request being served.
    """
    act = Act(action, outcome, principal, who, on, error, reason, details or {}, count, origin, now)
    return audit_record_all([act])[0]


def audit_record_all(acts: Sequence[Act]) -> list[AuditEntry]:
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
    """Remove the entries of days beyond the retention (`HERALD_AUDIT_DAYS`), at most PURGE_BATCH. Returns how many.

    The removal is an entry of its own: it says up to which id, and holds the seal of the last entry removed, to which the
    first one left is chained. Whole days go at once, so that there is one such entry a day.
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
            return 0  # an entry out of order in time stands before; it goes with its day
        last = AuditEntry.objects.get(id=through)
        details = {"first": first.id, "through": through, "seal": last.seal, "before": before.isoformat()}
        act = Act("audit.purge", who=DOMAIN, details=details, origin=NO_REQUEST, at=now, purged_through=through)
        audit_record_all([act])
        with connection.cursor() as cursor:  # the model refuses, and the triggers let this through
            table = connection.ops.quote_name(AuditEntry._meta.db_table)
            cursor.execute(f"DELETE FROM {table} WHERE id <= %s", [through])  # noqa: S608 - our own table's name
    return through - first.id + 1


def chain_key() -> ChainKey:
    """The key that seals the entries of this domain."""
    return ChainKey(str(settings.SECRET_KEY))


def digest(value: Any) -> str:
    """The SHA-256 of JSON that is too long for details: enough to tell which of several known values it was."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@lru_cache(maxsize=1)
def _operator() -> str:
    """Who runs commands on the server's own machine: `command:USER`."""
    try:
        return f"command:{getpass.getuser()}"
    except (KeyError, OSError):  # a user without a name, as in containers
        return f"command:{os.getuid()}"


def _entry(act: Act) -> AuditEntry:
    """The row for an act, with every text within its column's bound."""
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
    """`text` as the column takes it: cut, without NUL (PostgreSQL refuses it) and lone surrogates (no database takes them)."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:chars]


def _details(details: Mapping[str, Any]) -> dict[str, Any]:
    """`details` as plain JSON, bounded."""
    plain: dict[str, Any] = _plain(details)
    if len(json.dumps(plain)) > DETAILS_CHARS_MAX:
        return {"note": f"The details were longer than {DETAILS_CHARS_MAX} characters and are left out."}
    return plain


def _plain(value: Any) -> Any:
    """`value` as JSON that every database keeps as it is: numbers that are no integers become text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return {_text(str(name), TEXT_CHARS): _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(member) for member in value]
    return _text(str(value), DETAILS_CHARS_MAX + 1)
