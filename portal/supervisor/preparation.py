"""Preparation of the database before the gateways start: tables, the domain's key, an administrator."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.management import CommandError, call_command
from django.core.management.commands import migrate as migrate_command
from django.db import DatabaseError, OperationalError, connection
from django.db.migrations.exceptions import InconsistentMigrationHistory

from eventing.access.services.tokens import ensure_domain_key
from eventing.core.config import Config
from eventing.sql.migrating import direct_connection, migration_lock, repeated_while_in_use, schema_state
from portal.accounts.services.login_links import ensure_administrator, login_link_create
from portal.supervisor.errors import StartError
from portal.supervisor.newer_schema import too_new


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """Database in use, and the migrations that it lacks (`pending`) or has beyond this version's (`unknown`; `incompatible`: of
    these, those on whose schema this version does not run)."""

    vendor: str
    pending: list[str]
    unknown: list[str]
    incompatible: list[str]


def database_state() -> DatabaseState:
    """Compare the database with this version's migrations. Raises DatabaseError when it does not answer."""
    found = schema_state()
    vendor = "SQLite" if connection.vendor == "sqlite" else "PostgreSQL"
    return DatabaseState(vendor, found.pending, found.unknown, found.incompatible)


def prepare_database(migrate: str) -> str:
    """Migrate. Returns a sentence on the result. Raises StartError when the database is unreachable, too new, or not to be migrated.

    Args:
        migrate: `auto`, or `never` to refuse the start while migrations are pending (HERALD_MIGRATE).
    """
    try:
        state = database_state()
        if state.incompatible:
            raise StartError(too_new(state.incompatible))
        if state.pending and migrate == "never":
            raise StartError(
                f"The database lacks {len(state.pending)} migrations (the first is {state.pending[0]}), and HERALD_MIGRATE is "
                "never; run manage.py migrate, then start."
            )
        applied = _migrate() if state.pending else 0
    except OperationalError as error:
        where = (
            "Check HERALD_DATABASE_URL and that the server runs"
            if connection.vendor != "sqlite"
            else "Check the data folder"
        )
        raise StartError(f"The database does not answer ({_one_line(error)}). {where}.") from None
    except (DatabaseError, InconsistentMigrationHistory, CommandError) as error:
        raise StartError(
            f"The database cannot be migrated ({_one_line(error)}); restore a backup, or report this."
        ) from None
    if applied:
        return f"{state.vendor}, {applied} migrations applied"
    if state.unknown:
        return f"{state.vendor}, of a newer version that this one is compatible with"
    return f"{state.vendor}, up to date"


def _migrate() -> int:
    """Apply what is pending, and return how many; 0 if another process did it meanwhile. Raises DatabaseError, CommandError."""
    with direct_connection(), migration_lock():
        pending = schema_state().pending
        if pending:
            repeated_while_in_use(lambda: call_command(migrate_command.Command(), interactive=False, verbosity=0))
        return len(pending)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def prepare_identity() -> None:
    """Make the domain's signing key, when there is none."""
    ensure_domain_key()


def login_url(config: Config) -> str | None:
    """Return a one-time link for the first administrator, created at the first start. None when an administrator can
    log in already."""
    administrator = ensure_administrator()
    return config.base_url + login_link_create(administrator) if administrator else None
