"""How many readings of each audience there are, by gateway: a hash of the RP in Redis. What is not renewed has expired.

Only RPs that declare an audience have one (eventing/gateway/delivery/audience.py). Gateways compare times by their own clocks, as
eventing/operations/samples/presence.py does, so that the readers of a killed gateway are gone after PRESENT_S.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import redis
import redis.asyncio

from eventing.core.decoding import msgpack_reader
from eventing.store import keys

PRESENT_S = 3.0
"""How long a gateway's readers count after it said so last; it says so each second."""

KEPT_MS = 10_000


class Present(NamedTuple):
    """What one gateway said: readings by label, valid until then (Unix s)."""

    until: float
    counts: dict[str, int]


_decode = msgpack_reader(Present)
_encode = msgspec.msgpack.encode


async def tell(client: redis.asyncio.Redis, gateway: str, counts: Mapping[str, Mapping[str, int]], now: float) -> None:
    """Say for some RPs how many readings this gateway has; none of any label: nothing is left of it. Raises redis' errors."""
    pipeline = client.pipeline(transaction=False)
    for rp, of_rp in counts.items():
        key = keys.audience_key(rp)
        if any(of_rp.values()):
            pipeline.hset(key, gateway, _encode(Present(now + PRESENT_S, dict(of_rp))))
            pipeline.pexpire(key, KEPT_MS)
        else:
            pipeline.hdel(key, gateway)
    await pipeline.execute()


async def ask(client: redis.asyncio.Redis, rps: Sequence[str]) -> list[dict[str, Present]]:
    """What was said of these RPs, by gateway; what has expired among it. One round trip. Raises redis' errors."""
    pipeline = client.pipeline(transaction=False)
    for rp in rps:
        pipeline.hgetall(keys.audience_key(rp))
    return [_said(answer) for answer in await pipeline.execute()]


def present(client: redis.Redis, rps: Sequence[str], now: float) -> dict[str, dict[str, int]]:
    """Per RP, how many readings there are of each label over all gateways. One round trip. Raises redis' errors."""
    pipeline = client.pipeline(transaction=False)
    for rp in rps:
        pipeline.hgetall(keys.audience_key(rp))
    answers = zip(rps, pipeline.execute(), strict=True)
    return {rp: total(_said(answer), now) for rp, answer in answers}


def total(said: Mapping[str, Present], now: float, *, without: str = "") -> dict[str, int]:
    """The sum of what has not expired; `without`: of all gateways but this one."""
    made: dict[str, int] = {}
    for gateway, one in said.items():
        if gateway != without and one.until > now:
            for label, count in one.counts.items():
                made[label] = made.get(label, 0) + count
    return made


def _said(answer: Any) -> dict[str, Present]:
    return {gateway.decode(): _decode(packed) for gateway, packed in answer.items()}
