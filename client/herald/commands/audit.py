"""`herald audit`: administrative acts and refusals in a domain."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from herald.client import Client
from herald.commands.common import Command, Target, run
from herald.commands.listing import ListColumn, ListPrinter, list_options
from herald.commands.moments import moment
from herald.commands.output import json_line

FOLLOW_S = 2.0
PAGE = 500
SHOWN_DEFAULT = 50
SHOWN_MAX = 100_000


_OUTCOMES = {"refused": "yellow", "failed": "red"}
_COLUMNS = (
    ListColumn("at", lambda one: one["at"]),
    ListColumn("outcome", lambda one: one["outcome"], lambda one: _OUTCOMES.get(one["outcome"])),
    ListColumn("action", lambda one: one["action"]),
    ListColumn("on", lambda one: f"{one['on']['kind']} {one['on']['id']}".strip() if one["on"] else ""),
    ListColumn("who", lambda one: one["who"]),
    ListColumn("address", lambda one: one["address"] if one["address"] != one["who"] else ""),
    ListColumn("times", lambda one: one["count"]),
    ListColumn("reason", lambda one: one["reason"]),
    ListColumn("id", lambda one: str(one["id"]), extra=True),
)


@click.command(cls=Command, short_help="Show administrative acts and refusals.")
@click.option(
    "--since", callback=moment, metavar="WHEN", help="From this time on: 2026-11-21T08:00, or 30m, 2h, 7d ago."
)
@click.option("--until", callback=moment, metavar="WHEN", help="Before this time.")
@click.option(
    "--who",
    metavar="NAME",
    help="Only entries of this identity: a subject, ISSUER#SUBJECT, a console user, an address.",
)
@click.option(
    "--action", metavar="NAME", help="Only entries of this action, such as rp.delete; rp.* for all of a kind."
)
@click.option("--outcome", type=click.Choice(["ok", "refused", "failed"]), help="Only entries with this outcome.")
@click.option("--on", metavar="ID", help="Only entries on this rendezvous point, subscription, token, key or user.")
@click.option(
    "--limit",
    type=click.IntRange(1, SHOWN_MAX),
    default=SHOWN_DEFAULT,
    show_default=True,
    help="Number of newest entries to show, oldest first.",
)
@click.option("--follow", is_flag=True, help="Then print new entries, until Ctrl-C.")
@click.option("--export", metavar="FILE", help="Write all entries to FILE as JSON Lines instead; - is standard output.")
@list_options(_COLUMNS)
def command(
    target: Target, limit: int, follow: bool, export: str | None, columns: tuple[ListColumn, ...], **filters: str | None
) -> None:
    """Show administrative acts and refusals in the domain. Requires an administrator's token."""
    if export is not None and follow:
        raise click.UsageError("--export and --follow cannot be combined.")
    if export is not None:
        run(_export(target, export, filters))
        return
    # new entries follow: then nothing is paged
    with ListPrinter(target, columns, empty="No such act was recorded.", paged=not follow) as rows:
        run(_show(target, rows, limit, follow, filters))


async def _show(target: Target, rows: ListPrinter, limit: int, follow: bool, filters: Mapping[str, str | None]) -> None:
    async with target.client() as client:
        entries = await _newest(client, limit, filters)
        for entry in reversed(entries):
            rows.add(entry)
        last = entries[0]["id"] if entries else None
        if follow and last is None:  # nothing matches yet: new entries are those after all present ones
            last = max((entry["id"] for entry in await _newest(client, 1, {})), default=0)
        while follow:
            rows.flush()
            page = await client.audit(order="oldest", after=last, limit=PAGE, **filters)
            for entry in page["items"]:
                rows.add(entry)
                last = entry["id"]
            if page["next"] is None:
                await asyncio.sleep(FOLLOW_S)


async def _newest(client: Client, limit: int, filters: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """Return the newest `limit` entries, newest first."""
    entries: list[dict[str, Any]] = []
    cursor = None
    while len(entries) < limit:
        page = await client.audit(cursor=cursor, limit=min(PAGE, limit - len(entries)), **filters)
        entries += page["items"]
        cursor = page["next"]
        if cursor is None:
            break
    return entries


async def _export(target: Target, file: str, filters: Mapping[str, str | None]) -> None:
    """Write the lines to a file that appears when it is complete; only its owner can read it."""
    if file == "-":
        async with target.client() as client:
            async for line in client.audit_export(**filters):
                json_line(line)
        return
    path = Path(file)
    try:
        descriptor, unfinished = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}.") from None
    count = 0
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            async with target.client() as client:
                async for line in client.audit_export(**filters):
                    out.write(line + "\n")
                    count += 1
        _rename(unfinished, path)
    except BaseException:
        _remove(unfinished)
        raise
    target.show({"file": str(path), "entries": count}, f"{count} entries are in {path}.")


def _rename(unfinished: str, path: Path) -> None:
    Path(unfinished).replace(path)


def _remove(unfinished: str) -> None:
    with suppress(OSError):
        Path(unfinished).unlink()
