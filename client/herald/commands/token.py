"""`herald token`: make tokens of a domain, in the server's folder or with an administrator's token."""

from __future__ import annotations

import getpass
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.delegate import biscuit, delegate, inspect, operations
from herald.commands.home import find_home, manage, server
from herald.commands.listing import ListColumn, ListPrinter, by_state, list_options, when
from herald.commands.output import complain, note, on_terminal
from herald.commands.revoke import revoke
from herald.delegation import OPERATIONS as OPERATIONS  # for other commands, too


@click.group(cls=CommandGroup, short_help="Make tokens.")
def command() -> None:
    """Make and inspect tokens, which nearly every request needs."""


for one in (biscuit, delegate, inspect, revoke):
    command.add_command(one)

ANY = "any"
STATES = ("valid", "expired", "revoked")
_COLUMNS = (
    ListColumn("subject", lambda one: f"{one['subject']} (administrator)" if one["admin"] else one["subject"]),
    ListColumn("state", lambda one: one["state"], by_state(revoked="yellow")),
    ListColumn("ops", lambda one: ",".join(one["ops"]) if one["ops"] is not None else ""),
    ListColumn("rps", lambda one: ",".join(one["rps"]) if one["rps"] is not None else "all"),
    ListColumn("expires", lambda one: when(one["expires_at"])),
    ListColumn("id", lambda one: one["id"]),
    ListColumn("issued", lambda one: when(one["issued_at"]), extra=True),
    ListColumn("by", lambda one: one["issued_by"], extra=True),
    ListColumn("audience", lambda one: one["audience"], extra=True),
)


@command.command(name="list", cls=Command)
@click.option("--state", type=click.Choice((*STATES, ANY)), default="valid", show_default=True, help="Only these.")
@list_options(_COLUMNS)
def list_(target: Target, state: str, columns: tuple[ListColumn, ...]) -> None:
    """List the tokens issued in the last 30 days, newest first; the tokens themselves are stored nowhere.

    Requires a viewer's token. herald token revoke --id ID ends one.
    """

    async def work() -> None:
        with ListPrinter(target, columns, empty="No such token was issued in the last 30 days.") as rows:
            async with target.client() as client:
                async for one in client.tokens(state=None if state == ANY else state):
                    rows.add(one)

    run(work())


def _scopes(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> list[dict[str, list[str]]] | None:
    return [_scope(ctx, parameter, text) for text in value] or None


def _scope(ctx: click.Context, parameter: click.Parameter, text: str) -> dict[str, list[str]]:
    patterns, equals, ops = text.rpartition("=")
    rps = [pattern.strip() for pattern in patterns.split(",") if pattern.strip()]
    stated = operations(ctx, parameter, ops)
    if not equals or not rps or not stated:
        raise click.BadParameter("write it as RP,...=OP,... such as sensors/roof=publish")
    return {"rps": rps, "ops": stated}


@command.command(cls=Command)
@click.option("--admin", is_flag=True, help="Give the token the role of administrator.")
@click.option("--subject", metavar="NAME", help="Subject of the token. Default: you.")
@click.option("--lease-s", type=click.IntRange(min=1), help="Seconds until it expires. Default: the domain's.")
@click.option("--ops", callback=operations, metavar="OP,...", help=f"Only these operations: {', '.join(OPERATIONS)}.")
@click.option(
    "--scope",
    "scopes",
    callback=_scopes,
    multiple=True,
    metavar="RP,...=OP,...",
    help="Only these operations at these rendezvous points: ids, names, all names below one (weather/*). May be "
    "repeated.",
)
@click.option("--audience", metavar="DOMAIN", help="The domain that accepts the token. Default: this one.")
@domain_options
def create(
    target: Target,
    admin: bool,
    subject: str | None,
    lease_s: int | None,
    ops: list[str] | None,
    scopes: list[dict[str, list[str]]] | None,
    audience: str | None,
) -> None:
    """Make a token. Prints only the token when the output is not a terminal:

    \b
    export HERALD_TOKEN=$(herald token create)
    herald token create --subject roof --scope sensors/roof=publish --scope 'weather/*=subscribe,history'
    """
    home = find_home()
    if home is None:
        if target.token is None:
            raise click.UsageError(
                "The server's folder was not found. Set HERALD_HOME to it (where the server is installed: HERALD_DATA_DIR), or give an "
                "administrator's token (HERALD_TOKEN)."
            )
        run(
            _ask(
                target, admin, subject or getpass.getuser(), lease_s=lease_s, ops=ops, scopes=scopes, audience=audience
            )
        )
    else:
        arguments = ["--admin"] if admin else []
        arguments += ["--subject", subject] if subject else []
        arguments += ["--lease-s", str(lease_s)] if lease_s else []
        arguments += ["--ops", ",".join(ops)] if ops else []
        for scope in scopes or ():
            arguments += ["--scope", f"{','.join(scope['rps'])}={','.join(scope['ops'])}"]
        arguments += ["--audience", audience] if audience else []
        arguments += ["--json"] if target.json else []
        status = manage(home, "token_create", *arguments)
        if status:
            complain(f"The token was not made; see the message of {server(home)[-1]} in {home}.")
            click.get_current_context().exit(1)
    if on_terminal() and not target.json:
        note("Use it: export HERALD_TOKEN=...   (or at once: export HERALD_TOKEN=$(herald token create))")


async def _ask(target: Target, admin: bool, subject: str, **options: Any) -> None:
    async with target.client() as client:
        issued = await client.create_token(subject=subject, admin=admin, **options)
    target.show(issued, str(issued.get("token", "")))
