"""`herald alarm`: list and acknowledge a domain's alarms, and set its watch rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.output import note
from herald.commands.watching import rules_of_file


@click.group(cls=CommandGroup, short_help="List and acknowledge alarms; set the domain's watch rules.")
def command() -> None:
    """List a domain's alarms, acknowledge one, and set the domain's watch rules."""


@command.command(name="list", cls=Command)
@click.option("--state", type=click.Choice(["open", "cleared", "all"]), default="open", help="Default: open.")
@click.option("--rp", help="Only alarms of this rendezvous point, by id or name.")
@domain_options
def list_(target: Target, state: str, rp: str | None) -> None:
    """List alarms, newest first."""

    async def work() -> None:
        empty = True
        async with target.client() as client:
            async for item in client.alarms.list(state=state, rp=rp):
                empty = False
                target.show(item, _line)
        if empty and not target.json:
            note("No alarm is in force." if state == "open" else "There are no alarms.")

    run(work())


@command.command(cls=Command)
@click.argument("alarm")
@click.option("--note", default="", help="Note for other operators.")
@domain_options
def ack(target: Target, alarm: str, note: str) -> None:
    """Acknowledge ALARM (its id in the list). The alarm stays open until its rule is kept again."""

    async def work() -> None:
        async with target.client() as client:
            done = await client.alarms.acknowledge(alarm, note=note)
        target.show(done, lambda done: f"acknowledged {done['id']}: {done['detail']}")

    run(work())


@command.command(cls=Command)
@click.option(
    "--set",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON file with the complete list of the domain's rules.",
)
@domain_options
def rules(target: Target, path: Path | None) -> None:
    """Show the domain's watch rules, or set them."""

    async def work() -> None:
        async with target.client() as client:
            if path is None:
                found = await client.alarms.rules()
            else:
                found = await client.alarms.rules_replace(rules_of_file(path))
        target.show(found, _rules)

    run(work())


def _rules(found: dict[str, Any]) -> list[str]:
    return [f"{len(found['watch'])} rules, version {found['version']}", *map(str, found["watch"])]


def _line(item: dict[str, Any]) -> str:
    ack = item["acknowledged"]
    state = "cleared" if item["cleared"] else f"acknowledged by {ack['by']}" if ack else "open"
    if item.get("lasting") and not item["cleared"]:
        state = "ended: acknowledge to clear"
    return f"{item['id']:>6}  {item['severity']:8}  {item['since']}  {state:12}  {item['detail']}"
