"""Preparation of the database before the gateways start: tables, the domain's key, an administrator."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.management import call_command
from django.db import DatabaseError, OperationalError, connection
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor

from eventing.access.services.tokens import ensure_domain_key
from eventing.core.config import Config
from portal.accounts.services.login_links import ensure_administrator, login_link_create
from portal.supervisor.errors import StartError


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """`unknown`: migrations that the database has and this version does not; `pending`: the other way round."""

    vendor: str
    pending: list[str]
    unknown: list[str]


def database_state() -> DatabaseState:
    """Compare the database with this version's migrations. Raises DatabaseError when it does not answer."""
    loader = MigrationExecutor(connection).loader
    applied, ours = set(loader.applied_migrations), set(loader.disk_migrations)
    replaced = {key for migration in loader.disk_migrations.values() for key in migration.replaces}
    return DatabaseState(
        vendor="SQLite" if connection.vendor == "sqlite" else "PostgreSQL",
        pending=sorted(f"{app}.{name}" for app, name in ours - applied),
        # migrations of apps that are installed no more do no harm; newer ones of ours do
        unknown=sorted(f"{app}.{name}" for app, name in applied - ours - replaced if app in loader.migrated_apps),
    )


def prepare_database() -> str:
    """Migrate. Returns a sentence on the result. Raises StartError when the database is unreachable or too new."""
    try:
        state = database_state()
        if state.unknown:
            raise StartError(
                f"The database was used by a newer Herald (it has {state.unknown[-1]}); start that version, or restore a backup "
                "from before."
            )
        if state.pending:
            call_command("migrate", interactive=False, verbosity=0)
    except OperationalError as error:
        where = (
            "Check HERALD_DATABASE_URL and that the server runs"
            if connection.vendor != "sqlite"
            else "Check the data folder"
        )
        raise StartError(f"The database does not answer ({_one_line(error)}). {where}.") from None
    except (DatabaseError, InconsistentMigrationHistory) as error:
        raise StartError(
            f"The database cannot be migrated ({_one_line(error)}); restore a backup, or report this."
        ) from None
    return (
        f"{state.vendor}, {len(state.pending)} migrations applied" if state.pending else f"{state.vendor}, up to date"
    )


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
