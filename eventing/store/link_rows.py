"""Rows of measured links, stored by the process that runs the overlay for the one that plans routes.

All functions raise redis.RedisError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.store.client import client
from eventing.store.keys import OVERLAY_LINKS_KEY


class LinkRow(msgspec.Struct, frozen=True, array_like=True):
    """A row of a domain that takes part in an RP with a target reliability.

    Attributes:
        age_s: since the domain signed it, seconds.
        payload: overlay/link_rows.py.
    """

    domain: str
    age_s: int
    payload: bytes


_encode = msgspec.msgpack.Encoder().encode
_read = msgpack_reader(list[LinkRow])


def link_rows_store(rows: Sequence[LinkRow], kept_s: float) -> None:
    """Store the rows for so long; without any, nothing is stored."""
    if rows:
        client().set(OVERLAY_LINKS_KEY, _encode(list(rows)), px=int(kept_s * 1000))


def link_rows_stored() -> list[LinkRow]:
    """Return the rows; none where no process runs the overlay."""
    found: Any = client().get(OVERLAY_LINKS_KEY)
    if found is None:
        return []
    try:
        return _read(bytes(found))
    except Undecodable:
        return []
