"""`manage.py overlay_pictures`: draw the pictures of docs/federation/overlay-explained.md from a simulated federation."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from random import Random
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from eventing.sim.pictures.drawings import pictures
from eventing.sim.pictures.recording import DOMAINS, SEED, record

INTO = Path(__file__).parents[3] / "docs" / "federation" / "overlay-pictures"
DOMAINS_MIN, DOMAINS_MAX = 30, 500
"""Of fewer domains too few are left after the crash; more cannot be distinguished."""


class Command(BaseCommand):
    """Draw the pictures."""

    help = "Draw directory, links and broadcast trees of a simulated federation as SVG. The same seed draws the same pictures."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--domains", type=int, default=DOMAINS, help=f"number of domains ({DOMAINS})")
        parser.add_argument("--seed", type=int, default=SEED, help=f"draws everything that is left to chance ({SEED})")
        parser.add_argument("--into", type=Path, default=INTO, metavar="DIR", help="folder of the files")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run and draw."""
        if not DOMAINS_MIN <= options["domains"] <= DOMAINS_MAX:
            raise CommandError(f"--domains: from {DOMAINS_MIN} to {DOMAINS_MAX}", returncode=2)
        into: Path = options["into"]
        into.mkdir(parents=True, exist_ok=True)
        for name, text in pictures(record(Random, domains=options["domains"], seed=options["seed"])).items():
            (into / name).write_text(text, encoding="utf-8")
