"""Peers and their misbehaviour as administrative events and answers show them."""

from __future__ import annotations

from typing import Any

from eventing.peering.models import Misbehaviour, Peer
from eventing.peering.shapes import MisbehaviourData, PeerData, PeerLease


def peer_data(row: Peer) -> PeerData:
    """Return a peer as its events show it."""
    return PeerData.of(row, **peer_members(row))


def peer_members(row: Peer) -> dict[str, Any]:
    """Return the shown members of a peer that differ from its row's."""
    return {"theirs": row.theirs or None, "lease": PeerLease.of(row)}


def misbehaviour_data(row: Misbehaviour) -> MisbehaviourData:
    """Return a row of misbehaviour as its events show it."""
    return MisbehaviourData.of(row)
