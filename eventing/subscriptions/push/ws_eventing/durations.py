"""xs:duration and xs:dateTime of leases (XML Schema part 2, sections 3.2.6 and 3.2.7). Pure: the time is an argument."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta

NUMBER_DIGITS_MAX = 9  # bound: digits of a number in a duration; the duration is refused
_N = rf"([0-9]{{1,{NUMBER_DIGITS_MAX}}})"
_DURATION = re.compile(
    rf"(-?)P(?:{_N}Y)?(?:{_N}M)?(?:{_N}D)?(?:T(?=[0-9])(?:{_N}H)?(?:{_N}M)?(?:{_N}(?:\.([0-9]{{1,{NUMBER_DIGITS_MAX}}}))?S)?)?",
    re.ASCII,
)
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,12})?(?:Z|[+-][0-9]{2}:[0-9]{2})?", re.ASCII
)


def duration_s(text: str, now: datetime) -> float | None:
    """Return the seconds of a duration that begins now, since years and months differ; None if it is no duration.

    A duration beyond the calendar gives infinity.
    """
    match = _DURATION.fullmatch(text)
    if match is None or text.rstrip("T").endswith("P"):
        return None
    sign, years, months, days, hours, minutes, seconds, fraction = match.groups()
    exact = int(days or 0) * 86_400 + int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    whole = _calendar_s(int(years or 0) * 12 + int(months or 0), now) + exact + float(f"0.{fraction or 0}")
    return -whole if sign else whole


def _calendar_s(months: int, now: datetime) -> float:
    """Return the seconds of `months` from now; of a day that the month does not have, its last one."""
    if not months:
        return 0.0
    year, month = divmod(now.year * 12 + now.month - 1 + months, 12)
    if year > datetime.max.year:
        return float("inf")
    later = now.replace(year=year, month=month + 1, day=min(now.day, monthrange(year, month + 1)[1]))
    return (later - now).total_seconds()


def date_time(text: str) -> datetime | None:
    """Return an instant; one without a time zone is in UTC. None if it is no date and time."""
    if _DATE_TIME.fullmatch(text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def duration_text(seconds: float) -> str:
    """Write a duration in whole seconds, rounded down: the lease does not end before the time stated to the sink."""
    return f"PT{max(int(seconds), 0)}S"


def date_time_text(now: datetime, seconds: float) -> str:
    """Write the instant `seconds` after now, in whole seconds."""
    return (now.astimezone(UTC) + timedelta(seconds=int(seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")
