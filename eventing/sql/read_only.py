"""Detection of a database that takes no writes: a PostgreSQL that is a standby, or was set read-only, answers reads alone."""

from __future__ import annotations

from django.db import connection


def is_read_only() -> bool:
    """Return True if the database refuses writes. Raises DatabaseError."""
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute("SHOW transaction_read_only")
        row = cursor.fetchone()
    return row is not None and row[0] == "on"
