"""`herald backup`: the server's own backup, in the server's folder."""

from __future__ import annotations

from pathlib import Path

import click

from herald.commands.common import Command
from herald.commands.home import find_home, manage

NO_HOME = "The server's folder was not found. Set HERALD_HOME to it: {} runs where the domain's data is."
PIPE = "-"


def absolute(file: str) -> str:
    """Return the path as the server's folder needs it, where the command runs."""
    return file if file == PIPE else str(Path(file).absolute())


@click.command(cls=Command, short_help="Back up the domain on this machine into one file.")
@click.argument("file", metavar="FILE")
@click.option("--check", is_flag=True, help="Verify the checksums of an existing backup, and change nothing.")
@click.option("--without-records", is_flag=True, help="Leave out access records and reports.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def command(file: str, check: bool, without_records: bool, force: bool, as_json: bool) -> None:
    """Back up the domain on this machine into FILE (- for a pipe), without stopping it. The file holds the domain's keys:

    \b
    herald backup /backups/herald-$(date +%F).tar
    herald backup --check /backups/herald-2026-11-24.tar
    herald backup - | age -r age1... > herald.tar.age
    """
    home = find_home()
    if home is None:
        raise click.UsageError(NO_HOME.format("herald backup"))
    flags = {"--check": check, "--without-records": without_records, "--force": force, "--json": as_json}
    stated = [name for name, given in flags.items() if given]
    click.get_current_context().exit(manage(home, "backup", *stated, "--", absolute(file)))
