"""Instants as text, in one form for answers, administrative events and exports."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """Format an instant by RFC 3339 in UTC, with microseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def timestamp_of(seconds: float) -> str:
    """Format a Unix time in seconds as `timestamp` does."""
    return timestamp(datetime.fromtimestamp(seconds, UTC))
