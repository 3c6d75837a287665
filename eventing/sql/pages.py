"""Cursor pagination: a page of a stable order and the cursor of the next page. Opaque to clients."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Model, QuerySet

from eventing.core.errors import InvalidCursor

LIMIT_DEFAULT = 100
LIMIT_MAX = 500  # bound: items of a page; a higher limit is lowered
CURSOR_CHARS_MAX = 600  # the longest name, twice over

Item = TypeVar("Item")
Row = TypeVar("Row", bound=Model)
_SERIAL = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Items of one page; `next` is None on the last. A page may hold fewer items than requested, even none, and have a next."""

    items: list[Item]
    next: str | None


def page_newest(rows: QuerySet[Row], order: str, *, cursor: str | None, limit: int) -> Page[Row]:
    """Read a page of rows with serial ids, newest first. Raises InvalidCursor.

    Args:
        order: name of the order, for its cursors.
    """
    if cursor is not None:
        key = key_of(order, cursor)
        if not _SERIAL.fullmatch(key):
            raise _wrong()
        rows = rows.filter(pk__lt=int(key))
    found = list(rows.order_by("-pk")[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    return Page(found, cursor_of(order, str(found[-1].pk)) if more else None)


def cursor_of(kind: str, key: str) -> str:
    """Make the cursor after `key` in the order called `kind`."""
    return base64.urlsafe_b64encode(f"{kind} {key}".encode()).decode().rstrip("=")


def key_of(kind: str, cursor: str) -> str:
    """Decode the key in `cursor`. Raises InvalidCursor for foreign text and for a cursor of another list."""
    if len(cursor) > CURSOR_CHARS_MAX or not cursor.isascii():
        raise _wrong()
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _wrong() from None
    found, _, key = text.partition(" ")
    if found != kind or not key or "\0" in key:
        raise _wrong()
    return key


def _wrong() -> InvalidCursor:
    return InvalidCursor("Use the `next` of the previous page, with the same filters.")
