"""`manage.py audit_check`: walk the audit's chain and say whether anybody changed, removed or inserted entries."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from eventing.audit.selectors import audit_check
from eventing.audit.services import chain_key


class Command(BaseCommand):
    """Exit code 1 when something is wrong."""

    help = (
        "Check that no audit entry was changed, removed or inserted. Keep the head it prints: it proves the end later."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How to print, and what is known from before."""
        parser.add_argument("--json", action="store_true", help="print a JSON object")
        parser.add_argument("--head", metavar="ID:SEAL", help="a head printed earlier, which must still be there")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check and print."""
        found = audit_check(key=chain_key(), head=options["head"])
        if options["json"]:
            self.stdout.write(json.dumps(asdict(found)))
        else:
            self.stdout.write(
                f"{found.entries} entries, {found.first} to {found.last}. Head: {found.last}:{found.head}"
            )
            if found.other_keys:
                self.stdout.write(
                    f"{found.other_keys} entries were sealed under another secret key: only their order was checked."
                )
            for sentence in found.wrong:
                self.stdout.write(sentence)
        if found.wrong:
            raise CommandError("The audit is not as it was written.")
