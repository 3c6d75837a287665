"""Starts of reading: a word, a cursor, or a time, as the domain reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from herald.errors import InputError, Problem

TIME_PREFIX = "time:"
_UNSUPPORTED = (
    "This domain does not support a start by time: its version is older. Begin at earliest, last or a cursor."
)


def start_text(start: str | datetime) -> str:
    """Return a start as it is sent.

    Args:
        start: `now`, `earliest`, `last`, a cursor, a datetime, or `time:` and a time of ISO 8601; a time without a zone is
            local.

    Raises InputError for a time that is none.
    """
    if isinstance(start, str):
        if not start.startswith(TIME_PREFIX):
            return start
        try:
            start = datetime.fromisoformat(start.removeprefix(TIME_PREFIX))
        except ValueError:
            raise InputError(f"{start!r} is no time. Write it as time:2026-11-24T02:50:00Z.") from None
    try:
        found = start.astimezone(UTC)
    except (OverflowError, OSError):
        raise InputError(f"{start} is no time that a domain knows.") from None
    return TIME_PREFIX + found.isoformat(timespec="microseconds").replace("+00:00", "Z")


def explained(error: Problem, start: str | None) -> Problem:
    """Return the error of a domain about a start; where the domain knows no times, the error states that."""
    if error.code != "invalid-cursor" or start is None or not start.startswith(TIME_PREFIX):
        return error
    return Problem(error.type, error.title, error.status, _UNSUPPORTED, extra=error.extra)


@contextmanager
def starting(start: str) -> Iterator[None]:
    """Raise a domain's Problem about `start` as `explained` has it."""
    try:
        yield
    except Problem as error:
        raise explained(error, start) from None
