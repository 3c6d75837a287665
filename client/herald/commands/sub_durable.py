"""`herald sub-durable`: subscriptions that outlive their connection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import click

from herald.commands.common import (
    Command,
    CommandGroup,
    Target,
    domain_options,
    history_of,
    history_options,
    history_text,
    run,
)
from herald.commands.listing import ListColumn, ListPrinter, list_options, when
from herald.commands.moments import start_of, start_options
from herald.commands.output import dump, note
from herald.commands.reading import Printer, show
from herald.commands.rp_names import RpNames
from herald.durable import DurableSubscription
from herald.events import Received

PAGE = 100


@click.group(cls=CommandGroup, short_help="Subscriptions that outlive their connection.")
def command() -> None:
    """Subscriptions that outlive their connection: events wait until they are read and acknowledged."""


def _described(found: DurableSubscription) -> list[str]:
    lines = [
        ("id", found.id),
        ("rp", found.rp),
        ("lease", f"{found.lease}"),
    ]
    for key in ("notice", "cursor"):
        value = found.document.get(key)
        if value is not None:
            lines.append((key, value if isinstance(value, str) else dump(value)))
    if isinstance(found.document.get("history"), Mapping):
        lines.append(("history", history_text(found.document["history"])))
    if isinstance(deliver := found.document.get("deliver"), Mapping):
        lines.append(("deliver", " ".join(str(deliver[name]) for name in ("mode", "url") if name in deliver)))
    if isinstance(found.document.get("lag"), int):
        lines.insert(2, ("lag", _behind(found.document)))
    shared = found.document.get("shared")
    if isinstance(shared, Mapping):
        holders = ", ".join(map(str, shared.get("holders", [])))
        lines.append(("delivers", f"{shared.get('delivers') or 'no domain at the moment'} (of {holders})"))
    return [f"{key:8} {value}" for key, value in lines]


@command.command(cls=Command)
@click.argument("rp")
@click.option(
    "--lease-s",
    type=click.IntRange(min=1),
    help="Seconds to live unless used or renewed. Default: the domain's, a week.",
)
@start_options
@click.option(
    "--replicas",
    type=click.IntRange(1, 5),
    help="Number of domains that hold it, this one included: if one fails, another delivers. Default: 1.",
)
@history_options
@domain_options
def create(
    target: Target,
    rp: str,
    lease_s: int | None,
    from_: str,
    since: str | None,
    replicas: int | None,
    **bounds: Any,
) -> None:
    """Create a durable subscription at a rendezvous point (id or name)."""
    from_ = start_of(from_, since)

    async def work() -> None:
        async with target.client() as client:
            wanted = {} if replicas is None else {"replicas": replicas}
            history = history_of(**bounds)
            made = await client.subscriptions.create(rp, lease_s=lease_s, history=history, from_=from_, **wanted)
        target.show(made.document, lambda _: [*_described(made), f"read it: herald sub-durable attach {made.id}"])

    run(work())


_COLUMNS = (
    ListColumn("rp", lambda one: one["name"]),
    ListColumn("owner", lambda one: one["owner"]),
    ListColumn("behind", lambda one: one["lag"]),
    ListColumn("lost", lambda one: one.get("lost") or 0, lambda one: "red" if one.get("lost") else None),
    ListColumn("deliver", lambda one: (one.get("deliver") or {}).get("mode")),
    ListColumn("ends", lambda one: when(one["lease"]["expires_at"])),
    ListColumn("id", lambda one: one["id"]),
    ListColumn("rp-id", lambda one: one["rp"], extra=True),
    ListColumn("cursor", lambda one: one.get("cursor"), extra=True),
    ListColumn("created", lambda one: when(one.get("created_at")), extra=True),
)


@command.command(name="list", cls=Command)
@click.option("--rp", help="Only subscriptions at this rendezvous point, by id or name.")
@click.option("--owner", help="Only subscriptions of this identity.")
@click.option(
    "--sort", type=click.Choice(["lag", "ends", "id"]), default="lag", help="Default: lag, the greatest first."
)
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Number of subscriptions to list."
)
@list_options(_COLUMNS)
def list_(
    target: Target, rp: str | None, owner: str | None, sort: str, limit: int, columns: tuple[ListColumn, ...]
) -> None:
    """List durable subscriptions with their lag: all for administrators, operators and viewers, else your own."""

    async def work() -> None:
        cursor, left, whole = None, limit, True
        empty = "There are no subscriptions. Create one: herald sub-durable create RP"
        with ListPrinter(target, columns, empty=empty) as rows:
            async with target.client() as client:
                names = RpNames(client)
                while left > 0:
                    size = min(PAGE, left)
                    page = await client.operating.subscriptions(
                        rp=rp, owner=owner, sort=sort, cursor=cursor, limit=size
                    )
                    if not target.json:
                        await names.look_up(str(item.get("rp")) for item in page["items"])
                    for item in page["items"]:
                        rows.add(item, {**item, "name": names[str(item.get("rp"))]})
                    whole, cursor, left = whole and page["complete"], page["next"], left - len(page["items"])
                    if cursor is None:
                        break
        if not whole:
            note("There are too many to sort all of them. Narrow the list with --rp or --owner.")

    run(work())


def _behind(item: Mapping[str, Any]) -> str:
    lost = (
        f", {item['lost']:,} of them lost" if item.get("lost") else ""
    )  # a domain of an older version does not state it
    return f"{item['lag']:,} behind{lost}"


@command.command(name="show", cls=Command)
@click.argument("subscription")
@domain_options
def show_(target: Target, subscription: str) -> None:
    """Describe a durable subscription."""

    async def work() -> None:
        async with target.client() as client:
            found = await client.subscriptions.get(subscription)
        target.show(found.document, lambda _: _described(found))

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Most events to print.")
@click.option(
    "--wait-s", type=click.FloatRange(0, 60), default=0.0, help="Seconds to wait for an event if there is none."
)
@click.option("--after", metavar="CURSOR", help="Read after this cursor. Default: the acknowledged one.")
@click.option("--ack", is_flag=True, help="Acknowledge the printed events.")
@click.option("--data-only", is_flag=True, help="Print only the data of each event.")
@domain_options
def pull(
    target: Target, subscription: str, limit: int, wait_s: float, after: str | None, ack: bool, data_only: bool
) -> None:
    """Print the next events; they are delivered again until they are acknowledged."""
    printer = Printer(target.json, data_only)

    async def work() -> None:
        async with target.client() as client:
            answer = await client.subscriptions.pull(subscription, limit=limit, wait_s=wait_s, after=after)
            if answer.gap is not None:
                printer.gap(answer.gap)
            for offset, event in enumerate(answer.events, answer.offset - len(answer.events) + 1):
                printer.item(Received(event, "", answer.epoch, offset, f"{answer.epoch}:{offset}"), subscription)
            if ack:
                await client.subscriptions.ack(subscription, answer.cursor)
        if answer.events and not ack:
            note(f"acknowledge: herald sub-durable ack {subscription} {answer.cursor}")

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@click.argument("cursor")
@domain_options
def ack(target: Target, subscription: str, cursor: str) -> None:
    """Acknowledge everything up to a cursor: it is not delivered again."""

    async def work() -> None:
        async with target.client() as client:
            await client.subscriptions.ack(subscription, cursor)
        target.show({"acknowledged": cursor}, f"acknowledged up to {cursor}")

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many events.")
@click.option("--data-only", is_flag=True, help="Print only the data of each event.")
@click.option(
    "--no-ack", is_flag=True, help="Do not acknowledge the printed events: they are delivered again next time."
)
@domain_options
def attach(target: Target, subscription: str, count: int | None, data_only: bool, no_ack: bool) -> None:
    """Print events as they arrive, acknowledge them, and renew the lease while this runs."""
    printer = Printer(target.json, data_only)

    async def work() -> None:
        async with target.client() as client:
            try:
                async with client.attach(subscription, auto_ack=not no_ack) as items:
                    await show(items, subscription, printer, None if count is None else [count])
            except asyncio.CancelledError:
                note("", f"To resume: herald sub-durable attach {subscription}")
                raise

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@click.option("--lease-s", type=click.IntRange(min=1), help="Seconds from now. Default: the domain's.")
@domain_options
def renew(target: Target, subscription: str, lease_s: int | None) -> None:
    """Renew the lease of a durable subscription."""

    async def work() -> None:
        async with target.client() as client:
            lease = await client.subscriptions.renew(subscription, lease_s)
        document = {"lease": {"granted_s": lease.granted_s, "expires_at": lease.expires_at}}
        target.show(document, f"renewed {subscription}: {lease}")

    run(work())


@command.command(cls=Command)
@click.argument("subscription")
@domain_options
def delete(target: Target, subscription: str) -> None:
    """End a durable subscription."""

    async def work() -> None:
        async with target.client() as client:
            await client.subscriptions.delete(subscription)
        target.show({"deleted": subscription}, f"deleted {subscription}")

    run(work())
