"""Cursor pagination: a page of a stable order and the cursor of the next page. Opaque to clients."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Generic, TypeVar

from eventing.core.errors import InvalidCursor

LIMIT_DEFAULT = 100
LIMIT_MAX = 500  # bound: items of a page; a higher limit is lowered
CURSOR_CHARS_MAX = 600  # the longest name, twice over

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Items of one page; `next` is None on the last. A page may hold fewer items than requested, even none, and have a next."""

    items: list[Item]
    next: str | None


def cursor_of(kind: str, key: str) -> str:
    """Make the cursor after `key` in the order called `kind`."""
    return base64.urlsafe_b64encode(f"{kind} {key}".encode()).decode().rstrip("=")


def key_of(kind: str, cursor: str) -> str:
    """Decode the key in `cursor`. Raises InvalidCursor for foreign text and for a cursor of another list."""
    wrong = InvalidCursor("Use the `next` of the previous page, with the same filters.")
    if len(cursor) > CURSOR_CHARS_MAX or not cursor.isascii():
        raise wrong
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise wrong from None
    found, _, key = text.partition(" ")
    if found != kind or not key or "\0" in key:
        raise wrong
    return key
