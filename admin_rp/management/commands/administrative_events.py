"""`manage.py administrative_events`: print the catalogue as JSON; `--write` puts its tables into docs/administrative-events.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from admin_rp.catalogue import exported
from admin_rp.documentation import filled


class Command(BaseCommand):
    help = "Print the catalogue of administrative events as JSON, or write its tables into the documents."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--write", action="store_true", help="update docs/administrative-events.md")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["write"]:
            self.stdout.write(exported().decode())
            return
        path = Path(settings.BASE_DIR) / "docs" / "administrative-events.md"
        path.write_text(filled(path.read_text()))
