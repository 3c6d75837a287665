"""`herald alarm`: list, acknowledge and mute a domain's alarms, choose who is notified of them, and set its watch rules."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options, when
from herald.commands.moments import duration_s
from herald.commands.watching import rules_of_file


@click.group(
    cls=CommandGroup,
    short_help="List and acknowledge alarms; set the domain's watch rules.",
    aliases={"ack": "acknowledge"},
)
def command() -> None:
    """List a domain's alarms, acknowledge one, and set the domain's watch rules."""


_SEVERITIES = {"critical": "red", "warning": "yellow"}
_COLUMNS = (
    ListColumn("id", lambda one: one["id"]),
    ListColumn(
        "severity",
        lambda one: one["severity"],
        lambda one: None if one["cleared"] else _SEVERITIES.get(one["severity"]),
    ),
    ListColumn("since", lambda one: when(one["since"])),
    ListColumn("state", lambda one: _state(one)),
    ListColumn("detail", lambda one: one["detail"]),
    ListColumn("kind", lambda one: one["kind"], extra=True),
    ListColumn("rp-id", lambda one: one["rp"], extra=True),
    ListColumn("about", lambda one: one["about"], extra=True),
)


@command.command(name="list", cls=Command)
@click.option("--state", type=click.Choice(["open", "cleared", "all"]), default="open", help="Default: open.")
@click.option("--rp", help="Only alarms of this rendezvous point, by id or name.")
@list_options(_COLUMNS)
def list_(target: Target, state: str, rp: str | None, columns: tuple[ListColumn, ...]) -> None:
    """List alarms, newest first."""

    async def work() -> None:
        empty = "No alarm is in force." if state == "open" else "There are no alarms."
        with ListPrinter(target, columns, empty=empty) as rows:
            async with target.client() as client:
                async for item in client.alarms.list(state=state, rp=rp):
                    rows.add(item)

    run(work())


@command.command(cls=Command)
@click.argument("alarm")
@click.option("--note", default="", help="Note for other operators.")
@domain_options
def acknowledge(target: Target, alarm: str, note: str) -> None:
    """Acknowledge ALARM (its id in the list). The alarm stays open until its rule is kept again."""

    async def work() -> None:
        async with target.client() as client:
            done = await client.alarms.acknowledge(alarm, note=note)
        target.show(done, lambda done: f"acknowledged {done['id']}: {done['detail']}")

    run(work())


@command.command(cls=Command)
@click.argument("alarm")
@click.option("--for", "for_s", required=True, callback=duration_s, help="How long: 30m, 2h, 7d; at most 30d.")
@click.option("--reason", default="", help="Reason, for other operators and the audit.")
@domain_options
def mute(target: Target, alarm: str, for_s: int, reason: str) -> None:
    """Mute ALARM: nobody is notified of it for a while, nor when it is cleared and raised again meanwhile."""

    async def work() -> None:
        async with target.client() as client:
            done = await client.alarms.mute(alarm, for_s=for_s, reason=reason)
        target.show(done, lambda done: f"muted {done['id']} until {when(done['muted']['until'])}: {done['detail']}")

    run(work())


@command.command(cls=Command)
@click.argument("alarm")
@domain_options
def unmute(target: Target, alarm: str) -> None:
    """End the mute of ALARM."""

    async def work() -> None:
        async with target.client() as client:
            done = await client.alarms.unmute(alarm)
        target.show(done, lambda done: f"notifying of {done['id']} again: {done['detail']}")

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


def _state(item: dict[str, Any]) -> str:
    ack = item["acknowledged"]
    state = "cleared" if item["cleared"] else f"acknowledged by {ack['by']}" if ack else "open"
    if item.get("lasting") and not item["cleared"]:
        state = "ended: acknowledge to clear"
    muted = item.get("muted")
    if muted and not item["cleared"] and datetime.fromisoformat(muted["until"]) > datetime.now(UTC):
        state += f", muted until {when(muted['until'])}"
    return state
