"""How far durable subscriptions are behind, read from the logs: what the figures of core/events/lag.py are made of.

Synchronous. One round trip for all logs together, three more where subscriptions are held by several domains: of those the
version vector counts, not the offset. What is read of one log is of one instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from eventing.conf import config
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds, tightest
from eventing.core.events.lag import Lag, Waiting, lag_by_offset, lag_by_vector
from eventing.core.events.positions import LogState
from eventing.core.events.vectors import Vector
from eventing.log import federated, scripts
from eventing.log.control import call_all, stored_at
from eventing.log.scripts import OWN
from eventing.log.shared_subscriptions import Kept, Place, read_all
from eventing.overlay.takeover import Standing

CALL_MAX = 500
"""Subscriptions of one script call: Redis serves nobody else meanwhile. Measured: 1.5 ms."""

NO_LAG = Lag(0, 0)


class Asked(NamedTuple):
    """A subscription: the RP it reads, its id, where it began, its own bounds, and whether several domains hold it."""

    rp: str
    id: str
    start: str
    bounds: HistoryBounds
    shared: bool = False


class Found(NamedTuple):
    """What the log says of a subscription.

    Attributes:
        cursor: what it has acknowledged.
        lag: how far it is behind.
        read: events of the log that it has acknowledged; what it grows by is how fast it reads.
        waiting: what is held for it; None where it has read all, or there is no log.
        oldest_ms: when the oldest event that is held for it was stored, Unix milliseconds; None where nothing waits.
        bounds: what it is granted of the log: its own bounds within those of the log.
        standing: who delivers it, of one that several domains hold.
    """

    cursor: Cursor
    lag: Lag
    read: int
    waiting: Waiting | None
    oldest_ms: int | None
    bounds: HistoryBounds
    standing: Standing | None = None


class _Log(NamedTuple):
    state: LogState
    now_ms: int
    newest_ms: int
    bounds: HistoryBounds


class _Row(NamedTuple):
    asked: Asked
    log: _Log | None
    cursor: Cursor
    floor: int
    oldest_ms: int
    bytes: int


def lags(subscriptions: Sequence[Asked]) -> list[Found]:
    """How far each is behind, in order. Raises redis.RedisError."""
    rows = _rows(subscriptions)
    shared = _by_vector([row for row in rows if row.asked.shared and row.log is not None])
    return [shared.get(row.asked.id) or _by_offset(row) for row in rows]


def _rows(subscriptions: Sequence[Asked]) -> list[_Row]:
    """What LAGS answers about each, in order."""
    parts: list[list[Asked]] = []
    for _, of_rp in groupby(subscriptions, key=lambda one: one.rp):
        some = list(of_rp)
        parts += (some[at : at + CALL_MAX] for at in range(0, len(some), CALL_MAX))
    calls = [scripts.lags_args(part[0].rp, ((one.id, one.start, one.bounds) for one in part)) for part in parts]
    rows: list[_Row] = []
    for part, answer in zip(parts, federated.logs_only(call_all(scripts.LAGS, calls)), strict=True):
        rows += _no_log(part) if answer is None else _read(part, answer)
    return rows


def _no_log(part: Iterable[Asked]) -> list[_Row]:
    return [_Row(one, None, Cursor.parse(one.start), 1, 0, 0) for one in part]


def _read(part: Sequence[Asked], answer: list[Any]) -> list[_Row]:
    epoch, first, following, held, foreign, now_ms, events_max, bytes_max, age_ms, newest_ms, *found = answer
    bounds = HistoryBounds(int(events_max), int(bytes_max), int(age_ms) // 1000 or None)
    state = LogState(epoch.decode(), first, following, held, foreign)
    log = _Log(state, int(now_ms), int(newest_ms), bounds)
    return [
        _Row(one, log, Cursor.parse(cursor.decode()), floor, int(oldest_ms), int(size))
        for one, (cursor, floor, oldest_ms, size) in zip(part, found, strict=True)
    ]


def _by_offset(row: _Row) -> Found:
    asked, log = row.asked, row.log
    if log is None:
        return Found(row.cursor, NO_LAG, 0, None, None, asked.bounds)
    return _found(row, log, lag_by_offset(row.cursor, log.state, row.floor), row.oldest_ms, row.bytes)


def _found(row: _Row, log: _Log, lag: Lag, oldest_ms: int, size: int, standing: Standing | None = None) -> Found:
    bounds, events = tightest(row.asked.bounds, log.bounds), lag.events - lag.lost
    read = log.state.next - 1 - lag.events
    if events <= 0 or not oldest_ms:
        return Found(row.cursor, lag, read, None, None, bounds, standing)
    ages_s = [max(0, log.now_ms - at_ms) / 1000 for at_ms in (oldest_ms, log.newest_ms)]
    return Found(row.cursor, lag, read, Waiting(events, size, *ages_s), oldest_ms, bounds, standing)


# Subscriptions that several domains hold


def _by_vector(rows: Sequence[_Row]) -> dict[str, Found]:
    """By id. One whose log changes while it is read is left to its offset."""
    if not rows:
        return {}
    kept = read_all([Place(row.asked.rp, row.asked.id) for row in rows])
    heads = dict(zip(rps := sorted({row.asked.rp for row in rows}), federated.heads(rps), strict=True))
    befores = _vectors_before(rows)
    oldest = _oldest(rows, kept)
    made: dict[str, Found] = {}
    for row, one, before, (at, at_ms) in zip(rows, kept, befores, oldest, strict=True):
        head, log = heads[row.asked.rp], row.log
        if log is None or head is None or head.epoch != log.state.epoch or before is None:
            continue
        own = _own(log)
        lag = lag_by_vector(one.acked, {**head.foreign, own: head.own}, before)
        per_event = log.state.bytes / max(1, log.state.next - log.state.first)
        size = int(per_event * (lag.events - lag.lost)) if at < log.state.next else 0
        made[row.asked.id] = _found(row, log, lag, at_ms, size, one.standing)
    return made


def _vectors_before(rows: Sequence[_Row]) -> list[Vector | None]:
    """What stood before the floor of each, the own feed by its key; None where that is not known any more."""
    calls = [scripts.vector_at_args(row.asked.rp, row.floor - 1) for row in rows]
    made: list[Vector | None] = []
    for row, answer in zip(rows, federated.logs_only(call_all(scripts.VECTOR_AT, calls)), strict=True):
        if not answer or row.log is None:
            made.append(None)
            continue
        vector = scripts.vector(answer)
        vector[_own(row.log)] = vector.pop(OWN, 0)
        made.append(vector)
    return made


def _oldest(rows: Sequence[_Row], kept: Sequence[Kept]) -> list[tuple[int, int]]:
    """Offset of the oldest event that each is granted and lacks, and when that was stored (Unix ms; 0: not known)."""
    calls = [
        scripts.first_lacking_args(row.asked.rp, one.acked, _own(row.log) if row.log else "")
        for row, one in zip(rows, kept, strict=True)
    ]
    answers = federated.logs_only(call_all(scripts.FIRST_LACKING, calls))
    offsets = [max(row.floor, answer or 0) for row, answer in zip(rows, answers, strict=True)]
    places = [(row.asked.rp, offset) for row, offset in zip(rows, offsets, strict=True)]
    stored = stored_at(places)
    return [(offset, int((at or 0) * 1000)) for offset, (_, at) in zip(offsets, stored, strict=True)]


def _own(log: _Log) -> str:
    return Feed(config().domain, log.state.epoch).key


def asked_of(rows: Iterable[Mapping[str, Any]]) -> list[Asked]:
    """From rows of COLUMNS of the model Subscription."""
    return [
        Asked(
            row["at"],
            row["id"],
            row["start"],
            HistoryBounds(row["max_events"], row["max_bytes"], row["max_age_s"]),
            bool(row["keeper"]),
        )
        for row in rows
    ]


COLUMNS = ("at", "id", "start", "max_events", "max_bytes", "max_age_s", "keeper")
"""What `asked_of` needs of a subscription's row."""
