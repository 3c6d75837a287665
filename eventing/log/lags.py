"""Lag of durable subscriptions, read from the logs: the input of core/events/lag.py.

Synchronous. One round trip for all logs together, three more where subscriptions are shared: their lag is measured by
the version vector, not by the offset. The values of one log are of one instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from eventing.conf import config
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds, tightest
from eventing.core.events.lag import Lag, WaitingEvents, lag_by_offset, lag_by_vector
from eventing.core.events.positions import LogState
from eventing.core.events.vectors import Vector
from eventing.log import federated, scripts
from eventing.log.control import logs_only, stored_at
from eventing.log.scripts import OWN
from eventing.log.shared_subscriptions import Kept, SubscriptionKey, read_all
from eventing.overlay.takeover import HolderStanding
from eventing.store.client import run_script_all

CALL_MAX = 500  # bound: durable subscriptions of one script call; another call in the same round trip
"""Subscriptions of one script call, during which Redis serves no other client. Measured: 1.5 ms."""

NO_LAG = Lag(0, 0)


class LagQuery(NamedTuple):
    """A subscription: its RP, its id, its start, its own bounds, and whether it is shared."""

    rp: str
    id: str
    start: str
    bounds: HistoryBounds
    shared: bool = False


class LagResult(NamedTuple):
    """State of a subscription in the log.

    Attributes:
        cursor: acknowledged position.
        lag: the lag.
        read: number of the log's events that are acknowledged; its growth is the reading rate.
        waiting: events held for it; None if it has read all, or there is no log.
        oldest_ms: time at which the oldest event held for it was stored, Unix milliseconds; None if nothing waits.
        bounds: granted part of the log: its own bounds within those of the log.
        standing: delivering holder of a shared subscription.
    """

    cursor: Cursor
    lag: Lag
    read: int
    waiting: WaitingEvents | None
    oldest_ms: int | None
    bounds: HistoryBounds
    standing: HolderStanding | None = None


class _Log(NamedTuple):
    state: LogState
    now_ms: int
    newest_ms: int
    bounds: HistoryBounds


class _Row(NamedTuple):
    asked: LagQuery
    log: _Log | None
    cursor: Cursor
    oldest_granted: int
    oldest_ms: int
    bytes: int


def lags(subscriptions: Sequence[LagQuery]) -> list[LagResult]:
    """Measure the lag of each, in order. Raises redis.RedisError."""
    rows = _rows(subscriptions)
    shared = _by_vector([row for row in rows if row.asked.shared and row.log is not None])
    return [shared.get(row.asked.id) or _by_offset(row) for row in rows]


def _rows(subscriptions: Sequence[LagQuery]) -> list[_Row]:
    """Return the answers of LAGS about each, in order."""
    parts: list[list[LagQuery]] = []
    for _, of_rp in groupby(subscriptions, key=lambda one: one.rp):
        some = list(of_rp)
        parts += (some[at : at + CALL_MAX] for at in range(0, len(some), CALL_MAX))
    calls = [scripts.lags_args(part[0].rp, ((one.id, one.start, one.bounds) for one in part)) for part in parts]
    rows: list[_Row] = []
    for part, answer in zip(parts, logs_only(run_script_all(scripts.LAGS, calls)), strict=True):
        rows += _no_log(part) if answer is None else _read(part, answer)
    return rows


def _no_log(part: Iterable[LagQuery]) -> list[_Row]:
    return [_Row(one, None, Cursor.parse(one.start), 1, 0, 0) for one in part]


def _read(part: Sequence[LagQuery], answer: list[Any]) -> list[_Row]:
    epoch, first, following, held, foreign, now_ms, events_max, bytes_max, age_ms, newest_ms, *found = answer
    bounds = HistoryBounds(int(events_max), int(bytes_max), int(age_ms) // 1000 or None)
    state = LogState(epoch.decode(), first, following, held, foreign)
    log = _Log(state, int(now_ms), int(newest_ms), bounds)
    return [
        _Row(one, log, Cursor.parse(cursor.decode()), oldest_granted, int(oldest_ms), int(size))
        for one, (cursor, oldest_granted, oldest_ms, size) in zip(part, found, strict=True)
    ]


def _by_offset(row: _Row) -> LagResult:
    asked, log = row.asked, row.log
    if log is None:
        return LagResult(row.cursor, NO_LAG, 0, None, None, asked.bounds)
    return _found(row, log, lag_by_offset(row.cursor, log.state, row.oldest_granted), row.oldest_ms, row.bytes)


def _found(
    row: _Row, log: _Log, lag: Lag, oldest_ms: int, size: int, standing: HolderStanding | None = None
) -> LagResult:
    bounds, events = tightest(row.asked.bounds, log.bounds), lag.events - lag.lost
    read = log.state.next - 1 - lag.events
    if events <= 0 or not oldest_ms:
        return LagResult(row.cursor, lag, read, None, None, bounds, standing)
    ages_s = [max(0, log.now_ms - at_ms) / 1000 for at_ms in (oldest_ms, log.newest_ms)]
    return LagResult(row.cursor, lag, read, WaitingEvents(events, size, *ages_s), oldest_ms, bounds, standing)


# Shared subscriptions


def _by_vector(rows: Sequence[_Row]) -> dict[str, LagResult]:
    """Measure shared subscriptions, by id. One whose log changes while it is read keeps its measurement by offset."""
    if not rows:
        return {}
    kept = read_all([SubscriptionKey(row.asked.rp, row.asked.id) for row in rows])
    heads = dict(zip(rps := sorted({row.asked.rp for row in rows}), federated.heads(rps), strict=True))
    befores = _vectors_before(rows)
    oldest = _oldest(rows, kept)
    made: dict[str, LagResult] = {}
    for row, one, before, (at, at_ms) in zip(rows, kept, befores, oldest, strict=True):
        head, log = heads[row.asked.rp], row.log
        if log is None or head is None or head.present != log.state.epoch or before is None:
            continue
        own = _own(log)
        lag = lag_by_vector(one.acked, {**head.foreign, own: head.own}, before)
        per_event = log.state.bytes / max(1, log.state.next - log.state.first)
        size = int(per_event * (lag.events - lag.lost)) if at < log.state.next else 0
        made[row.asked.id] = _found(row, log, lag, at_ms, size, one.standing)
    return made


def _vectors_before(rows: Sequence[_Row]) -> list[Vector | None]:
    """Return the vector before the oldest offset granted to each, the own feed by its key; None where it is no longer known."""
    calls = [scripts.vector_at_args(row.asked.rp, row.oldest_granted - 1) for row in rows]
    made: list[Vector | None] = []
    for row, answer in zip(rows, logs_only(run_script_all(scripts.VECTOR_AT, calls)), strict=True):
        if not answer or row.log is None:
            made.append(None)
            continue
        vector = scripts.vector(answer)
        vector[_own(row.log)] = vector.pop(OWN, 0)
        made.append(vector)
    return made


def _oldest(rows: Sequence[_Row], kept: Sequence[Kept]) -> list[tuple[int, int]]:
    """Return the offset of the oldest event that each is granted and lacks, and the time it was stored (Unix ms; 0: unknown)."""
    calls = [
        scripts.first_lacking_args(row.asked.rp, one.acked, _own(row.log) if row.log else "")
        for row, one in zip(rows, kept, strict=True)
    ]
    answers = logs_only(run_script_all(scripts.FIRST_LACKING, calls))
    offsets = [max(row.oldest_granted, answer or 0) for row, answer in zip(rows, answers, strict=True)]
    places = [(row.asked.rp, offset) for row, offset in zip(rows, offsets, strict=True)]
    stored = stored_at(places)
    return [(offset, int((at or 0) * 1000)) for offset, (_, at) in zip(offsets, stored, strict=True)]


def _own(log: _Log) -> str:
    return Feed(config().domain, log.state.root).key


def asked_of(rows: Iterable[Mapping[str, Any]]) -> list[LagQuery]:
    """Convert rows with COLUMNS of the model Subscription."""
    return [
        LagQuery(
            row["at"],
            row["id"],
            row["start"],
            HistoryBounds(row["max_events"], row["max_bytes"], row["max_age_s"]),
            bool(row["keeper"]),
        )
        for row in rows
    ]


COLUMNS = ("at", "id", "start", "max_events", "max_bytes", "max_age_s", "keeper")
"""Columns of a subscription's row that `asked_of` needs."""
