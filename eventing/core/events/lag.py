"""How far a durable subscription is behind, how much of that it has lost, and when it loses more. Pure.

    lag = lag_by_offset(cursor, log, floor)         # or lag_by_vector, of a subscription that several domains hold
    lag.events, lag.lost                            # 7319, 6819: events 1 to 6,819 left the history unread
    loss_in_s(waiting, bounds, acked_per_s)         # seconds until the oldest waiting event leaves the history, or None

The one definition of these figures, for the pages, the REST answers, the command line, the metrics and the alarms: `lost`
is exactly the gap that the next pull reports (core/events/positions.py).
"""

from __future__ import annotations

from typing import NamedTuple

from eventing.core.events.cursors import Cursor
from eventing.core.events.history import HistoryBounds
from eventing.core.events.positions import LogState
from eventing.core.events.vectors import Vector, distance

KEEPS_UP = 0.9
"""Share of the publish rate from which a reader counts as keeping up: below it the lag grows by a tenth of what comes."""

PAUSE_SPACINGS = 10
"""A publisher that is silent for so many of its average intervals has paused: a Poisson source does so once in 22,000."""

PAUSE_S_MIN = 30.0
"""Least silence that counts as a pause, seconds."""


class Lag(NamedTuple):
    """Events that a subscription has not acknowledged; `lost` of them have left the history that it is granted."""

    events: int
    lost: int


class Waiting(NamedTuple):
    """What the history still holds for a subscription.

    Attributes:
        events, bytes: not acknowledged, and held.
        oldest_age_s: since when the oldest of them is stored, seconds.
        newest_age_s: since when the newest event of the log is stored, seconds.
    """

    events: int
    bytes: int
    oldest_age_s: float
    newest_age_s: float


def acknowledged_offset(cursor: Cursor, log: LogState) -> int:
    """The offset up to which `cursor` covers `log`; 0 for a cursor of another epoch, or of beyond the log's end."""
    return cursor.offset if cursor.epoch == log.epoch and cursor.offset < log.next else 0


def lag_by_offset(cursor: Cursor, log: LogState, floor: int) -> Lag:
    """The lag of a subscription that one domain holds.

    Args:
        cursor: what it has acknowledged.
        floor: the oldest offset that its own bounds grant; at least `log.first`.
    """
    after = acknowledged_offset(cursor, log)
    return Lag(log.next - 1 - after, max(0, max(floor, log.first) - 1 - after))


def lag_by_vector(acked: Vector, held: Vector, before: Vector) -> Lag:
    """The lag of a subscription that several domains hold, at one of them.

    Args:
        acked: what it has acknowledged of each feed.
        held: what the log was ever given of each feed.
        before: the part of `held` that stood before the oldest event that the subscription is granted here.
    """
    return Lag(distance(acked, held), distance(acked, before))


def share_used(waiting: Waiting, bounds: HistoryBounds) -> float:
    """How much of the history the waiting events take, by the bound that is nearest: from 0 to 1, or a little more."""
    shares = [waiting.events / bounds.max_events, waiting.bytes / bounds.max_bytes]
    if bounds.max_age_s is not None:
        shares.append(waiting.oldest_age_s / bounds.max_age_s)
    return max(shares)


def loss_in_s(waiting: Waiting, bounds: HistoryBounds, acked_per_s: float) -> float | None:
    """Seconds until the oldest waiting event leaves the history at the present rates; None if it does not.

    What waits has gathered since the oldest of it was stored, so its number over its age is the rate at which events come,
    and the room that is left over that rate is the time that is left; the same for bytes. By age nothing but time is
    needed. What the reader acknowledges meanwhile is taken off.

    Args:
        bounds: of the log, or tighter ones of the subscription.
        acked_per_s: events that the reader has acknowledged per second, lately.
    """
    if waiting.events == 0:
        return None
    age_s = max(waiting.oldest_age_s, 1e-3)
    left = max(0.0, 1 - acked_per_s * age_s / waiting.events)
    if left <= 1 - KEEPS_UP:
        return None
    times = []
    for used, most in ((waiting.events, bounds.max_events), (waiting.bytes, bounds.max_bytes)):
        if used >= most:
            times.append(0.0)  # the next event takes the place of the oldest
        elif used > 0 and not _paused(waiting, age_s):
            times.append(age_s * (most / used - 1) / left)
    if bounds.max_age_s is not None:
        times.append(max(0.0, bounds.max_age_s - waiting.oldest_age_s) / left)
    return min(times, default=None)


def in_words(lag: Lag) -> str:
    """The figure as it is shown everywhere: `7,319 behind, 6,819 of them lost`."""
    return f"{lag.events:,} behind{f', {lag.lost:,} of them lost' if lag.lost else ''}"


def _paused(waiting: Waiting, age_s: float) -> bool:
    return waiting.newest_age_s > max(PAUSE_S_MIN, PAUSE_SPACINGS * age_s / waiting.events)
