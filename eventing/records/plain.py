"""Records as JSON, for spools that a small domain writes: no Arrow in a process that stays (50 MiB).

A frame of such a spool is one JSON array: version, gateway, number of the first record, the actors, and the cells, in which an
actor is its place among the actors. It begins with a bracket, which no Arrow stream does.
"""

from __future__ import annotations

from typing import Any

import msgspec

from eventing.core.decoding import json_reader
from eventing.records.rows import WIDTH, Cells, Who

VERSION = 1
FIRST_BYTE = ord("[")
_decode = json_reader(list)
_WHO = 1  # place of the actor within a record


def dump(cells: Cells, gateway: str, first_number: int) -> bytes:
    """Encode records. At least one record."""
    whos = cells[_WHO::WIDTH]
    place = {who: at for at, who in enumerate(dict.fromkeys(whos))}
    people = [[*map(_text, (who.principal, who.issuer, who.client, who.peer)), who.session] for who in place]
    written = list(cells)
    written[_WHO::WIDTH] = [place[who] for who in whos]
    return msgspec.json.encode([VERSION, gateway, first_number, people, written])


def is_plain(frame: bytes | memoryview) -> bool:
    """Return True if a spool's frame was made by `dump`."""
    return len(frame) > 0 and frame[0] == FIRST_BYTE


def load(frame: bytes | memoryview) -> tuple[Cells, str, int]:
    """Decode a frame into records, gateway and the number of the first record.

    Raises ValueError for malformed bytes and for another version.
    """
    found = _decode(frame)
    if not isinstance(found, list) or len(found) != 5 or found[0] != VERSION:
        raise ValueError("The records are not in the plain form of this version.")
    _, gateway, first_number, people, cells = found
    try:
        known = [Who(*person) for person in people]
        cells[_WHO::WIDTH] = [known[at] for at in cells[_WHO::WIDTH]]
    except (TypeError, IndexError) as error:
        raise ValueError(f"The records are malformed: {error}.") from None
    return cells, gateway, first_number


def _text(name: Any) -> str:
    """Return a name that JSON can hold: a lone surrogate becomes a question mark, as in a segment."""
    return str(name).encode("utf-8", "replace").decode()
