"""`herald sub`: watch rendezvous points, across restarts of either side."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from herald.client import Client
from herald.commands.common import Command, Target, domain_options, run
from herald.commands.moments import start_of, start_options
from herald.commands.output import note
from herald.commands.reading import Printer, show
from herald.starts import TIME_PREFIX
from herald.state import FileCursorStore
from herald.subscription import Subscription

PATTERN_MAX = 200
"""Most rendezvous points that a pattern may stand for: each is a subscription of the connection."""


@click.command(cls=Command, short_help="Watch rendezvous points.")
@click.argument("rps", metavar="RP...", nargs=-1, required=True)
@start_options
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the position: the next start resumes there; --from and --since apply to the first start only.",
)
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many events.")
@click.option("--data-only", is_flag=True, help="Print only the data of each event.")
@domain_options
def command(
    target: Target,
    rps: tuple[str, ...],
    from_: str,
    since: str | None,
    state: Path | None,
    count: int | None,
    data_only: bool,
) -> None:
    """Print the events of rendezvous points (ids or names) as they arrive, one per line.

    RP may also be a pattern, in quotes: 'hosts/*' is all rendezvous points whose names are below hosts and that you may
    describe, '*' all of the domain. Those that are created later are not followed.

    A line is: time, name, offset, type, data. Events that are no longer available are reported on stderr, as a gap.
    Ctrl-C prints the position reached, and how to resume there. --since counts by the time at which the domain stored an
    event, and by this machine's clock.
    """
    from_ = start_of(from_, since)
    several = len(rps) > 1 or any(map(_is_pattern, rps))
    if several and from_ not in ("now", "earliest", "last") and not from_.startswith(TIME_PREFIX):
        raise click.UsageError("A cursor belongs to one rendezvous point. Name only one, or use --state.")
    printer = Printer(target.json, data_only)

    async def work() -> None:
        store = None if state is None else FileCursorStore(state)
        left = None if count is None else [count]
        async with target.client() as client:
            names = [name for rp in rps for name in (await _below(client, rp) if _is_pattern(rp) else [rp])]
            subscriptions = {rp: client.subscribe(rp, from_=from_, state=store) for rp in dict.fromkeys(names)}
            try:
                await _read_all(client, subscriptions, printer, left)
            except asyncio.CancelledError:
                _say_how_to_resume(subscriptions, state)
                raise

    run(work())


def _is_pattern(rp: str) -> bool:
    return rp == "*" or rp.endswith("/*")


async def _below(client: Client, pattern: str) -> list[str]:
    """Return the names that a pattern stands for. Raises UsageError: none, or more than PATTERN_MAX."""
    prefix = pattern.rstrip("*").rstrip("/")
    found: list[str] = []
    async for rp in client.rps.list(**({"prefix": prefix} if prefix else {})):
        found.append(rp.name or rp.id)
        if len(found) > PATTERN_MAX:
            break
    if not found:
        raise click.UsageError(
            f"You may describe no rendezvous point under {pattern}. See what there is: herald rp list"
        )
    if len(found) > PATTERN_MAX:
        raise click.UsageError(
            f"{pattern} stands for more than {PATTERN_MAX} rendezvous points. Name a smaller subtree."
        )
    note(f"{pattern}: {len(found)} rendezvous point{'s' if len(found) > 1 else ''}; new ones are not followed")
    return found


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
