"""Reads of revocations: increments for processes that hold them in memory, and the list for administrators."""

from __future__ import annotations

import re
from datetime import datetime
from typing import cast

from django.utils import timezone

from eventing.access.models import Revocation
from eventing.access.rules.revocations import Kind, RevocationEntry
from eventing.core.errors import NotFound
from eventing.sql.pages import LIMIT_DEFAULT, Page, page_newest

ENTRIES_AT_ONCE = 5000  # of one query; ~30 ms
_SERIAL = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


def revocation_entries(*, since: int) -> list[RevocationEntry]:
    """Return entries with a serial of at least `since`, by serial, at most ENTRIES_AT_ONCE."""
    rows = Revocation.objects.filter(id__gte=since).order_by("id")
    columns = ("id", "kind", "issuer", "value", "before", "until", "lifted")
    return [
        RevocationEntry(
            serial, cast(Kind, kind), issuer, value, before.timestamp() if before else 0, until.timestamp(), lifted
        )
        for serial, kind, issuer, value, before, until, lifted in rows.values_list(*columns)[:ENTRIES_AT_ONCE]
    ]


def revocation_get(revocation_id: str, *, now: datetime | None = None) -> Revocation:
    """Return the revocation in force with this id. Raises NotFound."""
    row = None
    if _SERIAL.fullmatch(revocation_id):
        row = Revocation.objects.filter(id=int(revocation_id), lifted=False, until__gt=now or timezone.now()).first()
    if row is None:
        raise NotFound("There is no such revocation in force.")
    return row


def revocations_page(
    *,
    kind: str | None = None,
    value: str | None = None,
    cursor: str | None = None,
    limit: int = LIMIT_DEFAULT,
    now: datetime | None = None,
) -> Page[Revocation]:
    """Read a page of the revocations in force, newest first; with `kind` or `value` only those. Raises InvalidCursor."""
    rows = Revocation.objects.filter(lifted=False, until__gt=now or timezone.now()).order_by("-id")
    if kind is not None:
        rows = rows.filter(kind=kind)
    if value is not None:
        rows = rows.filter(value=value)
    return page_newest(rows, "revocation", cursor=cursor, limit=limit)
