"""The `herald` command: one module per group of commands, imported when needed so that each starts quickly.

Exit codes: 0 success, 1 refused or malformed answer, 2 wrong usage, 3 cannot connect, 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from herald.commands.groups import suggested

_MODULES = {
    "login": "login",
    "profile": "profile",
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
    "contact-point": "contact_point",
    "peer": "peer",
    "overlay": "overlay",
    "plan": "plan",
    "policy": "policy",
    "audit": "audit",
    "report": "report",
    "replica": "replica",
    "proof": "proof",
    "path": "path",
    "misbehaviour": "misbehaviour",
    "admin": "admin",
    "doctor": "doctor",
    "backup": "backup",
    "restore": "restore",
    "migrate": "migrate",
    "domain": "domain",
    "top": "top",
    "monitor": "monitor",
    "replay": "replay",
    "bench": "bench",
    "completion": "completion",
}
ALIASES = {"context": "profile", "publish": "pub", "subscribe": "sub", "subscription": "sub-durable", "webhook": "hook"}


class LazyGroup(click.Group):
    """Group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of first use."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, imported."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in _MODULES:
            return None
        command = import_module(f"herald.commands.{_MODULES[name]}").command
        assert isinstance(command, click.Command)  # noqa: S101 - only our own bug
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names, or name one that may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise suggested(error, ctx, args[0], _MODULES) from None

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
      herald login https://b.example                 approved in the console there, kept as a profile
      export HERALD_TOKEN=$(herald token create)     on the domain's own machine
    """


def main() -> None:
    """Run the console script."""
    # httpx imports its own command where the libraries for it are installed: half of this command's start.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # None: an import of it fails
    cli(prog_name="herald")
