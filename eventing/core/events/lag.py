"""Lag of durable subscriptions: events behind, events lost, and time until further loss. Pure.

    lag = lag_by_offset(cursor, log, oldest_granted) # or lag_by_vector, of a shared subscription
    lag.events, lag.lost                            # 7319, 6819: events 1 to 6,819 left the history unread
    loss_in_s(waiting, bounds, acked_per_s)         # seconds until the oldest waiting event leaves the history, or None

The only definition of these figures, for the pages, the REST answers, the command line, the metrics and the alarms:
`lost` is exactly the gap that the next pull reports (core/events/positions.py).
"""

from __future__ import annotations

from typing import NamedTuple

from eventing.core.events.cursors import Cursor
from eventing.core.events.history import HistoryBounds
from eventing.core.events.positions import LogState
from eventing.core.events.vectors import Vector, distance

KEEPS_UP = 0.9
"""Share of the publish rate from which a reader counts as keeping up: at this share the lag grows by a tenth of new events."""

PAUSE_SPACINGS = 10
"""Silence that counts as a pause of the publisher, in average intervals: a Poisson source exceeds it once in 22,000."""

PAUSE_S_MIN = 30.0
"""Least silence that counts as a pause, in seconds."""


class Lag(NamedTuple):
    """Events that a subscription has not acknowledged; `lost` of them have left the history granted to the subscription."""

    events: int
    lost: int


class WaitingEvents(NamedTuple):
    """Unacknowledged events that the history still holds.

    Attributes:
        events, bytes: number and size of these events.
        oldest_age_s: seconds since the oldest of them was stored.
        newest_age_s: seconds since the newest event of the log was stored.
    """

    events: int
    bytes: int
    oldest_age_s: float
    newest_age_s: float


def acknowledged_offset(cursor: Cursor, log: LogState) -> int:
    """Return the offset up to which `cursor` covers `log`; 0 for a cursor of another epoch or beyond the log's end."""
    return cursor.offset if cursor.epoch == log.epoch and cursor.offset < log.next else 0


def lag_by_offset(cursor: Cursor, log: LogState, oldest_granted: int) -> Lag:
    """Compute the lag of a subscription that one domain holds.

    Args:
        cursor: acknowledged position.
        oldest_granted: oldest offset that the subscription's own bounds grant; at least `log.first`.
    """
    after = acknowledged_offset(cursor, log)
    return Lag(log.next - 1 - after, max(0, max(oldest_granted, log.first) - 1 - after))


def lag_by_vector(acked: Vector, held: Vector, before: Vector) -> Lag:
    """Compute the lag of a shared subscription at one of its domains.

    Args:
        acked: acknowledged sequence of each feed.
        held: highest sequence of each feed that the log ever received.
        before: part of `held` before the oldest event that the subscription is granted here.
    """
    return Lag(distance(acked, held), distance(acked, before))


def share_used(waiting: WaitingEvents, bounds: HistoryBounds) -> float:
    """Share of the history that waiting events take, by the bound that is nearest: from 0 to 1, or slightly more."""
    shares = [waiting.events / bounds.max_events, waiting.bytes / bounds.max_bytes]
    if bounds.max_age_s is not None:
        shares.append(waiting.oldest_age_s / bounds.max_age_s)
    return max(shares)


def loss_in_s(waiting: WaitingEvents, bounds: HistoryBounds, acked_per_s: float) -> float | None:
    """Estimate the seconds until the oldest waiting event leaves the history at the present rates; None if it does not.

    The waiting events have gathered since the oldest was stored, so their number over that event's age is the rate of
    new events, and the remaining room over that rate is the remaining time; the same for bytes. The bound by age needs
    only the time. Acknowledgements of the reader are subtracted from the rate.

    Args:
        bounds: bounds of the log, or tighter ones of the subscription.
        acked_per_s: events per second that the reader has acknowledged recently.
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
            times.append(0.0)  # the next event displaces the oldest
        elif used > 0 and not _paused(waiting, age_s):
            times.append(age_s * (most / used - 1) / left)
    if bounds.max_age_s is not None:
        times.append(max(0.0, bounds.max_age_s - waiting.oldest_age_s) / left)
    return min(times, default=None)


def in_words(lag: Lag) -> str:
    """Format the figure as shown everywhere: `7,319 behind, 6,819 of them lost`."""
    return f"{lag.events:,} behind{f', {lag.lost:,} of them lost' if lag.lost else ''}"


def _paused(waiting: WaitingEvents, age_s: float) -> bool:
    return waiting.newest_age_s > max(PAUSE_S_MIN, PAUSE_SPACINGS * age_s / waiting.events)
