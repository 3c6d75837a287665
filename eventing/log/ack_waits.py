"""Waiting for what an acknowledgement level promises: the commands that follow a write, and what their answers leave unfulfilled.

WAIT counts the replicas that have everything which its connection has written. How many replicas `replicated:all` means is asked again
after the write: WAIT may have counted one that connected since, in the place of one that has not confirmed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import redis.asyncio
from redis.exceptions import NoScriptError, RedisError, ResponseError

from eventing.core.errors import AckUnavailable
from eventing.core.events.ack_level import Ack
from eventing.log import scripts
from eventing.log.scripts import NoLog
from eventing.store.bulk_connection import BulkConnection, Command
from eventing.store.bulk_links import BulkLinks, bulk_of
from eventing.store.client import Script, form_for
from eventing.store.connection import ANSWER_TIMEOUT_S, Durability

WAIT_MS = 5000  # bound: milliseconds to wait for replicas or fsync; 503 `ack-unavailable`
CALLS_MAX = 8  # bound: acknowledgements of durable subscriptions that wait for replicas at once; the next ones wait
CALL_TRIES = 4  # the script unknown, and replicas that have connected since they were counted
_CONNECTED = re.compile(rb"connected_slaves:(\d+)")


class Level(NamedTuple):
    """An acknowledgement level, and what the servers provide of it."""

    ack: Ack
    durability: Durability


def replicas_wanted(ack: Ack, durability: Durability) -> int:
    """Return how many replicas a level waits for. Raises AckUnavailable where all are meant and some are away."""
    if not ack.all:
        return ack.replicas
    there, wanted = durability.replicas, max(1, durability.replicas_known)
    if there < wanted:
        raise AckUnavailable(
            f"'{ack}' needs every replica of this domain's Redis, and {there} of {wanted} are connected. Publish again when they are back.",
            retry_after_s=5,
        )
    return there


def wait_commands(ack: Ack, durability: Durability, replicas: int) -> list[Command]:
    """Make the commands that wait for a level, with so many replicas."""
    if ack.stored and not durability.always:
        return [("WAITAOF", 1, replicas, WAIT_MS)]
    if replicas:
        return [("WAIT", replicas, WAIT_MS)]
    return []


def replicas_reached(waits: Sequence[Command], answers: Sequence[Any], wanted: int) -> int | None:
    """Return how many of `wanted` replicas confirmed, by the answers to `waits`, where these are not enough; None where they are.

    Raises a server's error.
    """
    for wait, answer in zip(waits, answers, strict=True):
        if isinstance(answer, RedisError):
            raise answer
        local, replicas = (1, answer) if wait[0] == "WAIT" else answer
        if local < 1 or replicas < wanted:
            return int(replicas)
    return None


def replicas_connected(info: Any) -> int:
    """Return how many replicas are connected, from INFO's answer. Raises a server's error."""
    if isinstance(info, RedisError):
        raise info
    found = _CONNECTED.search(info)
    return int(found[1]) if found else 0


class DurableCalls:
    """Calls of scripts about one log that are answered once their effects are as durable as a level demands. Only for scripts that may be
    called again: a call may be repeated after a connection broke."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self._client = client
        self._free: list[BulkConnection | BulkLinks] = []  # WAIT holds up what else is asked on a connection
        self._turn = asyncio.Semaphore(CALLS_MAX)

    def close(self) -> None:
        """Close the connections."""
        for connection in self._free:
            connection.close()

    async def call(self, script: Script, rp: str, args: list[Any], level: Level) -> Any:
        """Call a script. Raises NoLog, AckUnavailable where the level is not reached in time, and redis' errors."""
        async with self._turn:
            connection = self._free.pop() if self._free else bulk_of(self._client)
            try:
                return await self._call(connection, form_for(self._client, script), rp, args, level)
            finally:
                self._free.append(connection)

    async def _call(
        self, connection: BulkConnection | BulkLinks, script: Script, rp: str, args: list[Any], level: Level
    ) -> Any:
        replicas = replicas_wanted(*level)
        asked = [scripts.replication_asked(rp)] if level.ack.all else []
        command: Command = ("EVALSHA", script.sha, *args)
        for _ in range(CALL_TRIES):
            waits = wait_commands(*level, replicas)
            answer, *others = await connection.ask([command, *asked, *waits], ANSWER_TIMEOUT_S)
            if isinstance(answer, NoScriptError):
                command = ("EVAL", script.text, *args)
                continue
            if isinstance(answer, ResponseError) and str(answer).startswith("NOLOG"):
                raise NoLog
            if isinstance(answer, Exception):
                raise answer
            connected = max(map(replicas_connected, others[: len(asked)]), default=0)
            if connected <= replicas:
                break
            replicas = connected  # which of them have it is not known: write again, and wait for all
        else:
            raise RedisError("replicas connect one after the other")
        waited = others[len(asked) :]
        reached = replicas_reached(waits, waited, replicas)
        if reached is not None:
            raise AckUnavailable(
                f"The acknowledgement is stored, but '{level.ack}' was not reached within {WAIT_MS // 1000} s ({reached} of {replicas} replicas). Sending it again is safe.",
                retry_after_s=1,
            )
        return answer
