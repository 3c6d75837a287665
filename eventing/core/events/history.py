"""History bounds: limits on an RP's log by count, bytes and age, and the quota that they reserve."""

from __future__ import annotations

from dataclasses import dataclass

from eventing.core.errors import InvalidRequest, QuotaExceeded

EVENTS_DEFAULT = 1000
BYTES_PER_EVENT_DEFAULT = 1024  # reserved per event when no bytes are stated; measured: a small CloudEvent takes ~300
BYTES_DEFAULT_MIN = 1024 * 1024
AGE_S_MAX = 366 * 86_400  # bound: seconds of history; the history is refused: `quota-exceeded`


@dataclass(frozen=True, slots=True)
class HistoryBounds:
    """Bounds of one log. The newest event is always kept, so `max_bytes` may be exceeded by that one event.

    Attributes:
        max_events: most events kept, at least 1.
        max_bytes: most bytes of events kept, at least 1; what the RP reserves of the domain's quota.
        max_age_s: seconds after which an event is no longer returned; None for no bound by age.
    """

    max_events: int
    max_bytes: int
    max_age_s: int | None = None


def admit(
    max_events: int | None, max_bytes: int | None, max_age_s: int | None, *, events_max: int, bytes_max: int
) -> HistoryBounds:
    """Check the bounds that a creator requests (None: not stated) and return them complete. Nothing is silently
    reduced.

    Args:
        max_events, max_bytes, max_age_s: the requested bounds.
        events_max, bytes_max: the most that one RP may reserve here.

    Raises:
        InvalidRequest: a number is out of its range.
        QuotaExceeded: more than one RP may reserve.
    """
    for name, value in (("max_events", max_events), ("max_bytes", max_bytes), ("max_age_s", max_age_s)):
        if value is not None and value < 1:
            raise InvalidRequest(f"history.{name} is at least 1.")
    events = EVENTS_DEFAULT if max_events is None else max_events
    if max_bytes is None:
        max_bytes = min(max(events * BYTES_PER_EVENT_DEFAULT, BYTES_DEFAULT_MIN), bytes_max)
    if events > events_max:
        raise QuotaExceeded(f"history.max_events is at most {events_max} here.", limit=events_max)
    if max_bytes > bytes_max:
        raise QuotaExceeded(f"history.max_bytes is at most {bytes_max} here.", limit=bytes_max)
    if max_age_s is not None and max_age_s > AGE_S_MAX:
        raise QuotaExceeded(f"history.max_age_s is at most {AGE_S_MAX} here.", limit=AGE_S_MAX)
    return HistoryBounds(events, max_bytes, max_age_s)


def tightest(asked: HistoryBounds, granted: HistoryBounds) -> HistoryBounds:
    """Restrict `asked` to `granted`: a durable subscription's bounds within its RP's."""
    ages = [age for age in (asked.max_age_s, granted.max_age_s) if age is not None]
    return HistoryBounds(
        min(asked.max_events, granted.max_events),
        min(asked.max_bytes, granted.max_bytes),
        min(ages) if ages else None,
    )
