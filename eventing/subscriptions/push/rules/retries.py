"""The retry schedule as data, and Retry-After (RFC 9110, section 10.2.3). Pure: time and jitter are arguments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

JITTER = 0.1
"""Share of a pause by which it is longer or shorter, so that endpoints that failed together are not called together."""
PAUSES_MAX = 20  # bound: pauses of a schedule; the setting is refused
# An endpoint that asks for more is asked again earlier than it wants.
RETRY_AFTER_S_MAX = 86_400.0  # bound: seconds of a Retry-After; a longer one is shortened
RETRY_AFTER_S_MIN = 1.0
_DIGITS_MAX = 9


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """Pauses before the second, third ... attempt, in seconds. After the last one delivery is given up or paused."""

    pauses_s: tuple[float, ...]

    def pause_s(self, failures: int, jitter: float, asked_s: float | None = None) -> float | None:
        """Return the pause after this many failed attempts in a row; None: no attempt is left.

        Args:
            failures: at least 1.
            jitter: from 0 to 1, drawn by the caller; 0.5 leaves the pause as it is stated.
            asked_s: the endpoint's Retry-After, already clamped; the pause is never shorter.
        """
        if failures > len(self.pauses_s):
            return None
        pause = self.pauses_s[failures - 1] * (1 + JITTER * (2 * jitter - 1))
        return max(pause, asked_s or 0.0)

    @property
    def whole_s(self) -> float:
        """Seconds from the first attempt to the last."""
        return sum(self.pauses_s)


STANDARD = RetrySchedule((5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400))
"""Standard Webhooks' example: ten attempts within 75 hours and 35 minutes."""


def schedule_parse(text: str) -> RetrySchedule:
    """Parse pauses in seconds, separated by commas; an empty text is STANDARD. Raises ValueError."""
    if not text.strip():
        return STANDARD
    pauses = tuple(float(part) for part in text.split(","))
    if len(pauses) > PAUSES_MAX or not all(0 < pause <= 7 * 86_400 for pause in pauses):
        raise ValueError(f"at most {PAUSES_MAX} pauses, each of up to a week")
    return RetrySchedule(pauses)


def retry_after_s(value: str, now: float) -> float | None:
    """Return the seconds that a Retry-After asks for, clamped; None for a value that is neither seconds nor a date.

    Args:
        value: the field's value.
        now: Unix seconds.
    """
    text = value.strip()
    if text.isascii() and text.isdigit():
        asked = float(text[:_DIGITS_MAX])
    else:
        try:
            moment = parsedate_to_datetime(text)
        except (TypeError, ValueError, OverflowError):
            return None
        asked = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
    return min(max(asked, RETRY_AFTER_S_MIN), RETRY_AFTER_S_MAX)
