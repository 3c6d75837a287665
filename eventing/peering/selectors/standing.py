"""What Redis knows of peers beside their failures: last contacts, pauses that they asked for, whether they take what is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventing.log import control
from eventing.peering.rules.deliveries import Standing
from eventing.store.keys import peer_key


def standings(peers: Sequence[str]) -> dict[str, Standing]:
    """The standing of each of these peers, in one round trip. Raises redis.RedisError."""
    if not peers:
        return {}
    pipeline = control.client().pipeline(transaction=False)
    for peer in peers:
        pipeline.hmget(peer_key(peer, "contact"), "request", "answer")
        pipeline.get(peer_key(peer, "paused"))
        pipeline.get(peer_key(peer, "untaken"))
    found: list[Any] = pipeline.execute()
    return {peer: _standing(*found[3 * at : 3 * at + 3]) for at, peer in enumerate(peers)}


def _standing(contact: Sequence[bytes | None], paused: bytes | None, untaken: bytes | None) -> Standing:
    (request,), (answer,), (taking,) = (_numbers(one, 1) for one in (*contact, untaken))
    since, asked_s = _numbers(paused, 2)
    return Standing(
        request_at=request,
        answer_at=answer,
        paused_since=since,
        paused_until=None if since is None or asked_s is None else since + asked_s,
        untaken_since=taking,
    )


def _numbers(value: bytes | None, count: int) -> list[float | None]:
    """So many numbers; None for each where they are not there."""
    try:
        found = [float(part) for part in (value or b"").split()]
    except ValueError:
        found = []
    return [*found] if len(found) == count else [None] * count
