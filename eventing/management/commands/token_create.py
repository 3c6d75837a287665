"""`manage.py token_create`: sign a token of this domain; requires access to the data folder."""

from __future__ import annotations

import getpass
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from eventing.access.services.tokens import token_create
from eventing.core.errors import ApplicationError
from eventing.core.principals import OPERATIONS
from eventing.core.timestamps import timestamp


class Command(BaseCommand):
    """Sign a token. Prints only the token when the output is not a terminal."""

    help = "Sign a token of this domain. Prints only the token when the output is not a terminal."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options: the claims of the token."""
        parser.add_argument("--subject", help="subject of the token (default: the system user, or admin with --admin)")
        parser.add_argument("--admin", action="store_true", help="give it the role of administrator")
        parser.add_argument("--lease-s", type=int, help="lifetime, seconds")
        parser.add_argument(
            "--ops", help=f"narrow it to these operations, separated by commas: {', '.join(OPERATIONS)}"
        )
        parser.add_argument(
            "--scope",
            action="append",
            metavar="RP,...=OP,...",
            help="narrow it to operations at rendezvous points",
        )
        parser.add_argument("--audience", help="the domain that accepts it (default: this one)")
        parser.add_argument("--json", action="store_true", help="print a JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sign and print."""
        operations = None if options["ops"] is None else [op for op in options["ops"].split(",") if op]
        subject = options["subject"] or ("admin" if options["admin"] else getpass.getuser())
        try:
            issued = token_create(
                subject=subject,
                admin=options["admin"],
                lease_s=options["lease_s"],
                operations=operations,
                scopes=None if options["scope"] is None else [_scope(text) for text in options["scope"]],
                audience=options["audience"],
            )
        except ApplicationError as error:
            raise CommandError(error.detail) from None
        until = timestamp(issued.expires_at)
        if options["json"]:
            answer = {"token": issued.token, "subject": subject, "granted_s": issued.granted_s, "expires_at": until}
            self.stdout.write(json.dumps(answer))
            return
        if self.stdout.isatty():
            role = "administrator " if issued.admin else ""
            self.stderr.write(f"Token of {role}{subject}, valid until {until}:")
        self.stdout.write(issued.token)


def _scope(text: str) -> dict[str, list[str]]:
    rps, _, operations = text.rpartition("=")
    return {"rps": [rp for rp in rps.split(",") if rp], "ops": [op for op in operations.split(",") if op]}
