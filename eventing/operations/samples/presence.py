"""What the gateways of a domain tell each other, through Redis, so that a killed one leaves nothing behind.

Which administrative RPs somebody reads, which gateways there are, and whose turn it is to sample what is the domain's.
One round trip a second for each gateway.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import redis.asyncio

from eventing.core.ids import DOMAIN_ADMIN
from eventing.log import control
from eventing.store import keys

WATCHED_S = 3.0
"""How long an administrative RP counts as read after the last gateway said so: it says so each second."""

SILENT_S = 5.0
"""A gateway that has said nothing for so long is lost."""

WATCHED_MAX = 1000
"""RPs sampled each second; those beyond have their samples each ten seconds."""

LOST_MAX = 100
"""Lost gateways looked at in a turn."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a gateway sees around it.

    Attributes:
        watched: ids of the administrative RPs that somebody reads, at any gateway.
        gateways: how many there are, at least 1.
        leads: whether it is this one's turn to sample what is the domain's.
        lost: gateways that have fallen silent; told to the leader only, and taken from the list by it.
    """

    watched: frozenset[str] = field(default_factory=frozenset)
    gateways: int = 1
    leads: bool = False
    lost: tuple[str, ...] = ()


class Presence:
    """One gateway's part.

    Args:
        gateway: its id.
    """

    def __init__(self, gateway: str, client: redis.asyncio.Redis) -> None:
        self._gateway = gateway
        self._client = client
        self._led = False

    async def renew(self, now: float, reading: Collection[str], late_ms: float = 0.0) -> Around:
        """Say that this gateway is there, that these administrative RPs are read here, and look around.

        Args:
            now: Unix seconds.
            late_ms: how late the gateway's event loop was at most, lately; the watcher of the domain looks at it.

        Raises redis' errors.
        """
        pipeline = self._client.pipeline(transaction=False)
        if reading:
            pipeline.zadd(keys.WATCHED_KEY, dict.fromkeys(sorted(reading), now + WATCHED_S), gt=True)
        pipeline.zadd(keys.GATEWAYS_KEY, {self._gateway: now + SILENT_S})
        pipeline.zrangebyscore(keys.WATCHED_KEY, now, "+inf", start=0, num=WATCHED_MAX)
        pipeline.zcount(keys.GATEWAYS_KEY, now, "+inf")
        pipeline.set(keys.SAMPLING_TURN_KEY, self._gateway, nx=True, px=int(SILENT_S * 1000))
        pipeline.get(keys.SAMPLING_TURN_KEY)
        pipeline.set(keys.gateway_late_key(self._gateway), late_ms, px=int(SILENT_S * 1000))
        pipeline.zscore(keys.WATCHED_KEY, DOMAIN_ADMIN)  # however many others there are
        if self._led:
            pipeline.zremrangebyscore(keys.WATCHED_KEY, "-inf", now)
            pipeline.zrangebyscore(keys.GATEWAYS_KEY, "-inf", now, start=0, num=LOST_MAX)
        answers: list[Any] = await pipeline.execute()
        if reading:
            answers = answers[1:]
        watched, gateways, turn, domain = answers[1], answers[2], answers[4], answers[6]
        lost = tuple(one.decode() for one in answers[8]) if self._led else ()
        self._led = turn is not None and turn.decode() == self._gateway
        if self._led:
            await self._keep_turn(lost)
        read = {one.decode() for one in watched}
        if domain is not None and domain >= now:
            read.add(DOMAIN_ADMIN)
        return Around(frozenset(read), max(1, gateways), self._led, lost if self._led else ())

    async def _keep_turn(self, lost: tuple[str, ...]) -> None:
        pipeline = self._client.pipeline(transaction=False)
        pipeline.pexpire(keys.SAMPLING_TURN_KEY, int(SILENT_S * 1000))
        if lost:
            pipeline.zrem(keys.GATEWAYS_KEY, *lost)
            pipeline.delete(*[keys.gateway_load_key(one) for one in lost])
        await pipeline.execute()

    async def leave(self) -> None:
        """This gateway ends. Raises redis' errors."""
        pipeline = self._client.pipeline(transaction=False)
        pipeline.zrem(keys.GATEWAYS_KEY, self._gateway)
        pipeline.delete(keys.gateway_load_key(self._gateway))
        if self._led:
            pipeline.delete(keys.SAMPLING_TURN_KEY)
        await pipeline.execute()


def gateways_alive(now: datetime) -> list[str]:
    """The gateways that have not fallen silent, by id."""
    found: Any = control.client().zrangebyscore(keys.GATEWAYS_KEY, now.timestamp(), "+inf")
    return sorted(one.decode() for one in found)
