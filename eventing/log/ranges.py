"""Ranges of a log as stored, read forwards or backwards: each event with its sequence in its feed and the time of
storing.

For the console's timescale. Readers of events use reader.py, which returns the published bytes only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from eventing.log.scripts import NoLog
from eventing.store import keys
from eventing.store.client import client

ENTRIES_MAX = 500  # entries of one range: a page shows ten ranges per lane
BYTES_MAX = 2 * 1024 * 1024  # bytes of events in one range; one event is always returned
_ENTRIES_AT_ONCE = 50  # entries of one round trip: at most 50 of the largest events beyond BYTES_MAX are read in vain


class LogEntry(NamedTuple):
    """An event of a log.

    Attributes:
        offset: offset in the log.
        stored_ms: time of storing, Unix milliseconds by Redis' clock.
        feed_key, sequence: position in its feed; OWN for the log's own feed.
        body: exact bytes of the event.
    """

    offset: int
    stored_ms: int
    feed_key: str
    sequence: int
    body: bytes


class LogRange(NamedTuple):
    """Consecutive events, the oldest first, and the log's extent at that time: offsets `first` to `next` - 1 were held."""

    epoch: str
    first: int
    next: int
    entries: list[LogEntry]


def range_after(rp: str, offset: int, limit: int) -> LogRange:
    """Read the events after `offset`, at most `limit`. Raises NoLog."""
    return _read(rp, limit, after=offset)


def range_before(rp: str, offset: int | None, limit: int) -> LogRange:
    """Read the last events before `offset`, at most `limit`; None for the end of the log. Raises NoLog."""
    return _read(rp, limit, before=offset)


def _extent(rp: str) -> tuple[str, int, int]:
    log, meta = keys.log_keys(rp)[:2]
    with client().pipeline(transaction=True) as pipeline:
        pipeline.hmget(meta, "e", "n")
        pipeline.xlen(log)
        (epoch, after), length = pipeline.execute()
    if epoch is None:
        raise NoLog
    return epoch.decode(), int(after) - length, int(after)


def _read(rp: str, limit: int, *, after: int | None = None, before: int | None = None) -> LogRange:
    epoch, first, next_ = _extent(rp)
    limit = min(limit, ENTRIES_MAX)
    found: list[LogEntry] = []
    size = 0
    place = after + 1 if after is not None else (next_ if before is None else before) - 1
    while len(found) < limit:
        count = min(_ENTRIES_AT_ONCE, limit - len(found))
        some = _some(rp, place, count, backwards=after is None)
        for entry in some:
            size += len(entry.body)
            if found and size > BYTES_MAX:
                return _range(epoch, first, next_, found)
            found.append(entry)
        if len(some) < count:
            break
        place = some[-1].offset + (1 if after is not None else -1)
    return _range(epoch, first, next_, found)


def _range(epoch: str, first: int, next_: int, found: list[LogEntry]) -> LogRange:
    entries = sorted(found)
    newest = entries[-1].offset + 1 if entries else next_
    return LogRange(
        epoch, first, max(next_, newest), entries
    )  # events may have been appended since the extent was read


def _some(rp: str, place: int, count: int, *, backwards: bool) -> list[LogEntry]:
    log = keys.log_keys(rp)[0]
    if backwards:
        answer: Any = client().xrevrange(log, max=place, count=count) if place > 0 else []
    else:
        answer = client().xrange(log, min=place, count=count)
    return [_entry(name, fields) for name, fields in answer]


def _entry(name: bytes, fields: dict[bytes, bytes]) -> LogEntry:
    offset, stored_ms = map(int, name.split(b"-"))
    feed, sequence = fields.get(b"f", b"").decode(), int(fields.get(b"s", offset))
    return LogEntry(offset, stored_ms, feed, sequence, fields[b"e"])
