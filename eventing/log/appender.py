"""Appends of all connections of a gateway, gathered into few round trips.

Life of an append: `append()` puts the events into the lane of their acknowledgement level; the lane's one task sends
everything that has gathered as one pipeline, and while Redis writes and fsyncs it, the next pipeline gathers. So an
idle gateway writes at once and a busy one shares each fsync among all connections. When the connection to Redis breaks,
the outcome of what was in flight is unknown: it is sent again with the same ids, which the log recognises, until
`RETRY_S` is over. `done` is called exactly once per append, with the outcome.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any, Protocol

import redis.asyncio
from redis.exceptions import BusyLoadingError, ConnectionError, NoScriptError, ReadOnlyError, RedisError, TimeoutError

from eventing.core.errors import AckUnavailable, HeraldError, Unavailable
from eventing.core.events.ack_level import Ack
from eventing.core.events.cloudevents import Event
from eventing.log import scripts
from eventing.log.scripts import Appended
from eventing.store.bulk_connection import BulkConnection, Command
from eventing.store.connection import ANSWER_TIMEOUT_S, Durability
from eventing.telemetry.flows import FLOWS
from eventing.telemetry.totals import TOTALS

RETRY_S = 8.0  # below a client's own patience (measured: a killed Redis is back within 1-3 s)
RETRY_PAUSE_S = (0.02, 0.5)
GATHER_S = 0.001  # when several publishers were in the last flight, the next one gathers this long
FLIGHT_EVENTS_MAX = 2000  # events of one pipeline: bounds what a broken connection makes us send again
FLIGHT_BYTES_MAX = 4 * 1024 * 1024
WAITING_BYTES_MAX = 64 * 1024 * 1024  # of a lane; beyond it publishers are told to come back
WAIT_MS = 5000  # for replicas, or for the fsync where Redis must be asked

Outcome = Appended | HeraldError
Done = Callable[[Outcome], None]
log = logging.getLogger(__name__)


_tuple = tuple.__new__  # what a NamedTuple's own constructor comes to, without its call in between


class Destination(Protocol):
    """What an append, and the callbacks after it, read of the descriptor of an RP."""

    @property
    def id(self) -> str:
        """The RP's id."""

    @property
    def ack(self) -> Ack:
        """The level at which publishers are answered."""

    @property
    def links(self) -> tuple[str, ...]:
        """The peers that the RP's events are forwarded to."""

    @property
    def renewed_from(self) -> float:
        """Unix seconds from which on use renews the RP's lease; infinity for never."""


class _Append:
    """One append: its events in runs, and what is known of its outcome."""

    __slots__ = ("descriptor", "done", "events", "size")

    def __init__(self, descriptor: Destination, events: Sequence[Event], done: Done) -> None:
        self.descriptor = descriptor
        self.events = events
        self.done = done
        self.size = len(events[0].body) if len(events) == 1 else sum([len(event.body) for event in events])


class Appender:
    """Appends to the logs of all RPs. One per gateway process.

    Args:
        client: the Redis client.
        durability: what that Redis can promise.
        remake: makes the log of an RP that exists but whose log is missing; raises HeraldError when the RP is gone.
        window_s, ids_max: deduplication, see Config.
    """

    def __init__(
        self,
        client: redis.asyncio.Redis,
        durability: Callable[[], Awaitable[Durability]],
        remake: Callable[[str], Awaitable[None]],
        *,
        window_s: int,
        ids_max: int,
    ) -> None:
        self._client = client
        self._durability = durability
        self._remake = remake
        self._window_s = window_s
        self._ids_max = ids_max
        self.on_replicated: Callable[[Destination], None] = lambda _: None
        """Called when events were appended at an RP that has links to peers."""
        self.on_used: Callable[[Destination], None] = lambda _: None
        """Called when events were appended at an RP: once for appends of one RP that follow each other."""
        self.make_lane: Callable[[Appender, Ack], _Lane] | None = None
        """What a lane is, where spans are made (log/tracing.py)."""
        self._lanes: dict[Ack, _Lane] = {}
        self._last: _Lane | None = None  # mostly the same again: hashing an Ack costs more than this comparison

    def append(self, descriptor: Destination, events: Sequence[Event], done: Done) -> None:
        """Append `events` to the log of `descriptor`'s RP; `done` is called with their place or an error."""
        lane = self._last
        if lane is None or lane.ack is not descriptor.ack:
            lane = self._last = self._lane(descriptor.ack)
        lane.put(_Append(descriptor, events, done))

    def _lane(self, ack: Ack) -> _Lane:
        lane = self._lanes.get(ack)
        if lane is None:
            lane = self._lanes[ack] = (self.make_lane or _Lane)(self, ack)
        lane.ack = ack  # an equal one is found by identity from now on
        return lane

    async def append_and_wait(self, descriptor: Destination, events: Sequence[Event]) -> Appended:
        """As `append`, for callers that wait. Raises the error."""
        future: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()

        def done(outcome: Outcome) -> None:
            if future.done():
                return  # the publisher went away
            if isinstance(outcome, HeraldError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self.append(descriptor, events, done)
        return await future

    async def close(self) -> None:
        """Wait for what is in flight."""
        await asyncio.gather(*(lane.task for lane in self._lanes.values() if lane.task), return_exceptions=True)
        for lane in self._lanes.values():
            lane.close()


class _Lane:
    """The appends of one acknowledgement level: what gathers, and the task that sends it."""

    def __init__(self, appender: Appender, ack: Ack) -> None:
        self._appender = appender
        self.ack = ack
        self._connection = BulkConnection(appender._client)
        self._waiting: list[_Append] = []
        self._waiting_bytes = 0
        self.task: asyncio.Task[None] | None = None

    def close(self) -> None:
        """End the lane's connection."""
        self._connection.close()

    def put(self, append: _Append) -> None:
        if self._waiting_bytes > WAITING_BYTES_MAX:
            append.done(Unavailable("Too many events wait to be stored; publish again in a moment.", retry_after_s=1))
            return
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
                flight = self._take()
                gather = len(flight) > 1
                began = monotonic()
                outcomes = await self._fly(flight)
                _count(flight, outcomes, monotonic() - began, self._appender.on_used)
                for append, outcome in zip(flight, outcomes, strict=True):
                    _answer(append, outcome)
                    if append.descriptor.links and isinstance(outcome, Appended):
                        self._appender.on_replicated(append.descriptor)
        finally:
            self.task = None
            if self._waiting:
                self.task = asyncio.get_running_loop().create_task(self._work())

    def _take(self) -> list[_Append]:
        """The next flight: whole appends, at least one, within the bounds."""
        events = size = 0
        for index, append in enumerate(self._waiting):
            events += len(append.events)
            size += append.size
            if index and (events > FLIGHT_EVENTS_MAX or size > FLIGHT_BYTES_MAX):
                flight, self._waiting = self._waiting[:index], self._waiting[index:]
                break
        else:
            flight, self._waiting = self._waiting, []
        self._waiting_bytes -= sum(append.size for append in flight)
        return flight

    async def _fly(self, flight: list[_Append]) -> list[Outcome]:
        """Send a flight until each of its appends has an outcome."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RETRY_S
        pause_s = RETRY_PAUSE_S[0]
        while True:
            try:
                return await self._try(flight)
            except HeraldError as error:
                return [error] * len(flight)
            except (ConnectionError, TimeoutError, BusyLoadingError, ReadOnlyError, OSError) as error:
                TOTALS.redis_failures += 1
                if loop.time() + pause_s > deadline:
                    log.error("Redis did not answer for %.0f s: %d publishes refused (%s)", RETRY_S, len(flight), error)
                    sorry = Unavailable(
                        "The event log does not answer. Publish again with the same id.", retry_after_s=2
                    )
                    return [sorry] * len(flight)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, RETRY_PAUSE_S[1])
            except RedisError as error:
                TOTALS.redis_failures += 1
                log.error("Redis refused a write: %s", error)
                sorry = Unavailable("The event log cannot be written now. Publish again later.", retry_after_s=5)
                return [sorry] * len(flight)
            except Exception:
                log.exception("Appending failed: %d publishes refused", len(flight))
                return [Unavailable("The event log failed. Publish again with the same id.")] * len(flight)

    async def _try(self, flight: list[_Append]) -> list[Outcome]:
        durability = await self._appender._durability()
        if self.ack.stored and not durability.stored:
            raise AckUnavailable(
                "This domain's Redis cannot promise 'stored' (set appendfsync always, or use Redis 7.2 with AOF)."
            )
        runs = _gather_runs(flight)
        answers = await self._send(runs, durability)
        return _scatter(flight, runs, answers)

    async def _send(self, runs: list[_Run], durability: Durability) -> list[Outcome]:
        """One pipeline for all `runs`, again for those whose log or script the server lacked."""
        outcomes: dict[int, Outcome] = {}
        left = list(enumerate(runs))
        text = False
        short: AckUnavailable | None = None
        for _ in range(4):  # script unknown, log missing, both after a fresh data plane; never more
            script = ("EVAL", scripts.APPEND.text) if text else ("EVALSHA", scripts.APPEND.sha)
            window_s, ids_max = self._appender._window_s, self._appender._ids_max
            waits = self._waits(durability)
            commands = [(*script, *scripts.append_args(run.rp, run.events, window_s, ids_max)) for _, run in left]
            answers = await self._connection.ask(commands + waits, ANSWER_TIMEOUT_S)
            short = self._shortfall(waits, answers[len(left) :]) or short
            again = []
            for (index, run), answer in zip(left, answers, strict=False):
                if isinstance(answer, NoScriptError):
                    text = True
                    again.append((index, run))
                elif isinstance(answer, RedisError) and str(answer).startswith("NOLOG"):
                    error = await self._make_log(run.rp)
                    if error is None:
                        again.append((index, run))
                    else:
                        outcomes[index] = error
                elif isinstance(answer, RedisError):
                    raise answer
                else:
                    outcomes[index] = scripts.appended(answer, len(run.events))
            left = again
            if not left:
                ordered = [outcomes[index] for index in range(len(runs))]
                return [short if short and isinstance(outcome, Appended) else outcome for outcome in ordered]
        raise RedisError("the log could not be made")

    async def _make_log(self, rp: str) -> HeraldError | None:
        try:
            await self._appender._remake(rp)
        except HeraldError as error:
            return error
        return None

    def _waits(self, durability: Durability) -> list[Command]:
        if self.ack.stored and not durability.always:
            return [("WAITAOF", 1, self.ack.replicas, WAIT_MS)]
        if self.ack.replicas:
            return [("WAIT", self.ack.replicas, WAIT_MS)]
        return []

    def _shortfall(self, waits: list[Command], answers: list[Any]) -> AckUnavailable | None:
        """What the answers to `waits` leave unfulfilled of the acknowledgement level."""
        for wait, answer in zip(waits, answers, strict=True):
            if isinstance(answer, RedisError):
                raise answer
            local, replicas = (1, answer) if wait[0] == "WAIT" else answer
            if local < 1 or replicas < self.ack.replicas:
                return AckUnavailable(
                    f"The event is in the log, but '{self.ack}' was not reached in {WAIT_MS // 1000} s "
                    f"({replicas} of {self.ack.replicas} replicas). Publishing it again with the same id is safe.",
                    retry_after_s=5,
                )
        return None


def _count(
    flight: list[_Append], outcomes: list[Outcome], took_s: float, on_used: Callable[[Destination], None]
) -> None:
    """Add a flight to the process's totals, and to those of its RPs: once for appends of one RP that follow each other."""
    publishes = events = size = 0
    at, before = flight[0].descriptor, (0, 0, 0)
    for append, outcome in zip(flight, outcomes, strict=True):
        if append.descriptor is not at:
            _count_at(at, before, publishes, events, size, on_used)
            at, before = append.descriptor, (publishes, events, size)
        if isinstance(outcome, Appended):
            publishes += 1
            events += len(append.events)
            size += append.size
            if True in outcome.duplicates:
                TOTALS.duplicates += outcome.duplicates.count(True)
    _count_at(at, before, publishes, events, size, on_used)
    TOTALS.publishes += publishes
    TOTALS.events_in += events
    TOTALS.bytes_in += size
    TOTALS.flights.observe(took_s)


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
        FLOWS.published(at.id, publishes - before[0], events - before[1], size - before[2])


def _answer(append: _Append, outcome: Outcome) -> None:
    """Tell a publisher; a publisher that cannot be told must not keep the others of its flight waiting."""
    try:
        append.done(outcome)
    except Exception:
        log.exception("A publisher could not be told its outcome")


class _Run:
    """Events of one RP that go into the log by one script call."""

    __slots__ = ("events", "rp")

    def __init__(self, rp: str, events: list[Event]) -> None:
        self.rp = rp
        self.events = events


def _gather_runs(flight: list[_Append]) -> list[_Run]:
    """Merge the appends of each RP, in order, into as few script calls as the bounds allow."""
    by_rp: dict[str, list[Event]] = {}
    for append in flight:
        rp = append.descriptor.id
        if rp in by_rp:
            by_rp[rp].extend(append.events)
        else:
            by_rp[rp] = list(append.events)
    return [_Run(rp, list(part)) for rp, events in by_rp.items() for part in scripts.runs(events)]


def _scatter(flight: list[_Append], runs: list[_Run], outcomes: list[Outcome]) -> list[Outcome]:
    """Give each append its share of the outcomes of its RP's runs."""
    merged: dict[str, Outcome] = {}
    for run, outcome in zip(runs, outcomes, strict=True):
        before = merged.get(run.rp)
        if isinstance(before, Appended) and isinstance(outcome, Appended):
            outcome = Appended(outcome.epoch, before.offsets + outcome.offsets, before.duplicates + outcome.duplicates)
        if not isinstance(before, HeraldError):
            merged[run.rp] = outcome
    taken = dict.fromkeys(merged, 0)
    shares: list[Outcome] = []
    for append in flight:
        rp = append.descriptor.id
        whole = merged[rp]
        if isinstance(whole, HeraldError):
            shares.append(whole)
            continue
        begin = taken[rp]
        end = taken[rp] = begin + len(append.events)
        shares.append(_tuple(Appended, (whole[0], whole[1][begin:end], whole[2][begin:end])))
    return shares
