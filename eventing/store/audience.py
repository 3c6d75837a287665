"""Counts of connected readers per audience and gateway: a hash per RP in Redis, whose entries expire unless renewed.

Only RPs that declare an audience have one (eventing/gateway/delivery/audience.py). Gateways compare times by their own
clocks, as eventing/store/presence.py does, so that the readers of a killed gateway stop counting after PRESENT_S.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import redis.asyncio

from eventing.core.decoding import msgpack_reader
from eventing.store import keys
from eventing.store.client import client as own_client

PRESENT_S = 3.0
"""Seconds for which a gateway's counts are valid; gateways renew them each second."""

KEPT_MS = 10_000


class Present(NamedTuple):
    """One gateway's count of readings by label, valid until `until` (Unix s)."""

    until: float
    counts: dict[str, int]


_decode = msgpack_reader(Present)
_encode = msgspec.msgpack.encode


async def presence_set(
    client: redis.asyncio.Redis, gateway: str, counts: Mapping[str, Mapping[str, int]], now: float
) -> None:
    """Publish this gateway's counts for some RPs; an empty count removes the entry. Raises redis' errors."""
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
    """Read the unexpired counts of these RPs, by gateway, in one round trip. Raises redis' errors."""
    pipeline = client.pipeline(transaction=False)
    for rp in rps:
        pipeline.hgetall(keys.audience_key(rp))
    return [_presence_read(answer) for answer in await pipeline.execute()]


def present(rps: Sequence[str], now: float) -> dict[str, dict[str, int]]:
    """Per RP, sum the readings of each label over all gateways, in one round trip. Raises redis' errors."""
    pipeline = own_client().pipeline(transaction=False)
    for rp in rps:
        pipeline.hgetall(keys.audience_key(rp))
    answers = zip(rps, pipeline.execute(), strict=True)
    return {rp: total(_presence_read(answer), now) for rp, answer in answers}


def total(said: Mapping[str, Present], now: float, *, without: str = "") -> dict[str, int]:
    """Sum the unexpired counts; `without`: leave out this gateway's."""
    made: dict[str, int] = {}
    for gateway, one in said.items():
        if gateway != without and one.until > now:
            for label, count in one.counts.items():
                made[label] = made.get(label, 0) + count
    return made


def _presence_read(answer: Any) -> dict[str, Present]:
    return {gateway.decode(): _decode(packed) for gateway, packed in answer.items()}
