"""`herald domain`: the domain as a whole: hand over what it has, before it stops."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.moments import ahead

SHOW_EVERY_S = 2.0


@click.group(cls=CommandGroup, short_help="Drain a domain before it stops.")
def command() -> None:
    """Act on a domain as a whole."""


@command.command(cls=Command)
@click.option("--until", callback=ahead, metavar="TIME", help="Begin: hand over for 30m, 2h; at most 7d.")
@click.option("--dry-run", is_flag=True, help="Show what would be handed over, and what cannot be. Nothing changes.")
@click.option(
    "--close", "closes", is_flag=True, help="The domain stops for good: notify subscribers of what nobody takes over."
)
@click.option("--end", is_flag=True, help="End the drain under way. What was handed over stays where it is.")
@click.option("--wait", is_flag=True, help="Show the progress until everything is handed over.")
@domain_options
def drain(target: Target, until: str | None, dry_run: bool, closes: bool, end: bool, wait: bool) -> None:
    """Have the domain hand over its rendezvous points' homes, its readers, and its subscriptions.

    Without options: show the latest drain. For a rolling restart: drain with --until and --wait, restart, and go on to
    the next domain. Handed-over homes stay where they are; `herald rp move` brings them back.
    """
    if end and (until is not None or wait or dry_run or closes):
        raise click.UsageError("--end goes with no other option.")
    if closes and until is None and not dry_run:
        raise click.UsageError("--close needs --until: a domain that closes has an end.")

    async def work() -> None:
        async with target.client() as client:
            if dry_run:
                target.show(await client.operating.drain_preview(closes=closes), _preview_lines)
                return
            if end:
                target.show(await client.operating.end_drain(), _lines)
                return
            for_s = (
                None
                if until is None
                else max(1, round((datetime.fromisoformat(until) - datetime.now(UTC)).total_seconds()))
            )
            found = await client.operating.drain(for_s, closes=closes)
            target.show(found, _lines)
            while wait and found["state"] == "draining":
                await asyncio.sleep(SHOW_EVERY_S)
                found = await client.operating.drain()
                target.show(found, _lines)

    run(work())


def _lines(found: dict[str, Any]) -> list[str]:
    if found["state"] == "none":
        return ["This domain has not drained. Begin: herald domain drain --until 1h"]
    done = f"{found['handed_over']} homes, {found.get('shared', 0)} subscriptions handed over"
    left = (
        f"{found['homes']} homes, {found['deliveries']} deliveries, {found['readers']} readers, "
        f"{found.get('subscriptions', 0)} subscriptions left"
    )
    staying = f"; {found['staying']} homes stay" if found["staying"] else ""
    closing = f"; {found.get('closed', 0)} subscribers notified of the end" if found.get("closes") else ""
    endpoints = found.get("endpoints", 0)
    then = "still to be notified" if found.get("closes") else "wait while this domain is down"
    waiting = f"; {endpoints} endpoints {then}" if endpoints else ""
    first = f"{found['state']} until {found['until']}: {done}; {left}{staying}{closing}{waiting}"
    return [first, *(f"  {one['rp']}: {one['domain']}: {one['reason']}" for one in found["refusals"])]


def _preview_lines(found: dict[str, Any]) -> list[str]:
    if not found["items"]:
        return ["There is nothing to hand over."]
    return [
        f"{one['count']:>6} {one['what']}{' ' + one['mode'] if one['mode'] else ''}: {one['fate']}. {one['why']}"
        for one in found["items"]
    ]
