"""The `herald` command: one module per group of commands, imported when needed so that each starts quickly.

Exit codes: 0 success, 1 refused or malformed answer, 2 wrong usage, 3 cannot connect, 130 interrupted.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

_MODULES = {
    "rp": "rp",
    "pub": "pub",
    "sub": "sub",
    "sub-durable": "sub_durable",
    "hook": "hook",
    "intake": "intake",
    "bridge": "bridge",
    "token": "token",
    "key": "key",
    "session": "session",
    "lease": "lease",
    "alarm": "alarm",
    "peer": "peer",
    "overlay": "overlay",
    "policy": "policy",
    "audit": "audit",
    "report": "report",
    "replica": "replica",
    "proof": "proof",
    "path": "path",
    "misbehaviour": "misbehaviour",
    "admin": "admin",
    "doctor": "doctor",
    "monitor": "monitor",
    "replay": "replay",
}


class LazyGroup(click.Group):
    """Group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of first use."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, imported."""
        if cmd_name not in _MODULES:
            return None
        command = import_module(f"herald.commands.{_MODULES[cmd_name]}").command
        assert isinstance(command, click.Command)  # noqa: S101 - only our own bug
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; messages about wrong usage may contain foreign text as well."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            from herald.commands.output import printable

            error.message = printable(error.message, keep="\n")  # type: ignore[misc] # of an error that is raised again
            raise


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="herald-client", prog_name="herald")
def cli() -> None:
    """Publish events to rendezvous points, subscribe, and resume without loss.

    \b
    Nearly all commands need a token:
      export HERALD_TOKEN=$(herald token create)
    """


def main() -> None:
    """Run the console script."""
    cli(prog_name="herald")
