"""`herald alarm`: what is wrong in a domain, and who looks after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from herald.commands.common import Command, Group, Target, domain_options, run
from herald.commands.output import note
from herald.commands.watching import rules_of_file


@click.group(cls=Group, short_help="See what is wrong; acknowledge; set the domain's rules.")
def command() -> None:
    """See the alarms of a domain, say that you look after one, and set the domain's watch rules."""


@command.command(name="list", cls=Command)
@click.option("--state", type=click.Choice(["open", "cleared", "all"]), default="open", help="Default: open.")
@click.option("--rp", help="Only those of this rendezvous point, by id or name.")
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
            note("No alarm is in force." if state == "open" else "There is none.")

    run(work())


@command.command(cls=Command)
@click.argument("alarm")
@click.option("--note", default="", help="What others should know.")
@domain_options
def ack(target: Target, alarm: str, note: str) -> None:
    """Say that you look after ALARM (its id in the list). It stays until its rule is kept again."""

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
    help="JSON file of all rules that the domain is to have.",
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
