"""`manage.py audit_check`: verify the audit's chain: no entry changed, removed or inserted."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from eventing.audit.selectors import audit_check
from eventing.audit.services import chain_key


class Command(BaseCommand):
    """Verify the chain of the audit. Exit code 1 if it is broken."""

    help = (
        "Check that no audit entry was changed, removed or inserted. Keep the printed head: with it a later check "
        "proves that no entry was removed from the end."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options: format of the output, and a known head."""
        parser.add_argument("--json", action="store_true", help="print a JSON object")
        parser.add_argument(
            "--head", metavar="ID:SEAL", help="a head printed earlier, which must still be in the chain"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Verify and print."""
        found = audit_check(key=chain_key(), head=options["head"])
        if options["json"]:
            self.stdout.write(json.dumps(asdict(found)))
        else:
            self.stdout.write(
                f"{found.entries} entries, {found.first} to {found.last}. Head: {found.last}:{found.head}"
            )
            if found.other_keys:
                self.stdout.write(
                    f"{found.other_keys} entries were sealed with another secret key: only their order was checked."
                )
            for sentence in found.wrong:
                self.stdout.write(sentence)
        if found.wrong:
            raise CommandError("The audit was changed after it was written.")
