"""Times as people type them, and durations until a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from herald.starts import TIME_PREFIX

F = TypeVar("F", bound=Callable[..., Any])
_AGO = re.compile(r"([1-9][0-9]{0,8})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def ahead(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return the time that is this far ahead, as RFC 3339 in UTC."""
    if value is None:
        return None
    found = _AGO.fullmatch(value)
    try:
        if found is None:
            raise ValueError
        return _shown(datetime.now(UTC) + timedelta(**{_UNITS[found[2]]: int(found[1])}))
    except (ValueError, OverflowError):
        raise click.BadParameter("use a duration from now: 30m, 2h, 7d") from None


def duration_s(ctx: click.Context, parameter: click.Parameter, value: str) -> int:
    """Return a duration as seconds."""
    found = _AGO.fullmatch(value)
    if found is None:
        raise click.BadParameter("use a duration: 30m, 2h, 7d")
    return int(timedelta(**{_UNITS[found[2]]: int(found[1])}) / timedelta(seconds=1))


def span(seconds: float) -> str:
    """Return a duration in the largest unit of which there are two: 90 s, 45 min, 30 h, 12 days."""
    for unit, size_s in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size_s:
            return f"{seconds // size_s:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def moment(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a time, or the time this long ago, as RFC 3339 in UTC."""
    if value is None:
        return None
    ago = _AGO.fullmatch(value)
    try:
        if ago:
            found = datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            found = datetime.fromisoformat(value)
            found = found.astimezone(UTC)  # without an offset: local time
    except (ValueError, OverflowError):
        raise click.BadParameter("use a time such as 2026-11-21T08:00, or a duration ago: 30m, 2h, 7d") from None
    return _shown(found)


def since(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a time, or the time this long ago, as a start."""
    found = moment(ctx, parameter, value)
    return None if found is None else TIME_PREFIX + found


def start_options(function: F) -> F:
    """Add --from and --since; the function gets `from_` and `since`, see `start_of`."""
    function = click.option(
        "--since", callback=since, metavar="WHEN", help="From this time on: 30m, 2h, 7d ago, or 2026-11-24T02:50Z."
    )(function)
    return click.option("--from", "from_", default="now", show_default=True, help="now, earliest, last, or a CURSOR.")(
        function
    )


def start_of(from_: str, since: str | None) -> str:
    """Return the stated start: of --since if it is given, which excludes --from."""
    if since is None:
        return from_
    if click.get_current_context().get_parameter_source("from_") is ParameterSource.COMMANDLINE:
        raise click.UsageError("Give --from or --since, not both.")
    return since


def _shown(found: datetime) -> str:
    return found.isoformat(timespec="microseconds").replace("+00:00", "Z")
