"""Peers and their misbehaviour as administrative events and answers show them."""

from __future__ import annotations

from typing import Any

from eventing.core.timestamps import timestamp
from eventing.peering.models import Misbehaviour, Peer


def peer_data(row: Peer) -> dict[str, Any]:
    """A peer as its events and answers show it."""
    return {
        "name": row.name,
        "url": row.url,
        "state": row.state,
        "theirs": row.theirs or None,
        "fingerprint": row.fingerprint,
        "push": row.push,
        "host": row.host,
        "gossip": row.gossip,
        "lease": {"granted_s": row.granted_s, "expires_at": timestamp(row.expires_at)},
    }


def misbehaviour_data(row: Misbehaviour) -> dict[str, Any]:
    """A row of misbehaviour as its events show it."""
    return {
        "kind": row.kind,
        "carrier": row.carrier,
        "origin": row.origin,
        "count": row.count,
        "rp": row.rp,
        "detail": row.detail,
        "last_at": timestamp(row.last_at),
    }
