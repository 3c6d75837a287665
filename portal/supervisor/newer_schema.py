"""Refusal to run on a schema of a newer release, where that is not compatible (eventing/sql/migrating.py)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from django.db import DatabaseError, connection

log = logging.getLogger(__name__)


def too_new(incompatible: Sequence[str]) -> str:
    """Compose the operator's message about a schema on which this version does not run."""
    return (
        f"The database was used by a newer Herald (it has {incompatible[-1]}); start that version, or restore a backup "
        "from before."
    )


def refuse_newer_schema() -> None:
    """End a process that would run on a schema it does not know, with one sentence. A database that does not answer, or is
    SQLite, which the supervisor checks, is no reason to end."""
    if connection.vendor != "postgresql":
        return
    # Loads psycopg and what applies migrations: a twentieth of a gateway's start.
    from eventing.sql.migrating import direct_connection, schema_unknown

    try:
        with direct_connection(pooler=True):  # no pool is opened before Celery forks
            found = schema_unknown()
    except DatabaseError as error:
        log.warning("The schema of the database could not be checked: %s", " ".join(str(error).split()))
        return
    if found.incompatible:
        sys.exit(f"Herald did not start. {too_new(found.incompatible)}")
    if found.unknown:
        log.info(
            "The database has newer migrations that this version is compatible with, such as %s.", found.unknown[-1]
        )
