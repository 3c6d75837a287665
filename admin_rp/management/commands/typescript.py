"""`manage.py typescript`: write the TypeScript declarations of answers; `--check` fails where they are stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from admin_rp.typescript import FILES, declarations


class Command(BaseCommand):
    help = "Write the TypeScript declarations of answers into the console and the JavaScript client."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is stale")

    def handle(self, *args: Any, **options: Any) -> None:
        for name, shapes in FILES.items():
            path, text = Path(settings.BASE_DIR) / name, declarations(shapes)
            if not options["check"]:
                path.write_text(text)
            elif path.read_text() != text:
                raise CommandError(f"{name} is stale. Run: make docs")
