#!/usr/bin/env python
"""Django's command line: migrate, runserver (daphne), and Herald's own commands (run, token, doctor)."""

import os
import sys


def main() -> None:
    """Run the command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    from django.core.management import execute_from_command_line

    from eventing.core.errors import ConfigError

    try:
        execute_from_command_line(sys.argv)
    except ConfigError as error:
        sys.exit(f"Herald did not start. {error}")


if __name__ == "__main__":
    main()
