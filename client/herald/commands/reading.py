"""Printing of received events and gaps, for `sub`, `sub-durable attach` and `sub-durable pull`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from herald.commands.output import data, document, dump, note, say
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
            document({"rp": item.rp, **place} if item.rp else place)
        else:
            say(line(item.event, name, str(item.offset)))

    def gap(self, gap: Gap) -> None:
        """Print on stderr what is missing."""
        if self.json:
            members = {"rp": gap.rp, "epoch": gap.epoch, "from": gap.start, "to": gap.end}
            document({"gap": {**members, "previous_epoch": gap.previous_epoch}}, err=True)
        else:
            note(f"gap: {gap}")

    def _data(self, event: dict[str, Any]) -> None:
        value = event_data(event)
        if isinstance(value, bytes) or (isinstance(value, str) and not self.json):
            data(value)
        else:
            document(value)


def line(event: dict[str, Any], name: str, offset: str) -> str:
    """Return one event as a line for people: time, name, offset, type, data."""
    value = event_data(event)
    if isinstance(value, bytes):
        shown = f"({len(value)} bytes of {event.get('datacontenttype', 'data')})"
    else:
        shown = value if isinstance(value, str) else ("" if value is None else dump(value))
    time = str(event.get("time", "-"))
    parts = [time, name, offset, str(event.get("type", "-")), *([shown] if shown else [])]
    return "  ".join(parts)


async def show(items: AsyncIterator[Item], name: str, printer: Printer, left: list[int] | None) -> None:
    """Print items until they end, or `left` (a count shared by all readings, of events only) is used up."""
    async for item in items:
        printer.item(item, name)
        if left is not None and isinstance(item, Received):
            left[0] -= 1
            if left[0] <= 0:
                return
