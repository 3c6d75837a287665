"""`manage.py backup FILE`: make a backup of the domain, running or not, or check one (`--check`). See portal/supervisor/backup."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from eventing.conf import config
from portal.supervisor.backup.checking import check, source_opened
from portal.supervisor.backup.errors import BackupError
from portal.supervisor.backup.making import backup_make
from portal.supervisor.backup.output import PIPE
from portal.supervisor.backup.progress import BackupProgress, size


class Command(BaseCommand):
    """Write everything that a domain is into one file."""

    help = "Back up the domain into one file, without stopping it. The file holds the domain's keys: keep it secret."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the file and the options."""
        parser.add_argument("file", help="file to write, or to check; - for a pipe")
        parser.add_argument(
            "--check", action="store_true", help="verify the checksums of an existing backup, and change nothing"
        )
        parser.add_argument("--without-records", action="store_true", help="leave out access records and reports")
        parser.add_argument("--force", action="store_true", help="replace the file if it exists")
        parser.add_argument("--json", action="store_true", help="print a JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make or check it."""
        file, progress = options["file"], BackupProgress(quiet=options["json"])
        if options["json"] and file == PIPE and not options["check"]:
            raise CommandError("--json prints on stdout, where the backup goes with -; leave one of them out.")
        try:
            if options["check"]:
                with source_opened(file) as content:
                    found = check(content, progress).as_dict()
            else:
                records = not options["without_records"]
                found = backup_make(config(), file, records=records, replace=options["force"], progress=progress)
        except BackupError as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            self.stdout.write(json.dumps(found))
        elif options["check"]:
            progress.note(
                f"Whole: domain {found['domain']}, begun {found['began_at']}, Herald {found['version']}, {found['logs']:,} logs, "
                f"{found['events']:,} events, {found['rows']:,} rows, {size(found['bytes'])}."
            )
        else:
            where = "the pipe" if file == PIPE else file
            progress.note(
                f"Backed up to {where}: {size(found['bytes'])} in {found['seconds']:.1f} s. It holds the domain's keys."
            )
