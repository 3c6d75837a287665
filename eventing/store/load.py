"""The last load samples, for snapshots, and the state of Redis itself. All functions raise redis.RedisError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eventing.store import keys
from eventing.store.bulk_connection import Command
from eventing.store.client import client
from eventing.store.connection import AsyncRedis, primaries_of, primaries_of_async

GATEWAY_KEPT_S = 60  # a gateway stores the next sample long before
RP_KEPT_S = 86_400
RPS_AT_ONCE = 500  # RPs whose samples are read in one round trip


async def gateway_load_write(redis: AsyncRedis, gateway: str, row: bytes) -> None:
    """Store a gateway's sample."""
    await redis.set(keys.gateway_load_key(gateway), row, ex=GATEWAY_KEPT_S)


def gateway_loads(gateways: Sequence[str]) -> dict[str, bytes]:
    """Return the last samples of these gateways, by id; gateways without one are left out."""
    return _values(gateways, [keys.gateway_load_key(one) for one in gateways])


def gateway_lateness_ms(gateways: Sequence[str]) -> dict[str, float]:
    """Return the recent maximum event loop delay of these gateways, by id, where known."""
    found = _values(gateways, [keys.gateway_late_key(one) for one in gateways])
    return {gateway: float(value) for gateway, value in found.items()}


def _values(names: Sequence[str], of: Sequence[str]) -> dict[str, bytes]:
    pipeline = client().pipeline(transaction=False)
    for key in of:
        pipeline.get(key)
    return {name: value for name, value in zip(names, pipeline.execute(), strict=True) if value is not None}


def rp_load_commands(gateway: str, rows: Mapping[str, bytes]) -> list[Command]:
    """Make the commands that store a gateway's samples of RPs, by RP; for LogReader.ask."""
    commands: list[Command] = []
    for rp, row in rows.items():
        key = keys.rp_load_key(rp)
        commands += [("HSET", key, gateway, row), ("EXPIRE", key, RP_KEPT_S)]
    return commands


def rp_loads(rp: str) -> dict[str, bytes]:
    """Return the last samples of an RP, by gateway."""
    kept: Any = client().hgetall(keys.rp_load_key(rp))
    return {gateway.decode(): row for gateway, row in kept.items()}


def rps_loads(rps: Sequence[str]) -> dict[str, dict[str, bytes]]:
    """Return the last samples of these RPs, by RP and gateway; RPs without one are left out."""
    found: dict[str, dict[str, bytes]] = {}
    for at in range(0, len(rps), RPS_AT_ONCE):
        some = rps[at : at + RPS_AT_ONCE]
        pipeline = client().pipeline(transaction=False)
        for rp in some:
            pipeline.hgetall(keys.rp_load_key(rp))
        for rp, kept in zip(some, pipeline.execute(), strict=True):
            if kept:
                found[rp] = {gateway.decode(): row for gateway, row in kept.items()}
    return found


async def server_load_now(redis: AsyncRedis) -> dict[str, int]:
    """Return memory and operations per second of Redis, of all its primaries together."""
    return _server_load([await node.info() for node in await primaries_of_async(redis)])


def server_load() -> dict[str, int]:
    """Return `server_load_now`, for synchronous callers."""
    found: list[Any] = [node.info() for node in primaries_of(client())]
    return _server_load(found)


def _server_load(found: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {
        "used_bytes": sum(int(info["used_memory"]) for info in found),
        "ops_s": sum(int(info["instantaneous_ops_per_sec"]) for info in found),
    }
