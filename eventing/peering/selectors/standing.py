"""Reads of peers' standing from Redis: last contacts, requested pauses, whether they accept what is sent."""

from __future__ import annotations

from collections.abc import Sequence

from eventing.peering.rules.deliveries import PeerStanding
from eventing.store.peer_state import standing_notes


def standings(peers: Sequence[str]) -> dict[str, PeerStanding]:
    """Return the standing of each of these peers, in one round trip. Raises redis.RedisError."""
    return {peer: _standing(*notes) for peer, notes in zip(peers, standing_notes(peers), strict=True)}


def _standing(contact: Sequence[bytes | None], paused: bytes | None, untaken: bytes | None) -> PeerStanding:
    (request,), (answer,), (taking,) = (_numbers(one, 1) for one in (*contact, untaken))
    since, asked_s = _numbers(paused, 2)
    return PeerStanding(
        request_at=request,
        answer_at=answer,
        paused_since=since,
        paused_until=None if since is None or asked_s is None else since + asked_s,
        untaken_since=taking,
    )


def _numbers(value: bytes | None, count: int) -> list[float | None]:
    """Return `count` numbers from a value; None for each missing one."""
    try:
        found = [float(part) for part in (value or b"").split()]
    except ValueError:
        found = []
    return [*found] if len(found) == count else [None] * count
