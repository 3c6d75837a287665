"""`manage.py migrate`: Django's, by one process at a time, on a connection to the server itself (eventing/sql/migrating.py)."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate

from eventing.sql.migrating import (
    MigrationLockTimeout,
    direct_connection,
    migration_lock,
    repeated_while_in_use,
    schema_unknown,
)


class Command(migrate.Command):
    help = "Apply the migrations of the database, unless another process does; then wait for that one."

    def handle(self, *args: Any, **options: Any) -> None:
        alias = options["database"]
        with direct_connection(alias):
            newer = schema_unknown().incompatible
            if newer:
                raise CommandError(
                    f"The database was used by a newer Herald (it has {newer[-1]}); start that version, or restore a backup "
                    "from before."
                )
            if options["plan"] or options["check_unapplied"]:
                super().handle(*args, **options)
                return
            try:
                with migration_lock(alias, waiting=lambda: self._note(options)):
                    repeated_while_in_use(lambda: self._apply(*args, **options))
            except MigrationLockTimeout as error:
                raise CommandError(f"{error} Look for a migration that waits, then try again.") from None

    def _apply(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **options)

    def _note(self, options: dict[str, Any]) -> None:
        if options["verbosity"] > 0:
            self.stdout.write("Another process migrates this database; waiting for it.")
