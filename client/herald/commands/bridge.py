"""`herald bridge`: rendezvous points that are fed from elsewhere."""

from __future__ import annotations

import asyncio
import signal

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.output import note
from herald.websub_bridge import WebSubBridge


@click.group(cls=CommandGroup, short_help="Feed a rendezvous point from elsewhere.")
def command() -> None:
    """Feed a rendezvous point from a source that speaks another protocol."""


@command.command(cls=Command)
@click.argument("address")
@click.argument("rp")
@click.option("--lease-s", type=click.IntRange(min=1), help="Lease to ask the hub for, in seconds. Default: the hub's.")
@domain_options
def websub(target: Target, address: str, rp: str, lease_s: int | None) -> None:
    """Publish the content of a WebSub topic at RP (id or name): find the hub of ADDRESS, subscribe, and renew until Ctrl-C.

    The hub sends to an intake of the domain, which must be reachable for the hub. Requires the right to administer the rendezvous
    point.
    """

    def report(state: str, sentence: str) -> None:
        if state == "failed":
            note(sentence)
        else:
            target.show({"state": state, "about": sentence}, sentence)

    async def work() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with target.client() as client:
            await WebSubBridge(client, rp, report, lease_s=lease_s).run(address, stop)

    run(work())
