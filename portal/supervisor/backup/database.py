"""The database of a backup: a copy of the SQLite file, or the rows of PostgreSQL by table.

Rows are read by COPY in one transaction that sees one instant (REPEATABLE READ), and written by COPY into tables that this
version's migrations make, up to those of the backup. So nothing of a backup is run as SQL, neither side needs pg_dump in
the server's version, and all of a restore is one transaction.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from portal.supervisor.backup.errors import BackupError

RECORD, AUDITED = "django_migrations", "eventing_auditentry"
_NAME = re.compile(r"[a-z0-9_]{1,63}", re.ASCII)
_PLAIN = re.compile(r"CREATE (?:TABLE|(?:UNIQUE )?INDEX) ")
_TRIGGER = re.compile(
    r"CREATE TRIGGER audit_entry_(?:update|delete) BEFORE (?:UPDATE|DELETE) ON eventing_auditentry\s"
    r"(?:WHEN NOT \([\w\s.<>='(),+-]*\)\s*)?BEGIN SELECT RAISE\(ABORT, '[a-z ]*'\); END"
)
"""The only code in a database of Herald: it refuses changes of the audit."""


def migrations_unknown(stated: Sequence[str]) -> list[str]:
    """Return those of `stated` that this version does not have: a newer one made them."""
    loader = MigrationLoader(None, ignore_no_migrations=True)  # without a look at the database, which may not exist yet
    ours = set(loader.disk_migrations)
    replaced = {key for migration in loader.disk_migrations.values() for key in migration.replaces}
    split = [(app, name) for app, _, name in (one.partition(".") for one in stated)]
    return [
        f"{app}.{name}" for app, name in split if app in loader.migrated_apps and (app, name) not in ours | replaced
    ]


# SQLite


def sqlite_copy(source: Path, copy: Path) -> None:
    """Copy the database at one instant while others write to it."""
    with (
        contextlib.closing(sqlite3.connect(source, timeout=10)) as live,
        contextlib.closing(sqlite3.connect(copy)) as made,
    ):
        live.backup(made)


def sqlite_migrations(path: Path) -> list[str]:
    """Return the migrations of a database, as `app.name`; empty for one without tables."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        try:
            rows = database.execute(f"SELECT app, name FROM {RECORD}").fetchall()  # noqa: S608
        except sqlite3.OperationalError:
            return []
    return sorted(f"{app}.{name}" for app, name in rows)


def sqlite_rows(path: Path) -> int:
    """Count the rows of all tables."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        counts = [f'SELECT count(*) FROM "{name}"' for name in names if _NAME.fullmatch(name)]  # noqa: S608
        return sum(database.execute(count).fetchone()[0] for count in counts)


def sqlite_require_sound(path: Path, stated: Sequence[str]) -> None:
    """Raise BackupError unless the file is a whole database of Herald with these migrations, and has no other code in it."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise BackupError(f"The database in the backup is damaged ({found[:100]}); take another backup.")
            for kind, name, text in database.execute("SELECT type, name, sql FROM sqlite_master"):
                plain = kind in ("table", "index") and (text is None or _PLAIN.match(text))
                if not plain and not (kind == "trigger" and _TRIGGER.fullmatch(_one_line(text))):
                    raise BackupError(
                        f"The database in the backup has a {kind} ({name[:100]!a}) that Herald never makes."
                    )
            rows = database.execute(f"SELECT app, name FROM {RECORD}").fetchall()  # noqa: S608
    except sqlite3.Error as error:
        raise BackupError(f"The database in the backup cannot be read ({error}); take another backup.") from None
    if sorted(f"{app}.{name}" for app, name in rows) != sorted(stated):
        raise BackupError("The database in the backup has other migrations than the backup states; it was altered.")


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


# PostgreSQL


class PostgresSnapshot:
    """The rows of all tables at one instant."""

    def __init__(self) -> None:
        self._connection: psycopg.Connection[Any] = psycopg.connect(**_parameters())
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._connection.read_only = True
        self.rows = 0
        self.migrations = sorted(
            f"{app}.{name}" for app, name in self._connection.execute("SELECT app, name FROM django_migrations")
        )
        self.tables = {
            name: self._columns(name)
            for name in sorted(connection.introspection.django_table_names(only_existing=True))
        }

    def close(self) -> None:
        """End the transaction."""
        self._connection.close()

    def _columns(self, table: str) -> list[str]:
        found = self._connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() "
            "AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position",
            [table],
        )
        return [str(name) for (name,) in found]

    def read(self, table: str) -> Iterator[bytes]:
        """Yield the rows of a table as COPY's text, each a line."""
        statement = sql.SQL("COPY {} ({}) TO STDOUT").format(sql.Identifier(table), _identifiers(self.tables[table]))
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in copy:
                self.rows += 1
                yield bytes(row)


@contextlib.contextmanager
def postgres_prepared(stated: Sequence[str], tables: dict[str, list[str]]) -> Iterator[None]:
    """Make the tables of these migrations anew, without rows, in one transaction that the block fills by `postgres_write`.

    Raises BackupError for tables that these migrations do not have.
    """
    for name, columns in tables.items():
        if not _NAME.fullmatch(name) or not columns or not all(_NAME.fullmatch(one) for one in columns):
            raise BackupError("The backup names tables that Herald does not have; it was altered.")
    with transaction.atomic():
        _drop_all()
        _migrate_to(stated)
        with connection.cursor() as cursor:
            held = {name: _held_columns(cursor, name) for name in connection.introspection.table_names(cursor)}
            for name, columns in tables.items():
                if not set(columns) <= held.get(name, set()):
                    raise BackupError(
                        f"The backup has a table or columns ({name}) that its migrations do not make; it was altered."
                    )
            _triggers(cursor, "DISABLE")  # those of the audit, which refuse to be emptied
            cursor.execute(sql.SQL("TRUNCATE {}").format(_identifiers(sorted(held.keys() & _tables() - {RECORD}))))
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")  # rows come table by table, whatever they refer to
        yield
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            _triggers(cursor, "ENABLE")
            for name, columns in tables.items():
                _set_sequences(cursor, name, columns)


def postgres_write(table: str, columns: Sequence[str], lines: Iterable[bytes]) -> None:
    """Write rows, as `PostgresSnapshot.read` gave them. Raises BackupError for rows that do not fit."""
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), _identifiers(columns))
    try:
        raw: Any = connection.connection
        with raw.cursor() as cursor, cursor.copy(statement) as copy:
            for line in lines:
                copy.write(line)
    except psycopg.DataError as error:
        raise BackupError(
            f"The rows of {table} in the backup cannot be read ({_one_line(str(error))[:200]})."
        ) from None


def postgres_is_empty() -> bool:
    """Return whether the database in use has no table of Herald."""
    return RECORD not in connection.introspection.table_names()


def _tables() -> set[str]:
    """Return the names of this version's tables."""
    return {*connection.introspection.django_table_names(), RECORD}


def _triggers(cursor: Any, change: str) -> None:
    cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a table with checks that wait cannot be altered
    if AUDITED in connection.introspection.table_names(cursor):
        cursor.execute(sql.SQL(f"ALTER TABLE {{}} {change} TRIGGER USER").format(sql.Identifier(AUDITED)))


def _drop_all() -> None:
    with connection.cursor() as cursor:
        for name in set(connection.introspection.table_names(cursor)) & _tables():
            cursor.execute(sql.SQL("DROP TABLE {} CASCADE").format(sql.Identifier(name)))
        cursor.execute("DROP FUNCTION IF EXISTS audit_entry_keep() CASCADE")


def _migrate_to(stated: Sequence[str]) -> None:
    """Apply the stated migrations to an empty database."""
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    wanted = {(app, name) for app, _, name in (one.partition(".") for one in stated)} & set(graph.nodes)
    ends = [
        node
        for node in sorted(wanted)
        if not any(one.key[0] == node[0] and one.key in wanted for one in graph.node_map[node].children)
    ]
    executor.migrate(ends)


def _held_columns(cursor: Any, table: str) -> set[str]:
    return {one.name for one in connection.introspection.get_table_description(cursor, table)}


def _set_sequences(cursor: Any, table: str, columns: Sequence[str]) -> None:
    for column in columns:
        cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [f'"{table}"', column])
        (sequence,) = cursor.fetchone()
        if sequence:
            statement = sql.SQL("SELECT setval(%s, GREATEST((SELECT max({}) FROM {}), 1))")
            cursor.execute(statement.format(sql.Identifier(column), sql.Identifier(table)), [sequence])


def _identifiers(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _parameters() -> dict[str, Any]:
    parameters = connection.get_connection_params()
    return {name: value for name, value in parameters.items() if name in ("dbname", "user", "password", "host", "port")}
