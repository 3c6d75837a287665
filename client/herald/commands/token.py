"""`herald token`: tokens of a domain, made where its keys are, or by an administrator's token."""

from __future__ import annotations

import getpass
import sys

import click

from herald.commands.common import Command, Group, Target, complain, domain_options, run
from herald.commands.home import find_home, manage

OPERATIONS = ("describe", "publish", "subscribe", "history", "administer")


@click.group(cls=Group, short_help="Make tokens.")
def command() -> None:
    """Make tokens, which nearly every request must show."""


def _operations(ctx: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    if value is None:
        return None
    stated = [name.strip() for name in value.split(",") if name.strip()]
    unknown = [name for name in stated if name not in OPERATIONS]
    if unknown or not stated:
        raise click.BadParameter(f"use some of {', '.join(OPERATIONS)}, separated by commas")
    return stated


@command.command(cls=Command)
@click.option("--admin", is_flag=True, help="The token administers the domain.")
@click.option("--subject", metavar="NAME", help="Whom it speaks for. Default: you.")
@click.option("--lease-s", type=click.IntRange(min=1), help="Seconds until it expires. Default: the domain's.")
@click.option("--ops", callback=_operations, metavar="OP,...", help=f"Only these operations: {', '.join(OPERATIONS)}.")
@domain_options
def create(target: Target, admin: bool, subject: str | None, lease_s: int | None, ops: list[str] | None) -> None:
    """Make a token. Prints only the token when the output is not a terminal:

    export HERALD_TOKEN=$(herald token create)
    """
    home = find_home()
    if home is None:
        if target.token is None:
            raise click.UsageError(
                "The server's folder is not here. Set HERALD_HOME to it, or show an administrator's token (HERALD_TOKEN)."
            )
        run(_ask(target, admin, subject or getpass.getuser(), lease_s, ops))
    else:
        arguments = ["--admin"] if admin else []
        arguments += ["--subject", subject] if subject else []
        arguments += ["--lease-s", str(lease_s)] if lease_s else []
        arguments += ["--ops", ",".join(ops)] if ops else []
        arguments += ["--json"] if target.json else []
        status = manage(home, "token_create", *arguments)
        if status:
            complain(f"The token was not made; {home / 'manage.py'} said why.")
            click.get_current_context().exit(1)
    if sys.stdout.isatty() and not target.json:
        click.echo(
            "Use it: export HERALD_TOKEN=...   (or at once: export HERALD_TOKEN=$(herald token create))", err=True
        )


async def _ask(target: Target, admin: bool, subject: str, lease_s: int | None, ops: list[str] | None) -> None:
    async with target.client() as client:
        issued = await client.create_token(subject=subject, admin=admin, lease_s=lease_s, ops=ops)
    target.show(issued, str(issued.get("token", "")))
