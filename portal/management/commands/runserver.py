"""`manage.py runserver`: Django's, serving the ASGI application by daphne, which an installed server has as its extra `runserver`.

This takes the place of listing daphne among the installed apps, which every process of a domain would then import, with
Twisted: a fifth of the time that a process takes to start.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

if find_spec("daphne") is not None:
    from daphne.management.commands.runserver import Command
else:
    from django.core.management.base import BaseCommand

    from portal.installation import DISTRIBUTION, run_command

    class Command(BaseCommand):  # type: ignore[no-redef]
        """Say what is missing."""

        help = f"Django's development server; needs {DISTRIBUTION}[runserver]"

        def run_from_argv(self, argv: list[str]) -> None:
            """Refuse, whatever the options are."""
            sys.exit(
                f"runserver needs daphne (pip install '{DISTRIBUTION}[runserver]'). A domain is started by: {run_command()}"
            )


__all__ = ["Command"]
