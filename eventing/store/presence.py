"""Presence: gateways' signs of life in Redis, which expire, so that a killed gateway leaves nothing behind.

They state which administrative RPs have readers, which gateways exist, and which of them leads the sampling of the
domain. One round trip a second for each gateway.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import redis.asyncio

from eventing.core.ids import DOMAIN_ADMIN
from eventing.store import keys
from eventing.store.client import client as own_client
from eventing.store.connection import primaries_of_async
from eventing.store.lease import LeaderLease

WATCHED_S = 3.0
"""Seconds for which an administrative RP counts as read after the last gateway's statement, which it repeats each
second.
"""

ENGINE_S = 60  # what a worker states of its report engine counts for so long; it is stated every few seconds
SILENT_S = 5.0  # bound: seconds without a sign of life from a gateway; the gateway is reported as lost
"""A gateway without a sign of life for this many seconds is lost."""

WATCHED_MAX = 1000  # bound: RPs sampled each second; the others are sampled every 10 s
"""RPs sampled each second; the others every ten seconds."""

PROCESS_PRESENT_S = 60.0
"""Seconds for which a process counts as present after its last note: clocks of hosts may differ by half of that."""

PROCESSES_MAX = 1000  # bound: processes behind the gateways that are counted; the others are left out

LOST_MAX = 100
"""Lost gateways processed in a turn."""


@dataclass(frozen=True, slots=True)
class Around:
    """The other gateways as a gateway sees them.

    Attributes:
        watched: ids of the administrative RPs with readers at any gateway.
        gateways: their number, at least 1.
        leads: whether this gateway leads the sampling of the domain.
        lost: gateways without a sign of life; only the leader gets them, and removes them from the list.
    """

    watched: frozenset[str] = field(default_factory=frozenset)
    gateways: int = 1
    leads: bool = False
    lost: tuple[str, ...] = ()


class GatewayPresence:
    """The presence of one gateway.

    Args:
        gateway: its id.
    """

    def __init__(self, gateway: str, client: redis.asyncio.Redis) -> None:
        self._gateway = gateway
        self._client = client
        self._lease = LeaderLease(keys.SAMPLING_TURN_KEY, gateway, int(SILENT_S * 1000))
        self._led = False

    async def renew(self, now: float, reading: Collection[str], late_ms: float = 0.0) -> Around:
        """Renew this gateway's sign of life with the administrative RPs read here, and read the others'.

        Args:
            now: Unix seconds.
            late_ms: greatest recent delay of the gateway's event loop, for the alarm watcher.

        Raises redis.RedisError.
        """
        pipeline = self._client.pipeline(transaction=False)
        if reading:
            pipeline.zadd(keys.WATCHED_KEY, dict.fromkeys(sorted(reading), now + WATCHED_S), gt=True)
        pipeline.zadd(keys.GATEWAYS_KEY, {self._gateway: now + SILENT_S})
        pipeline.zrangebyscore(keys.WATCHED_KEY, now, "+inf", start=0, num=WATCHED_MAX)
        pipeline.zcount(keys.GATEWAYS_KEY, now, "+inf")
        self._lease.acquire(pipeline)
        pipeline.set(keys.gateway_late_key(self._gateway), late_ms, px=int(SILENT_S * 1000))
        pipeline.zscore(keys.WATCHED_KEY, DOMAIN_ADMIN)  # whatever the number of others
        if self._led:
            pipeline.zremrangebyscore(keys.WATCHED_KEY, "-inf", now)
            pipeline.zrangebyscore(keys.GATEWAYS_KEY, "-inf", now, start=0, num=LOST_MAX)
        answers: list[Any] = await pipeline.execute()
        if reading:
            answers = answers[1:]
        watched, gateways, turn, domain = answers[1], answers[2], answers[3], answers[5]
        lost = tuple(one.decode() for one in answers[7]) if self._led else ()
        self._led = turn == 1
        if self._led and lost:
            await self._remove(lost)
        read = {one.decode() for one in watched}
        if domain is not None and domain >= now:
            read.add(DOMAIN_ADMIN)
        return Around(frozenset(read), max(1, gateways), self._led, lost if self._led else ())

    async def _remove(self, lost: tuple[str, ...]) -> None:
        pipeline = self._client.pipeline(transaction=False)
        pipeline.zrem(keys.GATEWAYS_KEY, *lost)
        for one in lost:
            pipeline.delete(keys.gateway_load_key(one))
        await pipeline.execute()

    async def leave(self) -> None:
        """Remove this gateway's presence as it ends. Raises redis.RedisError."""
        pipeline = self._client.pipeline(transaction=False)
        pipeline.zrem(keys.GATEWAYS_KEY, self._gateway)
        pipeline.delete(keys.gateway_load_key(self._gateway))
        self._lease.release(pipeline)
        await pipeline.execute()


def gateways_alive(now: datetime) -> list[str]:
    """Return the ids of the gateways with a recent sign of life."""
    found: Any = own_client().zrangebyscore(keys.GATEWAYS_KEY, now.timestamp(), "+inf")
    return sorted(one.decode() for one in found)


def present(child: str) -> None:
    """Note that a process of this domain is working; /readyz accepts the note for PRESENCE_S. Processes of one kind count each for itself."""
    now = time.time()
    pipeline = own_client().pipeline(transaction=False)
    pipeline.set(keys.presence_key(child), "1", ex=keys.PRESENCE_S)
    pipeline.zadd(keys.PROCESSES_KEY, {f"{child} {socket.gethostname()} {os.getpid()}": now + PROCESS_PRESENT_S})
    pipeline.zremrangebyscore(keys.PROCESSES_KEY, "-inf", now - PROCESS_PRESENT_S)
    pipeline.execute()


async def child_present(client: redis.asyncio.Redis, child: str) -> bool:
    """Return True if `present` was called for the child within PRESENCE_S."""
    return bool(await client.exists(keys.presence_key(child)))


async def processes_present(client: redis.asyncio.Redis, now: float) -> dict[str, int]:
    """Count the processes behind the gateways of all hosts that are working, by kind.

    Args:
        now: Unix seconds.
    """
    found: Any = await client.zrangebyscore(keys.PROCESSES_KEY, now, "+inf", start=0, num=PROCESSES_MAX)
    return dict(sorted(Counter(one.decode().partition(" ")[0] for one in found).items()))


async def answers(client: redis.asyncio.Redis) -> bool:
    """Return True if Redis answers, of several primaries at least one: RPs elsewhere are served; else raise redis' errors."""
    pings: list[Any] = [node.ping() for node in await primaries_of_async(client)]
    found = await asyncio.gather(*pings, return_exceptions=True)
    failed = [one for one in found if isinstance(one, BaseException)]
    if len(failed) == len(found):
        raise failed[0]
    return True


def engine_problem_note(problem: str) -> None:
    """State why the worker cannot make reports; an empty text: it can. Raises redis.RedisError."""
    own_client().set(keys.REPORTS_KEY, json.dumps({"problem": problem}), ex=ENGINE_S)


def engine_problem_noted() -> str | None:
    """Return the text of the last `engine_problem_note`; None without a recent note."""
    noted: Any = own_client().get(keys.REPORTS_KEY)
    return None if noted is None else str(json.loads(noted)["problem"])
