"""`herald migrate`: the server's own command, where its folder is on this machine."""

from __future__ import annotations

import click

from herald.commands.common import Command
from herald.commands.home import find_home, manage


@click.command(cls=Command, short_help="Apply the migrations of the server's database.")
@click.option("--check", is_flag=True, help="Change nothing; the exit code is 1 if migrations are pending.")
def command(check: bool) -> None:
    """Apply the migrations of the server's database: run it on the server's machine, with its settings.

    One process at a time does; another one waits. It runs `manage.py migrate` of the folder in HERALD_HOME, or of this source tree.
    """
    home = find_home()
    if home is None:
        raise click.ClickException("There is no server here. Set HERALD_HOME to the folder with its manage.py.")
    click.get_current_context().exit(manage(home, "migrate", *(["--check"] if check else [])))
