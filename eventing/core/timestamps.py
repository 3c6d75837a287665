"""Instants as text: one form for answers, administrative events and exports."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, microseconds, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def timestamp_of(seconds: float) -> str:
    """`timestamp` of a Unix time in seconds."""
    return timestamp(datetime.fromtimestamp(seconds, UTC))
