"""Changes of PostgreSQL's tables beside a running domain (docs/versions.md#migrations).

A transaction that waits for the lock of a table makes everything after it wait as well, readers too. So a migration waits for
LOCK_WAIT_S only, fails, and is repeated (eventing/sql/migrating.py). An index that is added by a migration with
`atomic = False` is built beside writers.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import schema
from django.db.models import Index, Model

LOCK_WAIT_S = 2  # bound: seconds that a migration waits for the lock of a table; it fails, and is repeated


class DatabaseSchemaEditor(schema.DatabaseSchemaEditor):
    """Django's, with a bound on waiting for locks, and indexes built concurrently outside of transactions."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        if self.atomic_migration and not self.collect_sql:
            self.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'")
        return entered

    def add_index(self, model: type[Model], index: Index, concurrently: bool = False) -> None:
        """Add an index; concurrently where there is no transaction."""
        concurrently = concurrently or not self.connection.in_atomic_block
        if concurrently and not self.collect_sql and self._left_invalid(index.name):
            super().remove_index(model, index, concurrently=True)  # of an earlier run that was ended
        super().add_index(model, index, concurrently=concurrently)

    def _left_invalid(self, name: str) -> bool:
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [f'"{name}"'])
            row = cursor.fetchone()
        return bool(row and row[0])
