"""A stretch of a log as it is stored, read forwards or backwards: each event with its place in its feed and when it was stored.

For who looks back: the console's timescale. Readers have reader.py, which gives what was published and no more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from eventing.log import scripts
from eventing.log.control import call, client
from eventing.log.scripts import NoLog
from eventing.store import keys

ENTRIES_MAX = 500  # entries of one stretch: what a page holds of a lane is ten of these
BYTES_MAX = 2 * 1024 * 1024  # bytes of events of one stretch; one event is always given
_ENTRIES_AT_ONCE = 50  # of one round trip: at most 50 of the largest events beyond BYTES_MAX are read in vain


class Entry(NamedTuple):
    """An event of a log.

    Attributes:
        offset: in the log.
        stored_ms: when it was stored, Unix milliseconds by Redis' clock.
        feed_key, sequence: its place in its feed; OWN for the log's own.
        body: its exact bytes.
    """

    offset: int
    stored_ms: int
    feed_key: str
    sequence: int
    body: bytes


class Stretch(NamedTuple):
    """Consecutive events, the oldest first, and the extent of the log then: offsets `first` to `next` - 1 were held."""

    epoch: str
    first: int
    next: int
    entries: list[Entry]


def stretch_after(rp: str, offset: int, limit: int) -> Stretch:
    """The events that follow `offset`, at most `limit`. Raises NoLog."""
    return _read(rp, limit, after=offset)


def stretch_before(rp: str, offset: int | None, limit: int) -> Stretch:
    """The events before `offset`, the newest of them, at most `limit`; None for before the next one. Raises NoLog."""
    return _read(rp, limit, before=offset)


def offset_at(rp: str, moment_ms: int) -> int:
    """The first event held that was stored at `moment_ms` or later; the next offset if none was. Raises NoLog."""
    _, first, after = _extent(rp)
    low, high = first, after
    while low < high:
        middle = (low + high) // 2
        stored = call(scripts.STORED_AT, [1, keys.log_keys(rp)[0], middle])
        if stored is None or int(stored) < moment_ms:  # what was trimmed meanwhile was older
            low = middle + 1
        else:
            high = middle
    return low


def _extent(rp: str) -> tuple[str, int, int]:
    log, meta = keys.log_keys(rp)[:2]
    with client().pipeline(transaction=True) as pipeline:
        pipeline.hmget(meta, "e", "n")
        pipeline.xlen(log)
        (epoch, after), length = pipeline.execute()
    if epoch is None:
        raise NoLog
    return epoch.decode(), int(after) - length, int(after)


def _read(rp: str, limit: int, *, after: int | None = None, before: int | None = None) -> Stretch:
    epoch, first, next_ = _extent(rp)
    limit = min(limit, ENTRIES_MAX)
    found: list[Entry] = []
    size = 0
    place = after + 1 if after is not None else (next_ if before is None else before) - 1
    while len(found) < limit:
        count = min(_ENTRIES_AT_ONCE, limit - len(found))
        some = _some(rp, place, count, backwards=after is None)
        for entry in some:
            size += len(entry.body)
            if found and size > BYTES_MAX:
                return _stretch(epoch, first, next_, found)
            found.append(entry)
        if len(some) < count:
            break
        place = some[-1].offset + (1 if after is not None else -1)
    return _stretch(epoch, first, next_, found)


def _stretch(epoch: str, first: int, next_: int, found: list[Entry]) -> Stretch:
    entries = sorted(found)
    newest = entries[-1].offset + 1 if entries else next_
    return Stretch(epoch, first, max(next_, newest), entries)  # more may have come since the extent was read


def _some(rp: str, place: int, count: int, *, backwards: bool) -> list[Entry]:
    log = keys.log_keys(rp)[0]
    if backwards:
        answer: Any = client().xrevrange(log, max=place, count=count) if place > 0 else []
    else:
        answer = client().xrange(log, min=place, count=count)
    return [_entry(name, fields) for name, fields in answer]


def _entry(name: bytes, fields: dict[bytes, bytes]) -> Entry:
    offset, stored_ms = map(int, name.split(b"-"))
    feed, sequence = fields.get(b"f", b"").decode(), int(fields.get(b"s", offset))
    return Entry(offset, stored_ms, feed, sequence, fields[b"e"])
