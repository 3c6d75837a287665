"""Rows of gossip objects as they are signed: by the identity key of their owner, the one that signs its record. Pure.

signature = SIGNATURE by the identity key over the MessagePack of [object, owner, version, expires_s, payload]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from eventing.core.signing import OVERLAY_ROW, Signed, sign, verified
from eventing.overlay.gossip_object import SignedRow

_encode = msgspec.msgpack.Encoder().encode


def row_sign(name: str, row: SignedRow, identity: Mapping[str, Any]) -> SignedRow:
    """Return the row with its signature.

    Args:
        name: of the gossip object.
        identity: private JWK of the owner's identity key.
    """
    return msgspec.structs.replace(row, signature=sign(OVERLAY_ROW, _signed(name, row), identity).signature)


def row_verified(name: str, row: SignedRow, identity: str) -> bool:
    """Return True if the key (member `x`) signed the row for the gossip object."""
    return verified(OVERLAY_ROW, Signed(_signed(name, row), "", row.signature), {"x": identity})


def _signed(name: str, row: SignedRow) -> bytes:
    return _encode((name, row.owner, row.version, row.expires_s, row.payload))
