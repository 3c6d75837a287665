"""`herald sub`: watch rendezvous points, across restarts of either side."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from herald.client import Client
from herald.commands.common import Command, Target, domain_options, run
from herald.commands.output import note
from herald.commands.reading import Printer, show
from herald.state import FileCursorStore
from herald.subscription import Subscription


@click.command(cls=Command, short_help="Watch rendezvous points.")
@click.argument("rps", metavar="RP...", nargs=-1, required=True)
@click.option("--from", "from_", default="now", show_default=True, help="now, earliest, last, or a CURSOR.")
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the position: the next start resumes there, and --from applies only to the first start.",
)
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many events.")
@click.option("--data-only", is_flag=True, help="Print only the data of each event.")
@domain_options
def command(
    target: Target, rps: tuple[str, ...], from_: str, state: Path | None, count: int | None, data_only: bool
) -> None:
    """Print the events of rendezvous points (ids or names) as they arrive, one per line.

    A line is: time, name, offset, type, data. Events that are no longer available are reported on stderr, as a gap.
    Ctrl-C prints the position reached, and how to resume there.
    """
    if len(rps) > 1 and from_ not in ("now", "earliest", "last"):
        raise click.UsageError("A cursor belongs to one rendezvous point. Name only one, or use --state.")
    printer = Printer(target.json, data_only)

    async def work() -> None:
        store = None if state is None else FileCursorStore(state)
        left = None if count is None else [count]
        async with target.client() as client:
            subscriptions = {rp: client.subscribe(rp, from_=from_, state=store) for rp in dict.fromkeys(rps)}
            try:
                await _read_all(client, subscriptions, printer, left)
            except asyncio.CancelledError:
                _say_how_to_resume(subscriptions, state)
                raise

    run(work())


async def _read_all(
    client: Client, subscriptions: dict[str, Subscription], printer: Printer, left: list[int] | None
) -> None:
    """Read until one reading ends: by the count, or by an error, which is raised."""

    async def read(name: str, subscription: Subscription) -> None:
        async with subscription:
            await show(subscription, name, printer, left)

    tasks = [asyncio.ensure_future(read(name, subscription)) for name, subscription in subscriptions.items()]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _say_how_to_resume(subscriptions: dict[str, Subscription], state: Path | None) -> None:
    note("")
    for rp, subscription in subscriptions.items():
        if state is not None:
            note(f"stopped at {subscription.cursor}. To resume: herald sub {rp} --state {state}")
        elif subscription.cursor is not None:
            note(f"stopped at {subscription.cursor}. To resume: herald sub {rp} --from {subscription.cursor}")
