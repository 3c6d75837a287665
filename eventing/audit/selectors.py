"""Reads of the audit: pages, runs of entries for the export, and the check of the chain.

Ids count in the order of commits (audit/services.py), so a reader that continues after an id misses no entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from eventing.audit.models import AuditEntry
from eventing.audit.rules.chain import FIRST, ChainKey
from eventing.core.errors import InvalidCursor
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of

RUN = 500  # entries of one query of an export or a check: a few hundred KB
ID_CHARS_MAX = 18
WORST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filters of entries; None matches everything.

    Attributes:
        since, until: recorded at or after, and before.
        who: the complete identity.
        action: the complete action, or a prefix with `.*`: `rp.*`.
        outcome: ok, refused or failed.
        on: id of the object of the action.
        after: entries with a greater id only.
    """

    since: datetime | None = None
    until: datetime | None = None
    who: str | None = None
    action: str | None = None
    outcome: str | None = None
    on: str | None = None
    after: int | None = None

    def rows(self) -> QuerySet[AuditEntry]:
        """Select the entries, unordered."""
        wanted = Q()
        if self.since is not None:
            wanted &= Q(recorded_at__gte=self.since)
        if self.until is not None:
            wanted &= Q(recorded_at__lt=self.until)
        if self.who is not None:
            wanted &= Q(who=self.who)
        if self.action is not None:
            if self.action.endswith(".*"):
                begin = self.action[:-1]
                wanted &= Q(action__gte=begin, action__lt=begin[:-1] + "/")  # "/" follows "."
            else:
                wanted &= Q(action=self.action)
        if self.outcome is not None:
            wanted &= Q(outcome=self.outcome)
        if self.on is not None:
            wanted &= Q(on_id=self.on)
        if self.after is not None:
            wanted &= Q(id__gt=self.after)
        return AuditEntry.objects.filter(wanted)


def audit_page(
    *, wanted: AuditFilter, oldest_first: bool = False, cursor: str | None = None, limit: int = LIMIT_DEFAULT
) -> Page[AuditEntry]:
    """Read a page of entries, newest first unless `oldest_first`. Raises InvalidCursor."""
    order = "audit-oldest" if oldest_first else "audit-newest"
    rows = wanted.rows().order_by("id" if oldest_first else "-id")
    if cursor is not None:
        key = key_of(order, cursor)
        if not (key.isascii() and key.isdigit() and len(key) <= ID_CHARS_MAX):
            raise InvalidCursor("Use the `next` of the previous page, with the same filters.")
        rows = rows.filter(id__gt=int(key)) if oldest_first else rows.filter(id__lt=int(key))
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    return Page(found, cursor_of(order, str(found[-1].id)) if more else None)


def audit_newest_id() -> int:
    """Return the id of the newest entry; 0 if there is none."""
    return AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0


def audit_run(*, wanted: AuditFilter, after: int, through: int) -> list[AuditEntry]:
    """Read the next RUN entries by id, after `after` and up to `through`; none at the end."""
    return list(wanted.rows().filter(id__gt=after, id__lte=through).order_by("id")[:RUN])


@dataclass(frozen=True, slots=True)
class AuditChainCheck:
    """Result of the check of the chain.

    Attributes:
        entries: number of entries checked.
        first, last: ids of the oldest and newest; 0 if there are none.
        head: the newest entry's seal: stored elsewhere, it later proves whether the end was cut off.
        other_keys: number of entries sealed under another secret key, which cannot be checked.
        wrong: faults found, as sentences, at most WORST_SHOWN.
    """

    entries: int
    first: int
    last: int
    head: str
    other_keys: int
    wrong: list[str]


def audit_check(*, key: ChainKey, head: str | None = None) -> AuditChainCheck:
    """Check the whole chain: no entry was changed, removed or inserted except by a holder of the key, apart from the
    purge.

    The chain alone cannot prove that its newest entries are complete: `head`, the `ID:SEAL` of an earlier check or the
    last line of an earlier export, does.
    """
    count = other = 0
    first: AuditEntry | None = None
    before: AuditEntry | None = None
    wrong: list[str] = []
    for entry in _all_entries():
        if before is None:
            first = entry
            wrong += _wrong_begin(entry)
        elif entry.id != before.id + 1:
            wrong.append(f"Entries {before.id + 1} to {entry.id - 1} are missing.")
        elif entry.previous != before.seal:
            wrong.append(f"Entry {entry.id} does not follow entry {before.id}: one of them was replaced.")
        if not entry.seal.startswith(f"{key.id}."):
            other += 1
        elif not key.holds(entry.seal, entry.previous, entry.content()):
            wrong.append(f"Entry {entry.id} was changed after it was written.")
        before, count = entry, count + 1
        if len(wrong) >= WORST_SHOWN:
            break
    if head is not None and not wrong:
        wrong += _wrong_head(head, first.id if first else 0)
    return AuditChainCheck(
        count,
        first.id if first else 0,
        before.id if before else 0,
        before.seal if before else "",
        other,
        wrong[:WORST_SHOWN],
    )


def _all_entries() -> Iterator[AuditEntry]:
    after, through, everything = 0, audit_newest_id(), AuditFilter()
    while run := audit_run(wanted=everything, after=after, through=through):
        yield from run
        after = run[-1].id


def _wrong_head(head: str, first: int) -> list[str]:
    """Describe the fault if an earlier head is no longer in the chain; a head older than the oldest entry was purged."""
    number, _, seal = head.partition(":")
    if not (number.isascii() and number.isdigit() and len(number) <= ID_CHARS_MAX and seal):
        return ["The head is ID:SEAL, as an earlier check printed it."]
    if int(number) < first:
        return []
    if AuditEntry.objects.filter(id=int(number), seal=seal).exists():
        return []
    return [f"Entry {number} differs from the earlier head: the end of the audit was cut off or rewritten."]


def _wrong_begin(entry: AuditEntry) -> list[str]:
    """Describe the fault of the oldest entry, unless it is the first of all or follows the last one of a purge."""
    if entry.id == 1:
        return [] if entry.previous == FIRST else ["Entry 1 follows another entry, which is impossible."]
    purges = AuditEntry.objects.filter(purged_through=entry.id - 1)
    if any(purge.details.get("seal") == entry.previous for purge in purges):
        return []
    return [f"Entries before {entry.id} are missing, and no purge removed them."]
