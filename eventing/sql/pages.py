"""Cursor pagination: a page of a stable order and the cursor of the next one. Opaque to clients."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Generic, TypeVar

from eventing.core.errors import InvalidCursor

LIMIT_DEFAULT = 100
LIMIT_MAX = 500
CURSOR_CHARS_MAX = 600  # the longest name, twice over

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Items of one page; `next` is None on the last. A page may hold fewer items than asked, even none, and have a next."""

    items: list[Item]
    next: str | None


def cursor_of(kind: str, key: str) -> str:
    """The cursor that stands after `key` in the order called `kind`."""
    return base64.urlsafe_b64encode(f"{kind} {key}".encode()).decode().rstrip("=")


def key_of(kind: str, cursor: str) -> str:
    """The key in `cursor`. Raises InvalidCursor for text that we never gave, or gave for another list."""
    wrong = InvalidCursor("Use the `next` of the page before, with the same filters.")
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
