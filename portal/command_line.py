"""The command line of the server: manage.py in a source tree, `herald-server` where the wheel is installed.

Django's commands (migrate, ...) and Herald's own (run, doctor, users, token_create, ...). Two options may stand anywhere on the line,
because the settings are read before Django reads arguments: `--data-dir DIR` is HERALD_DATA_DIR for this command, and
`--env-file FILE` names a file of lines NAME=VALUE, as systemd reads them, for variables that are not set.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from portal.installation import version

VERSION_OPTIONS = (["--version"], ["version"])
_LINE = re.compile(r"""([A-Za-z_][A-Za-z0-9_]*)=(?:"([^"\\]*)"|'([^']*)'|([^"'\\]*))""")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name; without arguments, those of the process."""
    argv = list(sys.argv if arguments is None else arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    try:
        argv[1:] = _settings_taken(argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(f"The file of settings cannot be read: {error}")
    if argv[1:] in VERSION_OPTIONS:
        sys.stdout.write(f"Herald {version()}\n")
        return
    from eventing.core.errors import ConfigError

    try:
        if (
            argv[1:] == ["run"] and _is_one_process()
        ):  # the supervisor stays, and needs nothing of Django's applications
            from portal.supervisor.command import run

            sys.exit(run())
        from django.core.management import execute_from_command_line

        execute_from_command_line(argv)
    except ConfigError as error:
        sys.exit(f"Herald did not start. {error}")


def _is_one_process() -> bool:
    from eventing.conf import config

    return config().is_one_process


def environment_of(text: str) -> Iterator[tuple[str, str]]:
    """Return names and values of an environment file: lines NAME=VALUE, a value in quotes or without; `#` and `;` begin comments.

    Raises ValueError at a line that systemd.exec(5) would read otherwise: with a backslash, or with text beside quotes.
    """
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        found = _LINE.fullmatch(stripped)
        if found is None:
            raise ValueError(
                f"line {number} is not NAME=VALUE; put the value between double quotes, without backslashes."
            )
        yield found[1], next(value for value in found.groups()[1:] if value is not None)


def _settings_taken(arguments: list[str]) -> list[str]:
    """Set the environment from `--data-dir` and `--env-file`; return the other arguments. Raises OSError, ValueError."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--data-dir")
    parser.add_argument("--env-file", type=Path)
    options, others = parser.parse_known_args(arguments)
    if options.env_file is not None:
        for name, value in environment_of(options.env_file.read_text()):
            os.environ.setdefault(name, value)
    if options.data_dir is not None:
        os.environ["HERALD_DATA_DIR"] = options.data_dir
    return others
