"""`herald admin`: snapshot of the domain or of a rendezvous point, with the cursor from which to follow changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options
from herald.commands.output import note

_SHOWN = 10
"""Rows of a list in the output; --json prints all."""


@click.group(cls=CommandGroup, short_help="Snapshots of the domain; export of all names.")
def command() -> None:
    """Print snapshots of the domain, and all names. Requires a viewer's token.

    Each output ends with the cursor at which it is valid: reading administrative events from there misses no change.
    """


@command.command(cls=Command)
@click.argument("rp", required=False)
@domain_options
def snapshot(target: Target, rp: str | None) -> None:
    """Show the present state of the domain, or of the rendezvous point RP; --json prints all of it."""

    async def work() -> None:
        async with target.client() as client:
            found = await client.operating.snapshot(rp)
        target.show(found, lambda found: _snapshot(found, rp))

    run(work())


_NAMES = (
    ListColumn("name", lambda one: one["name"]),
    ListColumn("title", lambda one: one["title"]),
    ListColumn("id", lambda one: one["id"]),
    ListColumn("home", lambda one: one.get("home"), extra=True),
)


@command.command(cls=Command)
@list_options(_NAMES)
def names(target: Target, columns: tuple[ListColumn, ...]) -> None:
    """Print every rendezvous point with its name and title, by id; with --json as JSON Lines that end in the cursor."""

    async def work() -> None:
        cursor = ""
        with ListPrinter(target, columns, empty="There are no rendezvous points yet.") as rows:
            async with target.client() as client:
                async for row in client.operating.names():
                    if "cursor" in row and target.json:
                        target.show(row, "")
                    elif "cursor" in row:
                        cursor = row["cursor"]
                    else:
                        rows.add(row)
        if cursor:
            note(f"follow changes: herald sub domain.admin --from {cursor}")

    run(work())


def _snapshot(found: Mapping[str, Any], rp: str | None) -> list[str]:
    state = found["state"]
    lines = _domain(state) if rp is None else _rp(state)
    at = "domain.admin" if rp is None else f"{(state['rp'] or {}).get('id', rp)}.admin"
    return [*lines, f"follow changes: herald sub {at} --from {found['cursor']}"]


def _domain(state: Mapping[str, Any]) -> list[str]:
    counts, domain = state["counts"], state["domain"]
    reserved = 100 * counts["reserved_bytes"] / max(1, counts["quota_bytes"])
    lines = [
        f"{domain['name']}, Herald {domain['version']}",
        f"{counts['rps']:,} rendezvous points, {counts['subscriptions']:,} durable subscriptions, "
        f"histories reserve {reserved:.1f} % of what they may",
    ]
    lines += _listed("gateway", state["gateways"], _gateway)
    lines += _listed("peer", state["peers"], _peer)
    lines += _listed(
        "quarantine", state["quarantines"], lambda origin, row: f"{origin} since {row['since']}: {row['why']}"
    )
    return lines + _alarms(state)


def _rp(state: Mapping[str, Any]) -> list[str]:
    rp, history = state["rp"], state["history"]
    if rp is None:
        return ["The rendezvous point has ended."]
    lines = [f"{rp['name'] or rp['id']}  {rp['title']}".rstrip()]
    if history is not None:
        held = history["next"] - history["first"]
        lines.append(
            f"{held:,} events held, offsets {history['first']} to {history['next'] - 1}, {history['bytes']:,} bytes"
        )
    lines += _listed("subscription", state["subscriptions"], _subscription)
    if len(state["replicas"]) > 1:
        lines += _listed("replica", state["replicas"], _replica)
    return lines + _alarms(state)


def _alarms(state: Mapping[str, Any]) -> list[str]:
    found = _listed("alarm", state["alarms"], lambda number, row: f"{number} {row['severity']}: {row['detail']}")
    return found or ["no alarm is in force"]


def _listed(word: str, rows: Mapping[str, Any], text: Any) -> list[str]:
    shown = [f"{word:12}  {text(name, row)}" for name, row in sorted(rows.items())[:_SHOWN]]
    more = len(rows) - len(shown)
    return [*shown, f"{word:12}  and {more:,} more (--json)"] if more else shown


def _gateway(name: str, row: Mapping[str, Any]) -> str:
    return (
        f"{name}  {row['sessions']:,} sessions, {row['readings']:,} readings; in {row['interval_s']:g} s"
        f" {row['events_in']:,} events in, {row['deliveries']:,} out"
    )


def _peer(name: str, row: Mapping[str, Any]) -> str:
    delivery = row["delivery"]
    return f"{name} {row['state']}, {delivery['backlog']:,} events wait. {delivery['detail']}".rstrip()


def _subscription(name: str, row: Mapping[str, Any]) -> str:
    events = row["lag"]["events"]
    behind = "not sampled yet" if events is None else f"{events:,} events behind"
    return f"{name} of {row['owner']}: {behind}, lease until {row['lease']['expires_at']}"


def _replica(name: str, row: Mapping[str, Any]) -> str:
    behind = row["progress"]["behind"]
    return f"{name}{' (home)' if row['home'] == name else ''}: {'not known' if behind is None else f'{behind:,} events behind'}"
