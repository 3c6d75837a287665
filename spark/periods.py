"""The time that a report is about: from an instant to another, which is not part of it; given in days of any time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spark.problems import Problem

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
END = datetime(9999, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Period:
    """From `begin` to before `end`, both UTC; days are those of `zone`. Without bounds: all there is.

    A day of a zone with daylight-saving time may have 23 or 25 hours; hours of reports are always those of UTC.
    """

    begin: datetime = BEGINNING
    end: datetime = END
    zone: str = "UTC"

    @property
    def bounded(self) -> bool:
        """Whether it was asked for."""
        return self.begin != BEGINNING or self.end != END

    def touches(self, hour: datetime) -> bool:
        """Whether any of the hour that begins at `hour` is in it."""
        return hour < self.end and hour + HOUR > self.begin

    def before(self, days: int) -> Period:
        """The `days` days of 24 hours before it; nothing before an open period."""
        begin = max(self.begin - timedelta(days=days), BEGINNING) if self.begin > BEGINNING else BEGINNING
        return Period(begin, self.begin, self.zone)


def period(begin: str | None, end: str | None, zone: str = "UTC") -> Period:
    """The period that a command line names.

    Args:
        begin: ISO 8601 date or time; without an offset it is one of `zone`. None: from the beginning.
        end: the same, not part of the period. None: to the end.
        zone: a name of the IANA time zone database.

    Raises:
        Problem: a time or the zone is none, or the end is not after the begin.
    """
    try:
        where = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Problem(f"--zone: {zone!r} is no time zone; write it as in Europe/Berlin.") from None
    made = Period(_instant(begin, where, BEGINNING, "--from"), _instant(end, where, END, "--to"), zone)
    if made.end <= made.begin:
        raise Problem("--to must be later than --from.")
    return made


def _instant(text: str | None, zone: ZoneInfo, default: datetime, option: str) -> datetime:
    if text is None:
        return default
    try:
        parsed = datetime.fromisoformat(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Problem(f"{option}: {text!r} is no date or time; write 2027-01-15 or 2027-01-15T08:00Z.") from None
