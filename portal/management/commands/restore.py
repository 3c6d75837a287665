"""`manage.py restore FILE`: make a domain of a backup, in the configured data folder and stores. See portal/supervisor/backup."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from eventing.conf import config
from portal.supervisor.backup.errors import BackupError
from portal.supervisor.backup.progress import BackupProgress
from portal.supervisor.backup.restoring import backup_restore


class Command(BaseCommand):
    """Write what a backup holds into the data folder and the stores."""

    help = "Restore a backup into an empty data folder and empty stores. The domain must not run; start it afterwards."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the file and the options."""
        parser.add_argument("file", help="file of herald backup; - for a pipe")
        parser.add_argument(
            "--replace",
            action="store_true",
            help="move what is in the data folder aside, and empty stores that are elsewhere",
        )
        parser.add_argument("--without-records", action="store_true", help="leave out access records and reports")
        parser.add_argument("--json", action="store_true", help="print a JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore it."""
        progress = BackupProgress(quiet=options["json"])
        records = not options["without_records"]
        try:
            found = backup_restore(
                config(), options["file"], records=records, replace=options["replace"], progress=progress
            )
        except BackupError as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            self.stdout.write(json.dumps(found))
            return
        progress.note(
            f"Restored the domain {found['domain']} in {found['seconds']:.1f} s, as it was at {found['began_at']} "
            f"({found['age_s'] / 3600:.1f} hours ago). What it acknowledged since then is lost here."
        )
        if found["aside"]:
            progress.note(f"What was in the data folder is in {found['aside']}.")
        if found["settings"]:
            progress.note(
                f"Stated when the backup was made, and not or otherwise here: {', '.join(found['settings'])}."
            )
        progress.note("Start it: make run. Every rendezvous point continues in a new epoch.")
