"""Asynchronous reads of the log and of its notification channel, for the gateway's hub and pull."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import redis.asyncio
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from eventing.core.errors import InvalidCursor, Unavailable
from eventing.core.events.cloudevents import Event
from eventing.core.events.cursors import OFFSET_MAX, Cursor
from eventing.core.events.history import HistoryBounds
from eventing.core.events.lineage import Lineage
from eventing.core.events.positions import LogState
from eventing.log import control, scripts
from eventing.log.ack_waits import DurableCalls, Level
from eventing.log.scripts import LogRun, NoLog
from eventing.store import keys
from eventing.store.bulk_connection import Command
from eventing.store.bulk_links import bulk_of
from eventing.store.client import Script, form_for
from eventing.store.connection import ANSWER_TIMEOUT_S, Durability, durability, primaries_of_async, weakest
from eventing.telemetry import metrics

READ_EVENTS_MAX = 1000  # bound: events of one read; the next read continues
# Bounds what a replaying session holds in memory.
READ_BYTES_MAX = 512 * 1024  # bound: bytes of one read; the next read continues; a single event always fits

STATES_MAX = 500  # bound: log extents of one round trip; several round trips
# bound: calls for acknowledgements stored together; `unavailable`: the log is being replaced repeatedly
# Three are enough unless the log is replaced in between.
ACKNOWLEDGE_CALLS_MAX = 4
REVEAL_WAIT_MS = (
    500  # bound: milliseconds to wait for replicas that were waited for before; tried again at the next check
)


class ReadableEnd(NamedTuple):
    """Extent of a log that readers may have.

    Attributes:
        epoch: of cursors.
        next: the first offset that readers do not have.
        withheld: whether there are events from there on, which wait for replicas.
    """

    epoch: str
    next: int
    withheld: bool


def _state_or_error(answer: Any) -> LogState | Exception:
    if isinstance(answer, ResponseError) and str(answer).startswith("NOLOG"):
        return NoLog()
    return answer if isinstance(answer, Exception) else scripts.log_state(answer)


class LogReader:
    """Asynchronous reads; every method raises redis' ConnectionError when Redis is unreachable.

    Args:
        client: the Redis client.
        fenced: whether another server may take the place of the present one (lineage.py).
        replicas_known: replicas that the server is to have.
    """

    def __init__(self, client: redis.asyncio.Redis, *, fenced: bool = False, replicas_known: int = 0) -> None:
        self._client = client
        self._fenced = fenced
        self._replicas_known = replicas_known
        self._wanted: dict[str, asyncio.Future[LogState]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._bulk = bulk_of(client)
        self._durable = DurableCalls(client)
        self._bulk_turn = asyncio.Lock()

    def close(self) -> None:
        """Close the reader's own connections."""
        self._bulk.close()
        self._durable.close()

    async def _call(self, script: Script, args: list[Any]) -> Any:
        script = form_for(self._client, script)
        try:
            try:
                return await self._client.evalsha(script.sha, *args)
            except NoScriptError:
                return await self._client.eval(script.text, *args)
        except ResponseError as error:
            if str(error).startswith("NOLOG"):
                raise NoLog from None
            raise

    async def _call_all(self, script: Script, calls: Sequence[list[Any]]) -> list[Any]:
        """Call a script with each of these in one round trip; errors are returned as values."""
        script = form_for(self._client, script)
        answers = await self.ask([("EVALSHA", script.sha, *args) for args in calls])
        if any(isinstance(answer, NoScriptError) for answer in answers):
            answers = await self.ask([("EVAL", script.text, *args) for args in calls])
        return answers

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Send many commands in one round trip; errors are values among the replies. Cheaper than redis-py's pipeline.

        All callers share one connection, in turn. Commands may reach Redis twice if the connection breaks in between.
        """
        if not commands:
            return []
        async with self._bulk_turn:
            was_open = self._bulk.is_open
            try:
                return await self._bulk.ask(commands, ANSWER_TIMEOUT_S)
            except (RedisError, OSError) as error:
                metrics.REDIS_FAILURES.inc()
                if not was_open or isinstance(error, RedisTimeoutError | TimeoutError):
                    raise
            return await self._bulk.ask(commands, ANSWER_TIMEOUT_S)  # the connection was closed while idle

    async def read(
        self, rp: str, first: int, events_max: int = READ_EVENTS_MAX, bytes_max: int = READ_BYTES_MAX
    ) -> LogRun:
        """Read from offset `first` (or the oldest held). Raises NoLog."""
        return scripts.run(await self._call(scripts.READ, scripts.read_args(rp, first, events_max, bytes_max)))

    async def state(self, rp: str) -> LogState:
        """Return the log's extent at a time after this call began. Raises NoLog.

        Calls during a round trip share the next one: thousands of readers that subscribe at once cost a few round
        trips.
        """
        future = self._wanted.get(rp)
        if future is None:
            future = self._wanted[rp] = asyncio.get_running_loop().create_future()
            future.add_done_callback(lambda done: done.cancelled() or done.exception())  # there may be no waiter left
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())
        return await asyncio.shield(future)

    async def _ask(self) -> None:
        try:
            while self._wanted:
                wanted, self._wanted = self._wanted, {}
                rps = list(wanted)
                for begin in range(0, len(rps), STATES_MAX):
                    part = rps[begin : begin + STATES_MAX]
                    for rp, outcome in zip(part, await self._states_or_error(part), strict=True):
                        if isinstance(outcome, LogState):
                            wanted[rp].set_result(outcome)
                        else:
                            wanted[rp].set_exception(outcome)
        finally:
            self._asking = None

    async def _states_or_error(self, rps: list[str]) -> list[LogState | Exception]:
        try:
            return await self.states(rps)
        except (RedisError, OSError) as error:
            return [error] * len(rps)

    async def states(self, rps: Sequence[str]) -> list[LogState | Exception]:
        """Return the extents of several logs in one round trip; NoLog and Redis' errors for single logs are values."""
        answers = await self._call_all(scripts.READ, [scripts.read_args(rp, 1, 0, 0) for rp in rps])
        return [_state_or_error(answer) for answer in answers]

    async def create(self, rp: str, bounds: HistoryBounds) -> LogState:
        """Make the log if it is missing; returns its extent."""
        return scripts.log_state(await self._call(scripts.CREATE, scripts.create_args(rp, bounds)))

    async def create_all(self, logs: Sequence[tuple[str, HistoryBounds]]) -> None:
        """Make the missing ones of the logs, in one round trip."""
        for answer in await self._call_all(scripts.CREATE, [scripts.create_args(rp, bounds) for rp, bounds in logs]):
            if isinstance(answer, Exception):
                raise answer

    async def append_all(self, logs: Sequence[tuple[str, Sequence[Event]]], window_s: int, ids_max: int) -> list[str]:
        """Append to several logs, to each at most RUN_EVENTS_MAX events, in one round trip.

        Args:
            window_s, ids_max: bounds of the recognition of repeated events.

        Returns the RPs that have no log.
        """
        calls = [scripts.append_args(rp, events, window_s, ids_max) for rp, events in logs]
        answers = control.logs_only(await self._call_all(scripts.append_script(self._fenced), calls))
        return [rp for (rp, _), answer in zip(logs, answers, strict=True) if answer is None]

    async def oldest_granted(self, rp: str, bounds: HistoryBounds) -> int:
        """Return the oldest offset within `bounds`, a durable subscription's own. Raises NoLog."""
        return int(await self._call(scripts.OLDEST_GRANTED, scripts.oldest_granted_args(rp, bounds)))

    async def vector_at(self, rp: str, offset: int) -> dict[str, int] | None:
        """Return federated.vector_at. Raises NoLog."""
        answer = await self._call(scripts.VECTOR_AT, scripts.vector_at_args(rp, offset))
        return scripts.vector(answer) if answer else None

    async def first_lacking(self, rp: str, vector: Mapping[str, int], own_key: str) -> int:
        """Return federated.first_lacking. Raises NoLog."""
        return int(await self._call(scripts.FIRST_LACKING, scripts.first_lacking_args(rp, vector, own_key)))

    async def lineage(self, rp: str) -> Lineage:
        """Return the epochs of the log. One that another server wrote last is continued in a new epoch first. Raises NoLog."""
        return scripts.lineage(await self._call(scripts.LINEAGE, scripts.lineage_args(rp, self._fenced)))

    async def lineage_learn(self, rp: str, present: str, epoch: str, last: int) -> None:
        """Have the log, whose epoch is `present`, continue up to `last` an epoch that its server does not know. Raises NoLog."""
        await self._call(scripts.LINEAGE_LEARN, scripts.lineage_learn_args(rp, present, epoch, last))

    async def heads(self, rps: list[str]) -> list[ReadableEnd | None]:
        """Return how far readers may have several logs, in one round trip; None where there is no log."""
        answers = await self.ask([("HMGET", keys.meta_key(rp), "e", "n", "p", "h") for rp in rps])
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return [
            ReadableEnd((present or epoch).decode(), int(withheld or after), withheld is not None) if epoch else None
            for epoch, after, present, withheld in answers
        ]

    async def reveal_replicated(self, rp: str) -> None:
        """Let readers have withheld events that replicas hold by now: their gateway ended, or gave up waiting for replicas. Those of a log
        that another server wrote last are revealed at once. Raises NoLog and redis' errors."""
        if self._fenced:
            await self.lineage(rp)  # a promoted server reveals what it has, though no replica of it is back
        connection = bulk_of(self._client)  # WAIT holds up what else is asked on a connection
        try:
            (head,) = await connection.ask([("HMGET", keys.meta_key(rp), "e", "n", "p", "j")], ANSWER_TIMEOUT_S)
            if isinstance(head, Exception) or head[3] is None:
                return
            root, after, present, replicas = head
            epoch = (present or root).decode()
            # Reveals nothing yet, but is a write: WAIT is about what this connection has written.
            write = ("EVAL", form_for(self._client, scripts.REVEAL).text, *scripts.reveal_args(rp, epoch, 0))
            _, waited = await connection.ask([write, ("WAIT", replicas, REVEAL_WAIT_MS)], ANSWER_TIMEOUT_S)
            if isinstance(waited, int) and waited >= int(replicas):
                await self._call(scripts.REVEAL, scripts.reveal_args(rp, epoch, int(after)))
        finally:
            connection.close()

    async def offset_at(self, rp: str, moment_ms: int) -> scripts.TimePosition:
        """Return the place of a time, Unix milliseconds by Redis' clock, in the log. Raises NoLog."""
        return scripts.time_position(await self._call(scripts.OFFSET_AT, scripts.offset_at_args(rp, moment_ms)))

    async def stored_at(self, places: Sequence[tuple[str, int]]) -> list[float | None]:
        """Return the times at which the events at these RPs and offsets were stored, Unix seconds by Redis' clock; None
        for trimmed ones."""
        pipeline = self._client.pipeline(transaction=False)
        for rp, offset in places:
            pipeline.eval(scripts.STORED_AT.text, 1, keys.log_keys(rp)[0], offset)
        answers = await pipeline.execute()
        return [None if answer is None else int(answer) / 1000 for answer in answers]

    async def subscription_cursor(self, rp: str, subscription: str) -> Cursor | None:
        """Return the position that the durable subscription has acknowledged."""
        text = await self._client.hget(keys.cursors_key(rp), subscription)
        return Cursor.parse(text.decode()) if isinstance(text, bytes) else None

    async def subscription_cursors(self, rp: str, subscriptions: Sequence[str]) -> list[Cursor | None]:
        """Return the positions that durable subscriptions of an RP have acknowledged, in one round trip; None where there is none."""
        if not subscriptions:
            return []
        (found,) = await self.ask([("HMGET", keys.cursors_key(rp), *subscriptions)])
        if isinstance(found, Exception):
            raise found
        return [Cursor.parse(text.decode()) if isinstance(text, bytes) else None for text in found]

    async def acknowledge_each(self, places: Sequence[tuple[str, str, Cursor]]) -> list[bool]:
        """Move the cursors of many durable subscriptions forward, in one round trip.

        Args:
            places: RP, subscription, and the position that it acknowledges.

        Returns for each False if the log does not continue its epoch, ends before the position, or does not exist.
        """
        calls = [
            control.acknowledge_args(rp, subscription, cursor, fenced=self._fenced)
            for rp, subscription, cursor in places
        ]
        answers = control.logs_only(await self._call_all(scripts.ACKNOWLEDGE, calls))
        return [answer is not None and control.verdict(answer)[0] == "ok" for answer in answers]

    async def acknowledge_all(
        self, rp: str, subscription: str, cursors: Sequence[Cursor], level: Level | None = None
    ) -> list[Cursor | InvalidCursor]:
        """Move the subscription's cursor to the greatest of `cursors` that the log has.

        One call of the script where all cursors are of this log; at most two more where some are of another epoch or
        beyond the last event, and one for the log's lineage where they are of several epochs.

        Returns:
            For each cursor the position now held, or the refusal.

        Args:
            level: at one with replicas, these hold the position before it is returned. None: the server's own durability.

        Raises NoLog, Unavailable for a log that is remade repeatedly, and AckUnavailable.
        """
        if any(cursor.epoch != cursors[-1].epoch for cursor in cursors):
            lineage = await self.lineage(rp)
            cursors = [lineage.continued(cursor)[0] for cursor in cursors]
        epoch, last = cursors[-1].epoch, OFFSET_MAX
        held: Cursor | None = None
        for _ in range(ACKNOWLEDGE_CALLS_MAX):
            offsets = [cursor.offset for cursor in cursors if cursor.epoch == epoch and cursor.offset <= last]
            if not offsets:
                break
            place = Cursor(epoch, max(offsets))
            args = control.acknowledge_args(rp, subscription, place, fenced=self._fenced)
            if level is None or not level.ack.waits_for_replicas:
                answer = await self._call(scripts.ACKNOWLEDGE, args)
            else:
                answer = await self._durable.call(scripts.ACKNOWLEDGE, rp, args, level)
            verdict, value = control.verdict(answer)
            if verdict == "epoch":
                epoch, last = value, OFFSET_MAX
            elif verdict == "beyond":
                last = int(value)
            else:
                held = Cursor(answer[2].decode(), int(value))
                break
        else:
            raise Unavailable("The event log is being replaced. Acknowledge again.", retry_after_s=1)
        outcomes = [control.refused_cursor(cursor, epoch, last) or held for cursor in cursors]
        assert None not in outcomes  # noqa: S101 - a cursor that is not refused was among those that moved it
        return [outcome for outcome in outcomes if outcome is not None]

    async def durability(self) -> Durability:
        """Query the durability that this Redis provides, and each of several primaries."""
        return weakest([await self._durability_of(node) for node in await primaries_of_async(self._client)])

    async def _durability_of(self, node: redis.asyncio.Redis) -> Durability:
        info = await node.info()
        settings: dict[str, str] | None = None
        try:
            answer = await node.config_get("append*")
            settings = {str(name): str(value) for name, value in answer.items()}
        except RedisError:
            pass  # managed servers forbid CONFIG
        return durability(info, settings, self._replicas_known)
