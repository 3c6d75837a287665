"""`manage.py verify_chain [RP ...]`: verify logs by the seals of their feeds and this domain's own heads."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from eventing.core import names
from eventing.core.errors import ApplicationError
from eventing.replication.selectors.seal_chain import SealChainCheck, chain_check
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get, rp_ids

PROGRESS_S = 1.0  # between two lines on a terminal


class Command(BaseCommand):
    """Verify logs. Exit code 1 if one is wrong, or an RP is unknown."""

    help = (
        "Verify that the events held here are those that their origins signed: Merkle roots, links and signatures of "
        "all seals, each event against its seal, and the last own seal against the database. Default: all "
        "rendezvous points."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options: RPs, and format of the output."""
        parser.add_argument("rps", nargs="*", metavar="RP", help="id or name")
        parser.add_argument("--json", action="store_true", help="print a JSON object per rendezvous point")

    def handle(self, *args: Any, **options: Any) -> None:
        """Verify and print."""
        rps = [self._id(reference) for reference in options["rps"]] or list(rp_ids())
        wrong = 0
        for rp in rps:
            found = chain_check(rp, self._progress(rp))
            wrong += bool(found.wrong)
            if options["json"]:
                self.stdout.write(json.dumps({**asdict(found), "feeds": [asdict(one) for one in found.feeds.values()]}))
            elif found.wrong or options["rps"] or found.events:
                self._show(found)
        if not options["json"]:
            self.stdout.write(f"{len(rps)} rendezvous points checked, {wrong} of them wrong.")
        if wrong:
            raise CommandError("Some logs differ from what was signed.")

    def _id(self, reference: str) -> str:
        if names.is_id(reference):
            return reference
        try:
            return rendezvous_point_get(reference).id
        except ApplicationError as error:
            raise CommandError(error.detail) from None

    def _show(self, found: SealChainCheck) -> None:
        if not found.epoch:
            self.stdout.write(f"{found.rp}: no log.")
        else:
            state = "WRONG" if found.wrong else "as signed"
            self.stdout.write(
                f"{found.rp}: {state}. {found.events} events in the epoch {found.epoch} compared with their seals"
                + (f", {found.unsealed} of this domain's own are not sealed yet." if found.unsealed else ".")
            )
        for feed in found.feeds.values():
            if feed.seals:
                self.stdout.write(
                    f"  {feed.origin} {feed.epoch}: {feed.events} events, {feed.seals} seals, to {feed.sealed}"
                )
            for first, last in feed.gaps:
                self.stdout.write(
                    f"    {first} to {last} are covered by no seal: they were trimmed before they were sealed, or "
                    "never received"
                )
        for sentence in found.wrong:
            self.stdout.write(f"  {sentence}")

    def _progress(self, rp: str) -> Any:
        """Return a function that prints on stderr, once a second, the progress in a long log."""
        begun = shown = time.monotonic()

        def say(done: int, total: int) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - shown >= PROGRESS_S:
                shown = now
                self.stderr.write(f"{rp}: {done} of {total} events, {done / (now - begun):.0f} a second")

        return say
