"""The engine `eventing.sql.postgresql` of DATABASES: Django's PostgreSQL with connections of a BoundedPool.

Settings of its own: `POOL`, {"max_size": connections of this process}, without which each thread has a connection of its own,
`ABANDONED_S`, after which the server ends a transaction in which nothing is sent (of connections of a pool; None: never), and `DIRECT`, the place of the server itself where DATABASES names a pooler such as pgbouncer (eventing/sql/migrating.py).

Django's option `pool` is not used: Celery closes such a pool before and after each task, and a pool that was open before a fork
would serve the child with the parent's connections. Here a forked child begins without pools.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

from django.db import connections
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper, OperationalError
from django.utils.functional import cached_property
from psycopg.errors import IdleInTransactionSessionTimeout

from eventing.core.container import per_process
from eventing.sql.postgresql.pool import BoundedPool
from eventing.sql.postgresql.schema import DatabaseSchemaEditor

END_S = 1.0
"""Seconds that the end of a process waits for the threads of its pool."""


class _ErrorWrapper(DatabaseErrorWrapper):
    """Makes Django's errors of psycopg's. A transaction that the server has ended because nothing was sent in it is a lost connection, which
    callers expect, and no internal error."""

    wrapper: Any  # not in its stubs

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, IdleInTransactionSessionTimeout):
            self.wrapper.errors_occurred = True
            raise OperationalError(*error.args).with_traceback(trace) from error
        super().__exit__(kind, error, trace)


class DatabaseWrapper(base.DatabaseWrapper):
    """One thread's use of the database: it borrows a connection for its first query, and returns it when it is closed."""

    SchemaEditorClass = DatabaseSchemaEditor
    _connection_pools: dict[str, BoundedPool]

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        """Context manager in which Django's errors are raised."""
        return _ErrorWrapper(self)

    @property
    def pool(self) -> BoundedPool | None:
        """The pool of this process; None where each thread has a connection of its own."""
        options = self.settings_dict.get("POOL")
        if self.alias == NO_DB_ALIAS or not options:
            return None
        if self.alias not in self._connection_pools:
            made = BoundedPool(
                kwargs={**self.get_connection_params(), "autocommit": True},
                configure=self._opened,
                **options,
            )
            # Of several threads that make one the first wins; a pool without a connection has no threads yet.
            if self._connection_pools.setdefault(self.alias, made) is made:
                atexit.register(made.close, timeout=END_S)
        return self._connection_pools[self.alias]

    def _opened(self, connection: Any) -> None:
        """Configure a new connection of the pool."""
        after_s = self.settings_dict.get("ABANDONED_S")
        if after_s is not None:
            connection.execute(f"SET idle_in_transaction_session_timeout = '{after_s:g}s'")
        self._configure_connection(connection)  # type: ignore[attr-defined]  # not in its stubs

    def close_pool(self) -> None:
        """Close the pool; the next query begins another."""
        found = self._connection_pools.pop(self.alias, None)
        if found is not None:
            atexit.unregister(found.close)
            found.close()


@per_process
def _inherited() -> list[Any]:
    """Pools and connections of the parent of this process."""
    return []


def _after_fork() -> None:
    """Begin without pools in a forked child. What is the parent's is kept: to delete it would end the parent's connections."""
    inherited = _inherited()
    inherited.append(dict(DatabaseWrapper._connection_pools))
    DatabaseWrapper._connection_pools.clear()
    for one in connections.all(initialized_only=True):
        if isinstance(one, DatabaseWrapper) and one.connection is not None:
            inherited.append(one.connection)
            one.connection = None


os.register_at_fork(after_in_child=_after_fork)
