"""A synchronous client of several primaries: each command is sent to the home of its keys.

redis-py makes commands and reads answers; this client chooses the servers, gathers what is for one of them into one
pipeline, and puts answers back in order (spreading.py). What was sent over a connection that broke may have been carried
out and is repeated, as redis-py's own retries do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import sleep
from typing import Any

import redis
from redis.client import Pipeline
from redis.exceptions import RedisError

from eventing.core.data_plane import ServerAddress
from eventing.store.plane import Plane, is_of_topology, require_one_slot
from eventing.store.spreading import RETRY_S, Batch, Spreading

AT_ALL = frozenset(("PING", "SCRIPT LOAD", "SCRIPT FLUSH", "FLUSHDB", "FLUSHALL", "CONFIG SET"))
"""Commands that every primary carries out; one answer is returned."""
Queued = tuple[tuple[Any, ...], dict[str, Any]]
Send = Callable[[redis.Redis, Batch], list[Any]]


class RoutedRedis(redis.Redis):
    """The client.

    Args:
        plane: the servers.
        connect: makes the client of one server, given its URL.
        retry_s: seconds that a command is repeated.
    """

    def __init__(self, plane: Plane, connect: Callable[[str], redis.Redis], retry_s: float = RETRY_S) -> None:
        super().__init__(
            connection_pool=redis.ConnectionPool(protocol=2)
        )  # never connected: it says how answers are read
        self.plane = plane
        self._connect = connect
        self._retry_s = retry_s
        self._nodes: dict[ServerAddress, redis.Redis] = {}

    def node(self, place: ServerAddress) -> redis.Redis:
        """Return the client of one server."""
        found = self._nodes.get(place)
        if found is None:
            found = self._nodes.setdefault(place, self._connect(self.plane.address.url_of(place)))
        return found

    def primaries(self) -> list[redis.Redis]:
        """Return the clients of all primaries."""
        return [self.node(primary.place) for primary in self.plane.primaries()]

    def close(self) -> None:
        """Close all connections."""
        super().close()
        for node in list(self._nodes.values()):
            node.close()

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command to the home of its keys, or of its channel."""
        if args[0] in AT_ALL:
            nodes: list[Any] = self.primaries()
            answers = [node.execute_command(*args, **options) for node in nodes]
            return answers[0]
        require_one_slot([args])
        (answer,) = self.pipelined([(args, options)], transaction=False)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def publish(self, channel: Any, message: Any, **options: Any) -> Any:
        """Publish at the home of the channel, in a cluster on a sharded channel."""
        return self.execute_command(_publish(self.plane), channel, message, **options)

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> RoutedPipeline:
        """Make a pipeline; a transaction has keys of one slot only."""
        return RoutedPipeline(self, transaction)

    def scan_iter(self, *args: Any, **options: Any) -> Iterator[Any]:
        """Scan every primary, one after the other."""
        for node in self.primaries():
            yield from node.scan_iter(*args, **options)

    def keys(self, *args: Any, **options: Any) -> Any:
        """Return the keys of all primaries."""
        return [key for node in self.primaries() for key in node.keys(*args, **options)]

    def pipelined(self, commands: Sequence[Queued], *, transaction: bool) -> list[Any]:
        """Return the answers to commands with their options, in order; servers' errors are values.

        Raises SeveralSlots, and the error of a connection that was not made in time.
        """
        if transaction:
            return self._transaction(commands)

        def send(node: redis.Redis, batch: Batch) -> list[Any]:
            pipeline = node.pipeline(transaction=False)
            for at in batch.indexes:
                if batch.asking:
                    pipeline.command_stack.append((("ASKING",), {}))
                args, options = commands[at]
                pipeline.command_stack.append((args, dict(options)))
            answers: list[Any] = pipeline.execute(raise_on_error=False)
            return answers[1::2] if batch.asking else answers

        return self.spread([args for args, _ in commands], send)

    def _transaction(self, commands: Sequence[Queued]) -> list[Any]:
        key = require_one_slot([args for args, _ in commands])

        def send(node: redis.Redis, batch: Batch) -> list[Any]:
            pipeline = node.pipeline(transaction=True)
            try:
                if batch.asking:  # holds for the whole transaction on this connection
                    pipeline.immediate_execute_command("ASKING")  # type: ignore[no-untyped-call]
                pipeline.command_stack = [(args, dict(options)) for args, options in commands]
                return [pipeline.execute(raise_on_error=False)]
            except RedisError as error:
                if is_of_topology(error):
                    return [error]
                raise
            finally:
                pipeline.reset()

        (answer,) = self.spread([("EXEC", key)], send)
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    def spread(self, commands: Sequence[Sequence[Any]], send: Send) -> list[Any]:
        """Return the answers to commands, in order; `send` sends a batch to a server and returns its answers.

        Raises the error of a connection that was not made in time.
        """
        work = Spreading(self.plane, commands, self._retry_s)
        while True:
            for batch in work.batches():
                try:
                    outcome: list[Any] | Exception = send(self.node(batch.place), batch)
                except (RedisError, OSError) as error:
                    outcome = error
                work.take(batch, outcome)
            pause_s = work.pause_s()
            if pause_s is None:
                return work.result()
            sleep(pause_s)
            self.plane.look_again(work.began)


class RoutedPipeline(Pipeline):
    """A pipeline that its client spreads over the servers."""

    def __init__(self, owner: RoutedRedis, transaction: bool) -> None:
        super().__init__(owner.connection_pool, owner.response_callbacks, transaction, None)
        self._owner = owner
        self._is_transaction = transaction

    def publish(self, channel: Any, message: Any, **options: Any) -> Any:
        """Publish as the client does."""
        return self.execute_command(_publish(self._owner.plane), channel, message, **options)  # type: ignore[no-untyped-call]

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send all commands and return their answers."""
        commands, self.command_stack = self.command_stack, []
        answers = self._owner.pipelined(commands, transaction=self._is_transaction) if commands else []
        if raise_on_error:
            self.raise_first_error(commands, answers)  # type: ignore[no-untyped-call]
        return answers


def _publish(plane: Plane) -> str:
    return "SPUBLISH" if plane.sharded else "PUBLISH"
