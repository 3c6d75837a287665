"""Migrations of the database as an act of one process at a time, on a connection to the server itself.

Life of an act: wait for the lock that only one process of a domain holds -> apply what is pending -> where a table was in use for
longer than the engine waits (eventing/sql/postgresql/schema.py), pause and go on with the same migration -> release the lock.
A process that waited finds nothing pending.

A migration whose name ends in CONTRACT takes away what older releases use. All others only add (tests/sql/migration_linter.py
refuses the rest), so a release runs on a schema that has migrations it does not know, unless one of these is a CONTRACT.
"""

from __future__ import annotations

import fcntl
import logging
import os
import pkgutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, connection, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

CONTRACT = "_contract"
"""End of the name of a migration on whose schema older releases do not run."""

LOCK_WAIT_S_MAX = 600.0  # bound: seconds that a process waits for another one's migrations; it gives up
LOCK_POLL_S = 0.25
REPEAT_S_MAX = 60.0  # bound: seconds for which a migration is repeated that finds its table in use; it fails
REPEAT_PAUSE_S = 1.0
_MIGRATION_LOCK = 0x48455243  # beside those of eventing/sql/locking.py
_IN_USE = frozenset({"55P03", "40P01"})
"""PostgreSQL's states lock_not_available and deadlock_detected."""

log = logging.getLogger(__name__)


class MigrationLockTimeout(DatabaseError):
    """Another process has been migrating the same database for longer than LOCK_WAIT_S_MAX."""


@dataclass(frozen=True, slots=True)
class SchemaState:
    """Migrations as APP.NAME: `pending` are not applied yet, `unknown` are applied and not of this release."""

    pending: list[str]
    unknown: list[str]

    @property
    def incompatible(self) -> list[str]:
        """Unknown migrations on whose schema this release does not run."""
        return [name for name in self.unknown if name.endswith(CONTRACT)]


def schema_state() -> SchemaState:
    """Compare the database with this release's migrations. Raises DatabaseError when it does not answer."""
    loader = MigrationLoader(connection)
    applied, ours = set(loader.applied_migrations), set(loader.disk_migrations)
    replaced = {key for migration in loader.disk_migrations.values() for key in migration.replaces}
    return SchemaState(
        pending=sorted(f"{app}.{name}" for app, name in ours - applied),
        # migrations of apps that are installed no more do no harm
        unknown=sorted(f"{app}.{name}" for app, name in applied - ours - replaced if app in loader.migrated_apps),
    )


def schema_unknown() -> SchemaState:
    """Return the state without `pending`. Usually one query: modules of migrations are loaded only where names are unknown."""
    ours = {(one.label, name) for one in apps.get_app_configs() for name in _files(f"{one.name}.migrations")}
    labels = {label for label, _ in ours}
    applied = MigrationRecorder(connection).applied_migrations()
    if all(key in ours for key in applied if key[0] in labels):
        return SchemaState([], [])
    return SchemaState([], schema_state().unknown)


def _files(package: str) -> list[str]:
    try:
        found = import_module(package)
    except ModuleNotFoundError:
        return []
    return [one.name for one in pkgutil.iter_modules(found.__path__) if one.name[0].isdigit()]


@contextmanager
def direct_connection(alias: str = DEFAULT_DB_ALIAS, *, pooler: bool = False) -> Iterator[None]:
    """Give this thread a connection of its own, none of the pool, to the server itself: to HERALD_MIGRATION_DATABASE_URL where it is set.

    Args:
        pooler: to HERALD_DATABASE_URL in any case, for who only reads.
    """
    before: Any = connections[alias]
    if before.vendor != "postgresql":
        yield
        return
    place = {} if pooler else before.settings_dict.get("DIRECT", {})
    direct = {**before.settings_dict, **place, "POOL": None}
    made = type(before)(direct, alias)
    connections[alias] = made
    try:
        yield
    finally:
        made.close()
        connections[alias] = before


@contextmanager
def migration_lock(
    alias: str = DEFAULT_DB_ALIAS, *, wait_s: float = LOCK_WAIT_S_MAX, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold the lock of migrations: of the database, on PostgreSQL; of the file, on SQLite. Raises MigrationLockTimeout.

    Args:
        waiting: called once if another process holds the lock.
    """
    found: Any = connections[alias]
    held = _postgresql_lock if found.vendor == "postgresql" else _sqlite_lock
    with held(found, _Turns(wait_s, waiting)):
        yield


def repeated_while_in_use(work: Callable[[], object], *, repeat_s: float = REPEAT_S_MAX) -> None:
    """Run `work` again, for as long as it fails because a table is in use."""
    until = time.monotonic() + repeat_s
    while True:
        try:
            work()
            return
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") not in _IN_USE or time.monotonic() >= until:
                raise
            log.warning("A migration waits for a table that is in use: %s", " ".join(str(error).split()))
            time.sleep(REPEAT_PAUSE_S)


class _Turns:
    """Pauses of a process that waits for the lock."""

    def __init__(self, wait_s: float, waiting: Callable[[], None]) -> None:
        self._until = time.monotonic() + wait_s
        self._waiting: Callable[[], None] | None = waiting

    def pause(self) -> None:
        """Wait for the next try. Raises MigrationLockTimeout."""
        if time.monotonic() >= self._until:
            raise MigrationLockTimeout("Another process has been migrating this database for too long.")
        if self._waiting is not None:
            self._waiting()
            self._waiting = None
        time.sleep(LOCK_POLL_S)


@contextmanager
def _postgresql_lock(found: Any, turns: _Turns) -> Iterator[None]:
    # A transaction's lock: a pooler cannot strand it. Tried again instead of waited for: a statement that waits would have a
    # snapshot, for which CREATE INDEX CONCURRENTLY waits.
    import psycopg  # on SQLite no process loads it

    with psycopg.connect(**found.get_connection_params()) as locker:
        while True:
            locker.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            row = locker.execute("SELECT pg_try_advisory_xact_lock(%s)", [_MIGRATION_LOCK]).fetchone()
            if row is not None and row[0]:
                break
            locker.rollback()
            turns.pause()
        yield
        locker.rollback()


@contextmanager
def _sqlite_lock(found: Any, turns: _Turns) -> Iterator[None]:
    name = found.settings_dict["NAME"]
    if found.is_in_memory_db() or not Path(name).parent.is_dir():
        yield
        return
    descriptor = os.open(f"{name}.migrating", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                turns.pause()
        yield
    finally:
        os.close(descriptor)
