"""`herald restore`: the server's own restore, in the server's folder."""

from __future__ import annotations

import click

from herald.commands.backup import NO_HOME, absolute
from herald.commands.common import Command
from herald.commands.home import find_home, manage


@click.command(cls=Command, short_help="Restore a backup into an empty data folder.")
@click.argument("file", metavar="FILE")
@click.option(
    "--replace", is_flag=True, help="Move what is in the data folder aside, and empty stores that are elsewhere."
)
@click.option("--without-records", is_flag=True, help="Leave out access records and reports.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def command(file: str, replace: bool, without_records: bool, as_json: bool) -> None:
    """Make a domain of the backup FILE (- for a pipe), in the data folder and stores that are configured. It must not run:

    \b
    export HERALD_DOMAIN=example.org HERALD_DATA_DIR=/srv/herald
    herald restore /backups/herald-2026-11-24.tar
    """
    home = find_home()
    if home is None:
        raise click.UsageError(NO_HOME.format("herald restore"))
    flags = {"--replace": replace, "--without-records": without_records, "--json": as_json}
    stated = [name for name, given in flags.items() if given]
    click.get_current_context().exit(manage(home, "restore", *stated, "--", absolute(file)))
