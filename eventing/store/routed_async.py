"""The asynchronous client of several primaries, as routed.py: each command is sent to the home of its keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import redis.asyncio
from redis.asyncio.client import Pipeline
from redis.exceptions import ConnectionError, RedisError

from eventing.core.data_plane import ServerAddress
from eventing.store.plane import Plane, is_of_topology, require_one_slot
from eventing.store.routed import AT_ALL, Queued
from eventing.store.spreading import RETRY_S, Batch, Spreading

SILENT_S = 1.0  # seconds without an answer after which it is looked whether the server is still a primary
Send = Callable[[redis.asyncio.Redis, Batch], Coroutine[Any, Any, list[Any]]]


class RoutedAsyncRedis(redis.asyncio.Redis):
    """The client; arguments as of RoutedRedis. One per event loop."""

    def __init__(self, plane: Plane, connect: Callable[[str], redis.asyncio.Redis], retry_s: float = RETRY_S) -> None:
        super().__init__(connection_pool=redis.asyncio.ConnectionPool(protocol=2))  # never connected
        self.plane = plane
        self._connect = connect
        self._retry_s = retry_s
        self._nodes: dict[ServerAddress, redis.asyncio.Redis] = {}

    def node(self, place: ServerAddress) -> redis.asyncio.Redis:
        """Return the client of one server."""
        found = self._nodes.get(place)
        if found is None:
            found = self._nodes[place] = self._connect(self.plane.address.url_of(place))
        return found

    async def primaries(self) -> list[redis.asyncio.Redis]:
        """Return the clients of all primaries. Raises redis.RedisError."""
        await known(self.plane)
        return [self.node(primary.place) for primary in self.plane.primaries()]

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Close all connections."""
        await super().aclose(close_connection_pool)
        for node in self._nodes.values():
            await node.aclose()

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command to the home of its keys, or of its channel."""
        if args[0] in AT_ALL:
            nodes: list[Any] = await self.primaries()
            return (await asyncio.gather(*(node.execute_command(*args, **options) for node in nodes)))[0]
        require_one_slot([args])
        (answer,) = await self.pipelined([(args, options)], transaction=False)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def publish(self, channel: Any, message: Any, **options: Any) -> Any:
        """Publish at the home of the channel, in a cluster on a sharded channel."""
        return self.execute_command("SPUBLISH" if self.plane.sharded else "PUBLISH", channel, message, **options)

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> RoutedAsyncPipeline:
        """Make a pipeline; a transaction has keys of one slot only."""
        return RoutedAsyncPipeline(self, transaction)

    async def pipelined(self, commands: Sequence[Queued], *, transaction: bool) -> list[Any]:
        """Return the answers to commands with their options, in order; servers' errors are values.

        Raises SeveralSlots, and the error of a connection that was not made in time.
        """
        if transaction:
            return await self._transaction(commands)

        async def send(node: redis.asyncio.Redis, batch: Batch) -> list[Any]:
            pipeline = node.pipeline(transaction=False)
            for at in batch.indexes:
                if batch.asking:
                    pipeline.command_stack.append((("ASKING",), {}))
                args, options = commands[at]
                pipeline.command_stack.append((args, dict(options)))
            answers: list[Any] = await pipeline.execute(raise_on_error=False)
            return answers[1::2] if batch.asking else answers

        return await self._spread([args for args, _ in commands], send)

    async def _transaction(self, commands: Sequence[Queued]) -> list[Any]:
        key = require_one_slot([args for args, _ in commands])

        async def send(node: redis.asyncio.Redis, batch: Batch) -> list[Any]:
            pipeline = node.pipeline(transaction=True)
            try:
                if batch.asking:  # holds for the whole transaction on this connection
                    await pipeline.immediate_execute_command("ASKING")  # type: ignore[no-untyped-call]
                pipeline.command_stack = [(args, dict(options)) for args, options in commands]
                return [await pipeline.execute(raise_on_error=False)]
            except RedisError as error:
                if is_of_topology(error):
                    return [error]
                raise
            finally:
                await pipeline.reset()  # type: ignore[no-untyped-call]

        (answer,) = await self._spread([("EXEC", key)], send)
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    async def _spread(self, commands: Sequence[Sequence[Any]], send: Send) -> list[Any]:
        await known(self.plane)
        work = Spreading(self.plane, commands, self._retry_s)
        while True:
            batches = work.batches()
            outcomes = await asyncio.gather(
                *(self._unless_replaced(batch.place, send(self.node(batch.place), batch)) for batch in batches),
                return_exceptions=True,
            )
            for batch, outcome in zip(batches, outcomes, strict=True):
                if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
                    raise outcome
                work.take(batch, outcome)
            pause_s = work.pause_s()
            if pause_s is None:
                return work.result()
            await asyncio.sleep(pause_s)
            await look_again(self.plane, work.began)

    async def _unless_replaced(self, place: ServerAddress, sending: Coroutine[Any, Any, list[Any]]) -> list[Any]:
        """Return a server's answers. Raises ConnectionError once it has not answered for a while and is no primary any more: it holds
        its connections, but may be stopped for long."""
        task = asyncio.ensure_future(sending)
        try:
            while not (await asyncio.wait({task}, timeout=SILENT_S))[0]:
                self.plane.refresh(SILENT_S)
                if all(primary.place != place for primary in self.plane.primaries()):
                    raise ConnectionError(f"{place.name} does not answer, and another server has taken its place")
            return task.result()
        finally:
            task.cancel()


class RoutedAsyncPipeline(Pipeline):
    """A pipeline that its client spreads over the servers."""

    def __init__(self, owner: RoutedAsyncRedis, transaction: bool) -> None:
        super().__init__(owner.connection_pool, owner.response_callbacks, transaction, None)
        self._owner = owner

    def publish(self, channel: Any, message: Any, **options: Any) -> Any:
        """Publish as the client does."""
        name = "SPUBLISH" if self._owner.plane.sharded else "PUBLISH"
        return self.execute_command(name, channel, message, **options)

    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send all commands and return their answers."""
        commands: Any = self.command_stack
        self.command_stack = []
        answers = await self._owner.pipelined(commands, transaction=self.is_transaction) if commands else []
        if raise_on_error:
            self.raise_first_error(commands, answers)
        return answers


async def known(plane: Plane) -> None:
    """Have the topology looked up if it is not known yet. Raises redis.RedisError."""
    if not plane.is_known:
        await asyncio.to_thread(plane.topology)


async def look_again(plane: Plane, since: float) -> None:
    """Have a thread look the topology up (Plane.look_again)."""
    await asyncio.to_thread(plane.look_again, since)
