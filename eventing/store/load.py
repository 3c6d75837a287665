"""The last load samples, for snapshots, and the state of Redis itself. All functions raise redis.RedisError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eventing.store import keys
from eventing.store.bulk_connection import Command
from eventing.store.client import client
from eventing.store.connection import AsyncRedis

GATEWAY_KEPT_S = 60  # a gateway stores the next sample long before
RP_KEPT_S = 86_400


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
    found: Any = client().mget(of) if of else []
    return {name: value for name, value in zip(names, found, strict=True) if value is not None}


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


async def server_load_now(redis: AsyncRedis) -> dict[str, int]:
    """Return memory and operations per second of Redis."""
    return _server_load(await redis.info())


def server_load() -> dict[str, int]:
    """Return `server_load_now`, for synchronous callers."""
    info: Any = client().info()
    return _server_load(info)


def _server_load(info: Mapping[str, Any]) -> dict[str, int]:
    return {"used_bytes": int(info["used_memory"]), "ops_s": int(info["instantaneous_ops_per_sec"])}
