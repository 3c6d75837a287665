"""Tokens that this domain has issued lately, as its audit records them: tokens themselves are not stored.

The audit is kept for at least as long as ISSUED_WITHIN (audit/models.py), so the list is complete. Biscuits are not in it:
narrowing one needs no request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from eventing.access.models import Revocation
from eventing.audit.models import RETENTION_DAYS_MIN, AuditEntry
from eventing.audit.selectors import AuditFilter, audit_page
from eventing.conf import config
from eventing.sql.pages import LIMIT_DEFAULT, Page

ISSUED_WITHIN = timedelta(days=RETENTION_DAYS_MIN)
STATES = ("valid", "expired", "revoked")
RUNS_MAX = 10  # bound: pages of the audit that are read for a page of tokens in one state; the page is then short


@dataclass(frozen=True, slots=True)
class TokenIssue:
    """A token that was issued: what it grants, to whom, by whom, and whether it still does.

    Attributes:
        id: its jti.
        ops, rps: operations and patterns of RPs to which it is narrowed, those first stated; None for no narrowing.
        scopes: number of its scopes; None for none.
        audience: the domain for which it is, if another.
        state: one of STATES.
    """

    id: str
    subject: str
    admin: bool
    ops: list[str] | None
    rps: list[str] | None
    scopes: int | None
    audience: str | None
    issued_by: str
    issued_at: datetime
    expires_at: datetime
    state: str


def tokens_issued(
    *, state: str | None = None, cursor: str | None = None, limit: int = LIMIT_DEFAULT, now: datetime | None = None
) -> Page[TokenIssue]:
    """Read a page of the tokens issued within ISSUED_WITHIN, newest first; with `state` only those in it.

    Raises InvalidCursor.
    """
    now = now or timezone.now()
    wanted = AuditFilter(since=now - ISSUED_WITHIN, action="token.create", outcome=AuditEntry.Outcome.OK)
    found: list[TokenIssue] = []
    for _ in range(RUNS_MAX):
        page = audit_page(wanted=wanted, cursor=cursor, limit=limit - len(found))
        found += [one for one in _issues(page.items, now) if state in (None, one.state)]
        cursor = page.next
        if cursor is None or len(found) >= limit:
            break
    return Page(found, cursor)


def _issues(entries: Iterable[AuditEntry], now: datetime) -> list[TokenIssue]:
    rows = list(entries)
    revoked = _revocations(rows, now)
    return [_issue(entry, entry.details, revoked, now) for entry in rows]


def _revocations(entries: list[AuditEntry], now: datetime) -> dict[tuple[str, str], datetime | None]:
    """Return the revocations in force of these tokens, their subjects and their keys: (kind, value) -> `before`."""
    kinds = Revocation.Kind
    covering = (
        Q(kind=kinds.TOKEN, value__in={entry.on_id for entry in entries})
        | Q(kind=kinds.SUBJECT, value__in={entry.details.get("subject", "") for entry in entries})
        | Q(kind=kinds.KEY, value__in={entry.details.get("kid", "") for entry in entries})
    )
    rows = Revocation.objects.filter(covering, issuer=config().domain, lifted=False, until__gt=now)
    return {(kind, value): before for kind, value, before in rows.values_list("kind", "value", "before")}


def _issue(
    entry: AuditEntry, details: Mapping[str, Any], revoked: Mapping[tuple[str, str], datetime | None], now: datetime
) -> TokenIssue:
    subject, scopes = str(details.get("subject", "")), details.get("scopes")
    issued_at = entry.recorded_at.replace(microsecond=0)  # as the token states it
    # Details that were too long for the audit are left out; the token may then be valid for as long as any.
    expires_at = issued_at + timedelta(seconds=details.get("granted_s", config().lease_s_max))
    before = revoked.get(("subject", subject))
    is_revoked = (
        ("token", entry.on_id) in revoked
        or ("key", str(details.get("kid", ""))) in revoked
        or (before is not None and issued_at < before)
    )
    return TokenIssue(
        id=entry.on_id,
        subject=subject,
        admin=bool(details.get("admin")),
        ops=details.get("ops"),
        rps=details.get("rps"),
        scopes=scopes,
        audience=details.get("audience"),
        issued_by=entry.who,
        issued_at=issued_at,
        expires_at=expires_at,
        state="revoked" if is_revoked else "expired" if expires_at <= now else "valid",
    )
