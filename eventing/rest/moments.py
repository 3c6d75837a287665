"""Times in queries and bodies."""

from __future__ import annotations

from datetime import datetime

from django.utils.dateparse import parse_datetime

from eventing.core.errors import InvalidRequest

YEAR_MIN, YEAR_MAX = 2, 9998
"""Years accepted: with an offset, a time outside may be beyond the range of a database or of Python."""


def moment(name: str, text: str | None) -> datetime | None:
    """Parse the member `name`, RFC 3339 with its offset; None for none. Raises InvalidRequest."""
    if text is None:
        return None
    try:
        found = parse_datetime(text.replace(" ", "+"))  # an unquoted "+" of an offset arrives in a query as a space
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or not YEAR_MIN <= found.year <= YEAR_MAX:
        raise InvalidRequest(f"{name} must be a time with its offset, such as 2026-11-21T08:00:00Z.")
    return found
