"""The period of a report: from an instant to another, exclusive; given in days of any time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spark.problems import JobProblem

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
END = datetime(9999, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Period:
    """From `begin` to before `end`, both UTC; days are those of `zone`. Without bounds: all records.

    A day of a zone with daylight-saving time may have 23 or 25 hours; hours of reports are always those of UTC.
    """

    begin: datetime = BEGINNING
    end: datetime = END
    zone: str = "UTC"

    @property
    def bounded(self) -> bool:
        """Return whether the period has bounds."""
        return self.begin != BEGINNING or self.end != END

    def touches(self, hour: datetime) -> bool:
        """Return whether any of the hour that begins at `hour` is in it."""
        return hour < self.end and hour + HOUR > self.begin

    def before(self, days: int) -> Period:
        """Return the `days` days of 24 hours before it; nothing before an open period."""
        begin = max(self.begin - timedelta(days=days), BEGINNING) if self.begin > BEGINNING else BEGINNING
        return Period(begin, self.begin, self.zone)


def period(begin: str | None, end: str | None, zone: str = "UTC") -> Period:
    """Return the period of a command line.

    Args:
        begin: ISO 8601 date or time; without an offset in `zone`. None: from the beginning.
        end: the same, exclusive. None: to the end.
        zone: a name of the IANA time zone database.

    Raises:
        Problem: a time or the zone is invalid, or the end is not after the begin.
    """
    try:
        where = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise JobProblem(f"--zone: {zone!r} is not a time zone. Write it as in Europe/Berlin.") from None
    made = Period(_instant(begin, where, BEGINNING, "--from"), _instant(end, where, END, "--to"), zone)
    if made.end <= made.begin:
        raise JobProblem("--to must be later than --from.")
    return made


def _instant(text: str | None, zone: ZoneInfo, default: datetime, option: str) -> datetime:
    if text is None:
        return default
    try:
        parsed = datetime.fromisoformat(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise JobProblem(f"{option}: {text!r} is not a date or time. Write 2027-01-15 or 2027-01-15T08:00Z.") from None
