"""Replay of rows as events: due times, rendezvous points, batches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from herald.events import JsonEvent
from herald.rows import Row

BATCH_EVENTS_MAX = 100
BATCH_CHARS_MAX = 512 * 1024  # approximate, all RPs together; a domain accepts 4 MiB per publish by default
GATHERED_EVENTS_MAX = 1000
SEGMENT_CHARS_MAX = 64  # of a part of a name (docs/protocol.md)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._~-]+")


class Pace:
    """Due times of rows: `speed` seconds of their time pass in one real second; None for as fast as possible.

    The first row is due at once. After a stall the rows are late and catch up; their order never changes.
    """

    def __init__(self, speed: float | None, now: float) -> None:
        self._speed = speed
        self._begun = now
        self._first: datetime | None = None

    def due_in(self, moment: datetime, now: float) -> float:
        """Return the seconds until a row of `moment` is due; 0 or less if it is."""
        if self._first is None:
            self._first = moment
        if self._speed is None:
            return 0.0
        return self._begun + (moment - self._first).total_seconds() / self._speed - now


def rp_segments(row: Row, columns: Sequence[str]) -> str | None:
    """Return the part of the RP's name from the row's `columns`, such as `JFK` or `JFK/UA`; None if one is empty."""
    segments = []
    for column in columns:
        value = row.get(column)
        segment = "" if value is None else _NOT_IN_NAMES.sub("-", str(value).strip())[:SEGMENT_CHARS_MAX]
        if segment.strip(".-") == "":
            return None
        segments.append(segment)
    return "/".join(segments)


class Batches:
    """Events gathered per RP, so that rows due together are sent together. Order is kept within each RP."""

    def __init__(self) -> None:
        self._events: dict[str, list[JsonEvent]] = {}
        self._count = 0
        self._chars = 0

    def add(self, rp: str, event: JsonEvent) -> bool:
        """Add an event; return True if the batches have to be drained now."""
        batch = self._events.setdefault(rp, [])
        batch.append(event)
        self._count += 1
        self._chars += _size(event["data"])
        return len(batch) >= BATCH_EVENTS_MAX or self._count >= GATHERED_EVENTS_MAX or self._chars >= BATCH_CHARS_MAX

    def drain(self) -> list[tuple[str, list[JsonEvent]]]:
        """Return and remove everything gathered, per RP."""
        events, self._events = self._events, {}
        self._count = self._chars = 0
        return list(events.items())


def _size(row: Row) -> int:
    """Return the approximate number of characters of a row, at little cost."""
    return sum(
        len(name)
        + (len(value) if isinstance(value, str) else (len(str(value)) if isinstance(value, list | dict) else 12))
        for name, value in row.items()
    )
