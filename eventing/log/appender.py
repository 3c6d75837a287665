"""Appends of all connections of a gateway, gathered into few round trips.

Life of an append: `append()` puts the events into the batch queue of their acknowledgement level; the queue's
one task sends everything that has gathered as one pipeline, and while Redis writes and fsyncs it, the next
pipeline gathers. So an idle gateway writes at once and a busy one shares each fsync among all connections. Where there is one
server, a script call appends at many RPs, each for itself; among several servers a call is about one RP. When the
connection to Redis breaks, the outcome of the pipeline is unknown: it is sent again with the same ids, which the log
recognises, for up to `RETRY_S`. `done` is called exactly once per append, with the outcome.

At the levels with replicas, readers get the events only when the replicas hold them: the scripts withhold them, and when
WAIT has counted the replicas, a second call reveals them. What a promoted replica lacks, no reader has been given.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import chain
from time import monotonic
from typing import Any, Protocol

import redis.asyncio
from redis.exceptions import NoScriptError, RedisError

from eventing.core.errors import AckUnavailable, ApplicationError, Unavailable
from eventing.core.events.ack_level import Ack
from eventing.core.events.cloudevents import Event
from eventing.log import ack_waits, scripts
from eventing.log.ack_waits import replicas_connected, replicas_reached, replicas_wanted, wait_commands
from eventing.log.home_queues import HomeQueues
from eventing.log.scripts import Appended
from eventing.log.tracing import AppendSpans
from eventing.store.bulk_connection import Command
from eventing.store.bulk_links import bulk_of
from eventing.store.client import form_for
from eventing.store.connection import ANSWER_TIMEOUT_S, Durability
from eventing.store.plane import is_of_connection, is_of_topology
from eventing.store.routed_async import RoutedAsyncRedis
from eventing.telemetry.totals import flows, totals

# Shorter than a client's own patience; a killed Redis is back within 1 to 3 s (measured).
RETRY_S = 8.0  # bound: seconds without Redis; publishes are refused: 503 `unavailable`
RETRY_PAUSE_S = (0.02, 0.5)
GATHER_S = 0.001  # bound: seconds that a pipeline waits for the events of several publishers; the pipeline is sent
# Limits how much is sent again after a broken connection.
PIPELINE_EVENTS_MAX = 2000  # bound: events of one pipeline; the others wait for the next pipeline
PIPELINE_BYTES_MAX = 4 * 1024 * 1024  # bound: bytes of one pipeline; the others wait for the next pipeline
# bound: bytes that wait in a batch queue; publishes are refused: 503 `unavailable`
WAITING_BYTES_MAX = 64 * 1024 * 1024

Outcome = Appended | ApplicationError
Done = Callable[[Outcome], None]
log = logging.getLogger(__name__)

_tuple = tuple.__new__  # a NamedTuple's constructor without the Python call in between


class Destination(Protocol):
    """Fields of an RP's descriptor that an append and the callbacks after it read."""

    @property
    def id(self) -> str:
        """Id of the RP."""

    @property
    def ack(self) -> Ack:
        """Acknowledgement level at which publishers are answered."""

    @property
    def links(self) -> tuple[str, ...]:
        """Peers to which the RP's events are forwarded."""

    @property
    def renewed_from(self) -> float:
        """Unix seconds from which use renews the RP's lease; infinity for never."""


def _nothing(_: Destination) -> None:
    """Do nothing after an append."""


class _Append:
    """One append: its events in runs, and the known part of its outcome."""

    __slots__ = ("descriptor", "done", "events", "outcome", "size")
    outcome: Outcome

    def __init__(self, descriptor: Destination, events: Sequence[Event], done: Done) -> None:
        self.descriptor = descriptor
        self.events = events
        self.done = done
        self.size = len(events[0].body) if len(events) == 1 else sum([len(event.body) for event in events])


class Appender:
    """Appends to the logs of all RPs. One per gateway process.

    Args:
        client: the Redis client.
        durability: durability that this Redis provides.
        remake: makes the missing log of an RP that exists; raises ApplicationError when the RP has ended.
        window_s, ids_max: deduplication, see Config.
        fenced: whether another server may take the place of the present one (lineage.py).
        on_replicated: called after events were appended at an RP with links to peers.
        on_used: called after events were appended at an RP, once for consecutive appends of one RP.
        on_short: called when an acknowledgement level was not reached: `durability` may have counted other replicas than there are now.
        traced: whether spans are made (log/tracing.py).
    """

    def __init__(
        self,
        client: redis.asyncio.Redis,
        durability: Callable[[], Awaitable[Durability]],
        remake: Callable[[str], Awaitable[None]],
        *,
        window_s: int,
        ids_max: int,
        fenced: bool = False,
        on_replicated: Callable[[Destination], None] = _nothing,
        on_used: Callable[[Destination], None] = _nothing,
        on_short: Callable[[], None] = lambda: None,
        traced: bool = False,
    ) -> None:
        self._client = client
        self._durability = durability
        self._remake = remake
        self._window_s = window_s
        self._ids_max = ids_max
        script = form_for(client, scripts.append_script(fenced))
        self.by_sha, self.by_text = ("EVALSHA", script.sha), ("EVAL", script.text)
        self.one_server = not isinstance(client, RoutedAsyncRedis)
        self.on_replicated = on_replicated
        self.on_used = on_used
        self.on_short = on_short
        self.traced = traced
        self._queues: dict[Ack, _BatchQueue | HomeQueues[_BatchQueue]] = {}
        # Usually the same again: hashing an Ack costs more than this comparison.
        self._last: _BatchQueue | HomeQueues[_BatchQueue] | None = None

    def append(self, descriptor: Destination, events: Sequence[Event], done: Done) -> None:
        """Append `events` to the log of `descriptor`'s RP; `done` is called with their position or an error."""
        queue = self._last
        if queue is None or queue.ack is not descriptor.ack:
            queue = self._last = self._queue(descriptor.ack)
        queue.put(_Append(descriptor, events, done))

    def command(self, call: Sequence[_Run], replicas: int, *, text: bool) -> Command:
        """Make the command that appends these runs, with the script's text or only with its digest."""
        args = scripts.append_runs_args([(run.rp, run.events) for run in call], self._window_s, self._ids_max, replicas)
        return (*(self.by_text if text else self.by_sha), *args)

    def _queue(self, ack: Ack) -> _BatchQueue | HomeQueues[_BatchQueue]:
        queue = self._queues.get(ack)
        if queue is None:
            client, make = self._client, partial(_BatchQueue, self, ack)
            queue = HomeQueues(ack, client.plane, make) if isinstance(client, RoutedAsyncRedis) else make()
            self._queues[ack] = queue
        queue.ack = ack  # an equal Ack is found by identity from now on
        return queue

    async def append_and_wait(self, descriptor: Destination, events: Sequence[Event]) -> Appended:
        """Append as `append` does and wait for the outcome. Raises the error."""
        future: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()

        def done(outcome: Outcome) -> None:
            if future.done():
                return  # the publisher disconnected
            if isinstance(outcome, ApplicationError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self.append(descriptor, events, done)
        return await future

    async def close(self) -> None:
        """Wait for the pipelines in progress."""
        for queue in self._queues.values():
            await queue.finish()


class _BatchQueue:
    """Batch queue of one acknowledgement level: the gathering appends, and the task that sends them."""

    def __init__(self, appender: Appender, ack: Ack) -> None:
        self._appender = appender
        self.ack = ack
        self._connection = bulk_of(appender._client, repeats_lost=False)
        self._waiting: list[_Append] = []
        self._waiting_bytes = 0
        self._spans = AppendSpans() if appender.traced else None
        self.task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """True while nothing waits or is being sent."""
        return self.task is None

    async def finish(self) -> None:
        """Wait for the pipeline in progress, and close the queue's connection."""
        if self.task is not None:
            await asyncio.gather(self.task, return_exceptions=True)
        self._connection.close()

    def put(self, append: _Append) -> None:
        if self._waiting_bytes > WAITING_BYTES_MAX:
            append.done(
                Unavailable(
                    "Too many events are waiting to be stored; publish again after a short pause.", retry_after_s=1
                )
            )
            return
        if self._spans is not None:
            self._spans.queued(append)
        self._waiting.append(append)
        self._waiting_bytes += append.size
        if self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        gather = False
        try:
            while self._waiting:
                if gather:
                    await asyncio.sleep(GATHER_S)
                pipeline = self._take()
                gather = len(pipeline) > 1
                began = monotonic()
                if self._spans is None:
                    outcomes = await self._run(pipeline)
                else:
                    with self._spans.of(pipeline):
                        outcomes = await self._run(pipeline)
                _count(pipeline, outcomes, monotonic() - began, self._appender.on_used)
                for append, outcome in zip(pipeline, outcomes, strict=True):
                    _answer(append, outcome)
                    if append.descriptor.links and isinstance(outcome, Appended):
                        self._appender.on_replicated(append.descriptor)
        finally:
            self.task = None
            if self._waiting:
                self.task = asyncio.get_running_loop().create_task(self._work())

    def _take(self) -> list[_Append]:
        """Take the next pipeline: whole appends, at least one, within the bounds."""
        events = size = 0
        for index, append in enumerate(self._waiting):
            events += len(append.events)
            size += append.size
            if index and (events > PIPELINE_EVENTS_MAX or size > PIPELINE_BYTES_MAX):
                pipeline, self._waiting = self._waiting[:index], self._waiting[index:]
                break
        else:
            pipeline, self._waiting = self._waiting, []
        self._waiting_bytes -= sum(append.size for append in pipeline)
        return pipeline

    async def _run(self, pipeline: list[_Append]) -> list[Outcome]:
        """Send a pipeline until each of its appends has an outcome."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RETRY_S
        pause_s = RETRY_PAUSE_S[0]
        while True:
            try:
                return await self._try(pipeline)
            except ApplicationError as error:
                if isinstance(error, AckUnavailable):
                    self._appender.on_short()
                return [error] * len(pipeline)
            except (RedisError, OSError) as error:
                if not is_of_connection(error) and not is_of_topology(error):
                    totals().redis_failures += 1
                    log.error("Redis refused a write: %s", error)
                    sorry = Unavailable(
                        "The event log is not writable at present. Publish again later.", retry_after_s=5
                    )
                    return [sorry] * len(pipeline)
                totals().redis_failures += 1
                self._connection.close()  # a replica now, perhaps: the next one is to the primary
                if loop.time() + pause_s > deadline:
                    log.error(
                        "Redis did not answer for %.0f s: %d publishes refused (%s)", RETRY_S, len(pipeline), error
                    )
                    sorry = Unavailable(
                        "The event log is not responding. Publish again with the same id.", retry_after_s=2
                    )
                    return [sorry] * len(pipeline)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, RETRY_PAUSE_S[1])
            except Exception:
                log.exception("Appending failed: %d publishes refused", len(pipeline))
                return [Unavailable("The event log failed. Publish again with the same id.")] * len(pipeline)

    async def _try(self, pipeline: list[_Append]) -> list[Outcome]:
        durability = await self._appender._durability()
        if self.ack.stored and not durability.stored:
            raise AckUnavailable(
                "This domain's Redis does not provide 'stored' (set appendfsync always, or use Redis 7.2 with AOF)."
            )
        by_rp: dict[str, list[_Append]] = {}
        for append in pipeline:
            rp = append.descriptor.id
            if rp in by_rp:
                by_rp[rp].append(append)
            else:
                by_rp[rp] = [append]
        runs = _runs(by_rp)
        await self._send(runs, durability)
        _scatter(by_rp, runs)
        return [append.outcome for append in pipeline]

    async def _send(self, runs: list[_Run], durability: Durability) -> None:
        """Send `runs` as one pipeline, and again those whose log or script was missing on the server; note their outcomes."""
        left = runs
        text = False
        short: AckUnavailable | None = None
        replicas, appender = replicas_wanted(self.ack, durability), self._appender
        for _ in range(4):  # script unknown, log missing, both after a restart of Redis; never more
            waits = wait_commands(self.ack, durability, replicas)
            calls = _calls(left, scripts.CALL_RUNS_MAX if appender.one_server else 1)
            commands = [appender.command(call, replicas, text=text or any(run.split for run in call)) for call in calls]
            # After the writes: a replica that comes later gets them with its first copy.
            asked = [scripts.replication_asked(rp) for rp in self._servers(left)] if self.ack.all else []
            answers = await self._connection.ask([*commands, *asked, *waits], ANSWER_TIMEOUT_S)
            waited = answers[len(calls) + len(asked) :]
            come = max(map(replicas_connected, answers[len(calls) : len(calls) + len(asked)]), default=0)
            if come > replicas:  # which of them have it is not known: wait for all
                replicas, waits = come, wait_commands(self.ack, durability, come)
                waited = await self._wait_again(commands, waits)
            short = self._shortfall(waits, waited, replicas) or short
            again = []
            for call, called in zip(calls, answers, strict=False):
                if isinstance(called, NoScriptError):
                    text = True
                    again += call
                    continue
                if isinstance(called, RedisError) and len(call) > 1:
                    raise called
                for run, answer in zip(call, called if len(call) > 1 else [called], strict=True):
                    if _is_no_log(answer):
                        error = await self._make_log(run.rp)
                        if error is None:
                            again.append(run)
                        else:
                            run.outcome = error
                    elif isinstance(answer, RedisError):
                        raise answer
                    else:
                        run.outcome = scripts.appended(answer, len(run.events))
            left = again
            if not left:
                if short:
                    self._appender.on_short()
                    for run in runs:
                        run.outcome = short if isinstance(run.outcome, Appended) else run.outcome
                elif replicas:
                    await self._reveal(runs)
                return
        raise RedisError("the log could not be made")

    def _servers(self, runs: list[_Run]) -> list[str]:
        """Return RPs whose servers are all those that `runs` are sent to: one where there is one server."""
        return [run.rp for run in (runs[:1] if self._appender.one_server else runs)]

    async def _reveal(self, runs: list[_Run]) -> None:
        """Let readers have what replicas hold now: of each log everything up to the last event of its runs."""
        after: dict[tuple[str, str], int] = {}
        for run in runs:
            outcome = run.outcome
            if isinstance(outcome, Appended):
                log = (run.rp, outcome.epoch)
                after[log] = max(after.get(log, 0), max(outcome.offsets) + 1)
        reveal = form_for(self._appender._client, scripts.REVEAL)
        calls = [scripts.reveal_args(*log, offset) for log, offset in after.items()]
        answers = await self._connection.ask([("EVALSHA", reveal.sha, *call) for call in calls], ANSWER_TIMEOUT_S)
        if any(isinstance(answer, NoScriptError) for answer in answers):
            answers = await self._connection.ask([("EVAL", reveal.text, *call) for call in calls], ANSWER_TIMEOUT_S)
        for answer in answers:
            if isinstance(answer, RedisError) and not _is_no_log(answer):
                raise answer

    async def _make_log(self, rp: str) -> ApplicationError | None:
        try:
            await self._appender._remake(rp)
        except ApplicationError as error:
            return error
        return None

    async def _wait_again(self, commands: list[Command], waits: list[Command]) -> list[Any]:
        """Return the answers to `waits` after writes that were answered. They are sent again, and recognised: WAIT is about what its
        connection has written, and this one may be another, or to another server."""
        answers = await self._connection.ask([*commands, *waits], ANSWER_TIMEOUT_S)
        called = answers[: len(commands)]
        for answer in chain.from_iterable(one if isinstance(one, list) else [one] for one in called):
            if isinstance(answer, RedisError) and not isinstance(answer, NoScriptError) and not _is_no_log(answer):
                raise answer
        return answers[len(commands) :]

    def _shortfall(self, waits: list[Command], answers: list[Any], wanted: int) -> AckUnavailable | None:
        """Make the error for the part of the acknowledgement level that the answers to `waits` leave unfulfilled; None
        if nothing."""
        reached = replicas_reached(waits, answers, wanted)
        if reached is None:
            return None
        return AckUnavailable(
            f"The event is in the log, but '{self.ack}' was not reached within {ack_waits.WAIT_MS // 1000} s ({reached} of {wanted} replicas). Publishing the event again with the same id is safe.",
            retry_after_s=1,
        )


def _is_no_log(answer: Any) -> bool:
    return isinstance(answer, RedisError) and str(answer).startswith("NOLOG")


def _count(
    pipeline: list[_Append], outcomes: list[Outcome], took_s: float, on_used: Callable[[Destination], None]
) -> None:
    """Add a pipeline to the totals of the process and of its RPs, once for consecutive appends of one RP."""
    publishes = events = size = 0
    at, before = pipeline[0].descriptor, (0, 0, 0)
    for append, outcome in zip(pipeline, outcomes, strict=True):
        if append.descriptor is not at:
            _count_at(at, before, publishes, events, size, on_used)
            at, before = append.descriptor, (publishes, events, size)
        if isinstance(outcome, Appended):
            publishes += 1
            events += len(append.events)
            size += append.size
            if True in outcome.duplicates:
                totals().duplicates += outcome.duplicates.count(True)
    _count_at(at, before, publishes, events, size, on_used)
    counted = totals()
    counted.publishes += publishes
    counted.events_in += events
    counted.bytes_in += size
    counted.pipelines.observe(took_s)


def _count_at(
    at: Destination,
    before: tuple[int, int, int],
    publishes: int,
    events: int,
    size: int,
    on_used: Callable[[Destination], None],
) -> None:
    if publishes > before[0]:
        on_used(at)
        flows().published(at.id, publishes - before[0], events - before[1], size - before[2])


def _answer(append: _Append, outcome: Outcome) -> None:
    """Answer a publisher; an error in its callback must not keep the others of the pipeline waiting."""
    try:
        append.done(outcome)
    except Exception:
        log.exception("The outcome of a publish could not be delivered to its publisher")


class _Run:
    """Events of one RP that one script call appends.

    Attributes:
        size: bytes of the events.
        split: whether the pipeline has further runs of the RP. Such calls carry the script's text: if Redis lacked the script at the
            first one, and somebody loaded it before the second, the first would be stored after it.
    """

    __slots__ = ("events", "outcome", "rp", "size", "split")
    outcome: Outcome

    def __init__(self, rp: str, events: Sequence[Event], size: int, split: bool) -> None:
        self.rp = rp
        self.events = events
        self.size = size
        self.split = split


def _runs(by_rp: dict[str, list[_Append]]) -> list[_Run]:
    """Merge the appends of each RP, in order, into as few runs as the bounds allow."""
    runs = []
    for rp, appends in by_rp.items():
        if len(appends) == 1:
            events, size = appends[0].events, appends[0].size
        else:
            events, size = [event for append in appends for event in append.events], sum([one.size for one in appends])
        if len(events) <= scripts.RUN_EVENTS_MAX and size <= scripts.RUN_BYTES_MAX:
            runs.append(_Run(rp, events, size, False))
        else:
            parts = scripts.runs(events)
            runs += [_Run(rp, part, sum([len(event.body) for event in part]), len(parts) > 1) for part in parts]
    return runs


def _calls(runs: list[_Run], runs_max: int) -> list[list[_Run]]:
    """Distribute runs, in order, to as few script calls as the bounds allow: at most `runs_max` runs, and the events and bytes that
    one run may have."""
    calls: list[list[_Run]] = []
    events = size = 0
    for run in runs:
        events += len(run.events)
        size += run.size
        if not calls or len(calls[-1]) >= runs_max or events > scripts.RUN_EVENTS_MAX or size > scripts.RUN_BYTES_MAX:
            calls.append([])
            events, size = len(run.events), run.size
        calls[-1].append(run)
    return calls


def _scatter(by_rp: dict[str, list[_Append]], runs: list[_Run]) -> None:
    """Give each append its share of the outcomes of its RP's runs, in order."""
    at = 0
    for appends in by_rp.values():
        whole = runs[at].outcome
        while runs[at].split and at + 1 < len(runs) and runs[at + 1].rp == runs[at].rp:
            at += 1
            more = runs[at].outcome
            if isinstance(whole, Appended):
                if isinstance(more, Appended):
                    more = Appended(more.epoch, whole.offsets + more.offsets, whole.duplicates + more.duplicates)
                whole = more
        at += 1
        if len(appends) == 1 or isinstance(whole, ApplicationError):
            for append in appends:
                append.outcome = whole
            continue
        end = 0
        for append in appends:
            begin, end = end, end + len(append.events)
            append.outcome = _tuple(Appended, (whole[0], whole[1][begin:end], whole[2][begin:end]))
