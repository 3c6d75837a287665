"""How received events and gaps are printed, by `sub`, `sub-durable attach` and `sub-durable pull`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import click

from herald.commands.common import dump, printable
from herald.events import Gap, Item, Received, event_data


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints each event on stdout, at once, and each gap on stderr."""

    json: bool
    data_only: bool

    def item(self, item: Item, name: str) -> None:
        """Print an event or a gap of the rendezvous point that the user calls `name`."""
        if isinstance(item, Gap):
            self.gap(item)
        elif self.data_only:
            self._data(item.event)
        elif self.json:
            place = {"epoch": item.epoch, "offset": item.offset, "cursor": item.cursor, "event": item.event}
            click.echo(dump({"rp": item.rp, **place} if item.rp else place))
        else:
            click.echo(line(item.event, name, str(item.offset)))

    def gap(self, gap: Gap) -> None:
        """Say on stderr what is missing."""
        if self.json:
            members = {"rp": gap.rp, "epoch": gap.epoch, "from": gap.start, "to": gap.end}
            click.echo(dump({"gap": {**members, "previous_epoch": gap.previous_epoch}}), err=True)
        else:
            click.echo(f"gap: {gap}", err=True)

    def _data(self, event: dict[str, Any]) -> None:
        data = event_data(event)
        if isinstance(data, bytes):
            sys.stdout.flush()
            click.echo(data)
        elif isinstance(data, str) and not self.json:
            click.echo(printable(data, keep="\n\t") if sys.stdout.isatty() else data)
        else:
            click.echo(dump(data))


def line(event: dict[str, Any], name: str, offset: str) -> str:
    """One event for people: time, name, offset, type, data."""
    data = event_data(event)
    if isinstance(data, bytes):
        shown = f"({len(data)} bytes of {event.get('datacontenttype', 'data')})"
    else:
        shown = data if isinstance(data, str) else ("" if data is None else dump(data))
    time = str(event.get("time", "-"))
    parts = [time, name, offset, str(event.get("type", "-")), *([shown] if shown else [])]
    return printable("  ".join(parts))


async def show(items: AsyncIterator[Item], name: str, printer: Printer, left: list[int] | None) -> None:
    """Print items until they end, or `left` (a count shared by all readings, of events only) is used up."""
    async for item in items:
        printer.item(item, name)
        if left is not None and isinstance(item, Received):
            left[0] -= 1
            if left[0] <= 0:
                return
