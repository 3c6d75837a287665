"""`manage.py route_tables`: measure plans of routes and write docs/federation/reliability-tables.md."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from random import Random
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from eventing.sim.routes import tables
from eventing.sim.routes.page import page

INTO = Path(__file__).parents[3] / "docs" / "federation" / "reliability-tables.md"
GRAPHS, ROUNDS, COUNTED, TRIALS = 4, 60, 1_000, 1_000_000
"""Of the page in docs/federation."""
STRICT = 8
"""Graphs of 30 domains that are planned for with the strict target."""
DELIVERIES = 2
"""Graphs of 30 domains on which deliveries are simulated, over two plans each."""


class Command(BaseCommand):
    """Measure and write."""

    help = (
        "Measure the evaluator, plans, local decisions and simulated delivery of routes, from seeds: minutes of a core."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--graphs", type=int, default=GRAPHS, help=f"graphs of 30 domains ({GRAPHS})")
        parser.add_argument(
            "--rounds", type=int, default=ROUNDS, help=f"rounds of the search for the optimum ({ROUNDS})"
        )
        parser.add_argument("--counted", type=int, default=COUNTED, help=f"small graphs to count ({COUNTED})")
        parser.add_argument("--trials", type=int, default=TRIALS, help=f"simulated runs over each plan ({TRIALS})")
        parser.add_argument("--into", type=Path, default=INTO, metavar="FILE", help="file to write")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure, telling progress, and write."""
        if min(options[name] for name in ("graphs", "counted", "trials")) < 1 or options["rounds"] < 0:
            raise CommandError("--graphs, --counted and --trials: 1 or more; --rounds: 0 or more", returncode=2)
        forms = list(tables.closed_forms())
        counted = tables.against_counting(Random, options["counted"])
        self.stdout.write(f"counted {counted.graphs} graphs: largest difference {counted.largest:.0e}")
        fewest = list(tables.fewest_links())
        deliveries = []
        for delivery in tables.deliveries(Random, DELIVERIES, options["trials"]):
            deliveries.append(delivery)
            self.stdout.write(str(delivery))
        strict = list(tables.strict_plans(Random, STRICT))
        local = []
        for outcome in tables.local_decisions(Random, options["graphs"], options["rounds"]):
            local.append(outcome)
            self.stdout.write(str(outcome))
            text = page(
                options=f"--graphs {len(local)} "
                + " ".join(f"--{name} {options[name]}" for name in ("rounds", "counted", "trials")),
                forms=forms,
                counted=counted,
                fewest=fewest,
                local=local,
                search_rounds=options["rounds"],
                strict=strict,
                deliveries=deliveries,
                trials=options["trials"],
            )
            options["into"].write_text(text, encoding="utf-8")  # a run that is stopped leaves what it has measured
