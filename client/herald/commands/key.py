"""`herald key`: the keys that sign a domain's tokens."""

from __future__ import annotations

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options, when


@click.group(cls=CommandGroup, short_help="Rotate and retire the signing keys.")
def command() -> None:
    """List, rotate and retire the keys that sign the domain's tokens. Requires an administrator's token."""


_STATES = {"signing": "green", "retired": "yellow"}
_COLUMNS = (
    ListColumn("key", lambda key: key["kid"]),
    ListColumn("state", lambda key: key["state"], lambda key: _STATES.get(key["state"])),
    ListColumn("from", lambda key: when(key["not_before"])),
    ListColumn("until", lambda key: when(key["not_after"])),
)


@command.command(name="list", cls=Command)
@list_options(_COLUMNS)
def list_(target: Target, columns: tuple[ListColumn, ...]) -> None:
    """List the keys, newest first, with their windows and states."""

    async def work() -> None:
        with ListPrinter(target, columns, empty="There are no keys.") as rows:
            async with target.client() as client:
                for key in await client.keys():
                    rows.add(key)

    run(work())


@command.command(cls=Command)
@click.option(
    "--signs-after-s",
    type=click.IntRange(min=0),
    help="Seconds until the new key signs. Default: long enough for other domains to have read it.",
)
@domain_options
def rotate(target: Target, signs_after_s: int | None) -> None:
    """Make the next signing key and publish it. The present one signs until then, and all tokens stay valid."""

    async def work() -> None:
        async with target.client() as client:
            key = await client.rotate_key(signs_after_s=signs_after_s)
        target.show(key, lambda key: f"{key['kid']} is published and signs from {key['not_before']}")

    run(work())


@command.command(cls=Command)
@click.argument("kid")
@click.option("--reason", default="", help="Reason, for other administrators.")
@domain_options
def retire(target: Target, kid: str, reason: str) -> None:
    """End a key now, because its secret may be known: every token that it signed is refused from now on, perhaps yours
    too.
    """

    async def work() -> None:
        async with target.client() as client:
            key = await client.retire_key(kid, reason=reason)
        target.show(key, lambda key: f"{key['kid']} is retired; tokens that it signed are refused")

    run(work())
