"""Access records of the gateway: operations of each binding, and counts of deliveries (docs/records.md).

An HTTP request carries one `Access` in its scope, made by the router; the code that serves the request completes it,
and the router notes it when the request ends. Sessions note their operations themselves.

Deliveries cost nothing per event and session: a channel keeps running totals of its flushes (one addition per flush), a
follower the totals at which it joined. Every few seconds the differences are added up per RP, principal and kind of
client for the channels that moved, and at once for a follower that leaves its channel. Runs that are read from the log
for one follower are counted when they are delivered.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import itertools
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol
from weakref import WeakValueDictionary

from eventing.core.config import Config
from eventing.core.principals import Principal
from eventing.records.buffer import Buffer
from eventing.records.rows import DELIVER, Who, rp_or_nothing
from eventing.records.sealing import SealingProcess
from eventing.records.segments import gateway_id
from eventing.records.writer import Writer
from eventing.telemetry.totals import flows, totals

GATHER_S = 0.005  # publishes of one client at one RP answered within this time share a record
MINUTE_S = 60  # deliveries are counted per minute
FOLLOWERS_AT_ONCE = 500  # followers counted between other work: about half a millisecond
COUNTS_MAX = 10_000  # (RP, principal, client) triples gathered before they are noted: bounds the memory of counting
CLOSE_S = 3.0  # for the last records to be written; on a slower disk, records that are not in the spool are lost
DISCONNECTED = "disconnected"  # the reason if a client disconnected before the answer
_ACCESS = "herald.access"
_API = "/api/"  # Django's answers elsewhere are pages
RECORDED = {
    ("POST", "events"): ("publish", "http"),
    ("GET", "events"): ("history", "pull"),
    ("GET", "stream"): ("subscribe", "sse"),
    ("POST", "ack"): ("subscription.ack", "http"),
}
"""Names of the hot path's requests in access records, with the kind of client."""

Scope = dict[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]
log = logging.getLogger(__name__)


class RecordedSession(Protocol):
    """A session (gateway/delivery/session.py), as its records use it."""

    who: Who
    reader: Who


class RecordedChannel(Protocol):
    """A channel (gateway/delivery/channel.py), as the counting of deliveries uses it."""

    events: int
    events_counted: int

    @property
    def rp(self) -> str:
        """Id of the RP."""

    def followers(self) -> Sequence[LiveFollower]:
        """The live followers."""


class LiveFollower(Protocol):
    """A session's reading of an RP, as a channel uses it."""

    @property
    def live(self) -> bool:
        """True while its channel writes to it."""

    def count(self) -> None:
        """Call `AccessRecords.delivered` with the channel's deliveries since the last count."""


class RecordedFollower(LiveFollower, Protocol):
    """A session's reading of an RP (gateway/delivery/session.py)."""

    @property
    def session(self) -> RecordedSession:
        """Session of the reading."""

    @property
    def channel(self) -> RecordedChannel:
        """Channel of the reading."""


class Access:
    """Record of one HTTP request in progress. The router makes and notes it; the code that serves the request completes
    it.

    Attributes:
        operation: the operation; empty while unknown.
        client: kind of client.
        principal: the principal, once known.
        rp: id of the RP, once known.
        began: time of the request's arrival, Unix seconds.
        done: whether it is already noted (a stream notes itself when it begins), or needs no record.
    """

    __slots__ = (
        "began",
        "bytes_in",
        "bytes_out",
        "client",
        "done",
        "events",
        "operation",
        "principal",
        "reason",
        "rp",
    )

    def __init__(self, operation: str = "", client: str = "http", rp: str = "", began: float = 0.0) -> None:
        self.began = began
        self.operation = operation
        self.client = client
        self.rp = rp
        self.principal: Principal | None = None
        self.reason = ""
        self.events = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.done = False

    def published(self, events: int, content_bytes: int) -> None:
        """Count the events that the request publishes."""
        self.events, self.bytes_in = events, content_bytes

    def answered(self, events: list[bytes]) -> None:
        """Count the events in the answer."""
        self.events, self.bytes_out = len(events), sum(map(len, events))
        counted = totals()
        counted.deliveries += self.events
        counted.bytes_out += self.bytes_out
        if events:
            flows().pulled(self.rp, self.events, self.bytes_out)


def access(scope: dict[str, Any]) -> Access:
    """Return the record of the request of `scope`; one without effect if records are off."""
    found: Access | None = scope.get(_ACCESS)
    return Access() if found is None else found


class Together:
    """Publishes, or acknowledgements, of one session at one RP that are answered in one turn of the event loop and
    recorded together.

    Attributes:
        began: sum of their times of arrival, Unix seconds.
    """

    __slots__ = ("began", "bytes", "count", "events", "rp")

    def __init__(self, rp: str) -> None:
        self.rp = rp
        self.count = self.events = self.bytes = 0
        self.began = 0.0


class _Publishes:
    """Publishes of one session, or of one principal over HTTP, at one RP that were answered within GATHER_S.

    Attributes:
        who: actor of the record; None until it is noted, for `principal` over HTTP.
        answered: time of the last answer, Unix seconds; `latency_s`: the sum of their durations.
    """

    __slots__ = ("answered", "bytes", "count", "events", "latency_s", "principal", "rp", "who")

    def __init__(self, rp: str, who: Who | None, principal: Principal | None) -> None:
        self.rp = rp
        self.who = who
        self.principal = principal
        self.count = self.events = self.bytes = 0
        self.answered = self.latency_s = 0.0


class AccessRecords:
    """Access records of one gateway. All calls are made on the event loop; only `close` waits.

    Args:
        config: settings of the access records.
        clock: Unix seconds.

    Attributes:
        on: whether records are written.
        note: records one operation: time, who, operation, RP id, reason (a problem's code; empty: ok), events, bytes
            in, bytes out, latency in seconds. About a microsecond.
    """

    def __init__(self, config: Config, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._flush_s = config.records_flush_s
        self._shared: WeakValueDictionary[tuple[str, str, str, str], Who] = WeakValueDictionary()
        self._sessions = itertools.count(1)
        self._counts: dict[tuple[str, Who], list[int]] = {}
        self._publishes: dict[tuple[int, str], _Publishes] = {}
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.on = config.records
        self.note: Callable[..., None] = _nothing
        self._buffer: Buffer | None = None
        if config.records:
            random = base64.b32encode(os.urandom(5)).decode().lower()
            gateway = gateway_id(socket.gethostname(), clock(), random)
            sealing = SealingProcess(config.records_path, config.records_url) if config.is_small else None
            self._writer = Writer(config.records_path, gateway, config.records_segment_s, sealing, config.records_url)
            self._buffer = Buffer(self._writer, config.records_waiting_max, clock)
            self.note = self._buffer.note

    def start(self, channels: Callable[[], Sequence[RecordedChannel]]) -> None:
        """Begin to write, and to count the channels' deliveries."""
        if self._buffer is not None:
            self._writer.start()
            self._loop = asyncio.get_running_loop()
            self._task = self._loop.create_task(self._flush_forever(channels))
            atexit.register(self._last_words)  # for servers that do not announce their end

    async def close(self) -> None:
        """Write everything; to be called after the sessions have ended."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
            await asyncio.to_thread(self._last_words)
            atexit.unregister(self._last_words)

    def _last_words(self) -> None:
        if self._buffer is not None:
            self._note_publishes()
            self._note_counts()
            self._buffer.flush()
            if not self._writer.close(CLOSE_S):
                log.error("The last access records were not written within %g s.", CLOSE_S)

    # Actors

    def who(self, principal: Principal | None, client: str) -> Who:
        """Return the actor for records outside sessions; the same object for equal arguments as long as one is in use."""
        key = _names(principal, client)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = Who(*key)
        return found

    def present(self, session: RecordedSession, principal: Principal, client: str) -> None:
        """Assign a new session its number; before `hub.opened`."""
        session.who = Who(*_names(principal, client), next(self._sessions))
        session.reader = self.who(principal, client)

    # HTTP requests

    def begin(self, scope: dict[str, Any], operation: str, client: str, rp: str = "") -> Access:
        """Make the record of a new request; `rp` as the client wrote it, until more is known."""
        made = scope[_ACCESS] = Access(operation, client, rp_or_nothing(rp), self._clock())
        return made

    def end(self, of: Access, reason: str = "") -> None:
        """Note the record of a request that ended now; `reason` is the code of the problem in its answer."""
        if of.done:
            return
        refused = reason or of.reason
        if refused and refused != DISCONNECTED:
            totals().refuse(refused)
        if self._buffer is None:
            return
        if of.operation == "publish" and of.principal is not None and not refused:
            self.published_http(of.principal, of.rp, of.began, of.events, of.bytes_in)
            return
        now = self._clock()
        who = self.who(of.principal, of.client)
        self.note(now, who, of.operation, of.rp, refused, of.events, of.bytes_in, of.bytes_out, now - of.began)

    def published_http(self, principal: Principal, rp: str, began: float, events: int, content_bytes: int) -> None:
        """Record a successful publish over HTTP, begun at `began` (Unix seconds). Only where records are on.

        Runs for each publish: splitting it into clearer functions would cost half as much again.
        """
        key = id(principal), rp
        gathered = self._publishes.get(key)
        if gathered is None:
            gathered = self._begin_gathering(key, None, principal)
        gathered.answered = now = self._clock()
        gathered.count += 1
        gathered.events += events
        gathered.bytes += content_bytes
        gathered.latency_s += now - began

    def _begin_gathering(self, key: tuple[int, str], who: Who | None, principal: Principal | None) -> _Publishes:
        if not self._publishes:
            (self._loop or asyncio.get_running_loop()).call_later(GATHER_S, self._note_publishes)
        gathered = self._publishes[key] = _Publishes(key[1], who, principal)
        return gathered

    def _note_publishes(self) -> None:
        gathered, self._publishes = self._publishes, {}
        for one in gathered.values():
            who = one.who or self.who(one.principal, "http")
            latency_s = one.latency_s / one.count
            self.note(one.answered, who, "publish", one.rp, "", one.events, one.bytes, 0, latency_s, 0, one.count)

    async def passed_on(self, pass_on: Application, scope: Scope, receive: Any, send: Any) -> None:
        """Pass the request to Django by `pass_on`, and note its result if it is one to the interface.

        Django names the operation (portal/auditing.py).
        """
        if not scope["path"].startswith(_API):
            await pass_on(scope, receive, send)
            return
        of = self.begin(scope, "unknown", "http")
        status = 0

        async def send_counted(event: dict[str, Any]) -> None:
            nonlocal status
            if event["type"] == "http.response.start":
                status = event["status"]
            else:
                of.bytes_out += len(event.get("body", b""))
            await send(event)

        try:
            await pass_on(scope, receive, send_counted)
        finally:
            if not status:
                of.reason = DISCONNECTED
            elif status >= 400 and not of.reason:
                of.reason = f"http-{status}"
            self.end(of)

    # Sessions

    def connected(self, session: RecordedSession) -> None:
        """Record the begin of a session."""
        self.note(self._clock(), session.who, "connect", "")

    def disconnected(self, session: RecordedSession) -> None:
        """Record the end of a session."""
        self.note(self._clock(), session.who, "disconnect", "")

    def refused(self, session: RecordedSession, operation: str, reference: str, reason: str) -> None:
        """Record a failed operation of a session at the RP that its client named `reference`."""
        totals().refuse(reason)
        self.note(self._clock(), session.who, operation, rp_or_nothing(reference), reason)

    def succeeded(self, session: RecordedSession, operation: str, rp: str, began: float) -> None:
        """Record a successful operation of a session, begun at `began` (Unix seconds)."""
        now = self._clock()
        self.note(now, session.who, operation, rp, "", 0, 0, 0, now - began)

    def acknowledged(self, session: RecordedSession, good: Together) -> None:
        """Record acknowledgements of a session that have just been answered, all in one record."""
        now = self._clock()
        latency_s = now - good.began / good.count
        self.note(now, session.who, "subscription.ack", good.rp, "", 0, 0, 0, latency_s, 0, good.count)

    def published(self, session: RecordedSession, good: Together) -> None:
        """Record publishes of a session that have just been answered."""
        if self._buffer is not None:
            who = session.who
            key = id(who), good.rp
            gathered = self._publishes.get(key) or self._begin_gathering(key, who, None)
            gathered.answered = now = self._clock()
            gathered.count += good.count
            gathered.events += good.events
            gathered.bytes += good.bytes
            gathered.latency_s += now * good.count - good.began

    def joined(self, follower: RecordedFollower, of: Access | float) -> None:
        """Record that a session began to read an RP, requested at `of` (Unix seconds) or by the request of that record."""
        if isinstance(of, Access):
            of.done = True
            of = of.began
        now = self._clock()
        self.note(now, follower.session.who, "subscribe", follower.channel.rp, "", 0, 0, 0, now - of)

    def left(self, follower: RecordedFollower) -> None:
        """Record that a session stopped reading an RP."""
        self.note(self._clock(), follower.session.who, "unsubscribe", follower.channel.rp)

    # Deliveries

    def delivered(self, follower: RecordedFollower, events: int, content_bytes: int) -> None:
        """Count events written to a reader since the last call for it."""
        if self._buffer is None:
            return
        key = (follower.channel.rp, follower.session.reader)
        count = self._counts.get(key)
        if count is None:
            self._counts[key] = [events, content_bytes, 1]
            if len(self._counts) >= COUNTS_MAX:
                self._note_counts()
        else:
            count[0] += events
            count[1] += content_bytes
            count[2] += 1

    async def _flush_forever(self, channels: Callable[[], Sequence[RecordedChannel]]) -> None:
        while True:
            await asyncio.sleep(self._flush_s - self._clock() % self._flush_s)
            try:
                await self._count(channels())
                self._note_counts()
                if self._buffer is not None:
                    self._buffer.flush()
            except Exception:
                log.exception("Flushing access records failed; the next flush follows in %d s.", self._flush_s)

    async def _count(self, channels: Sequence[RecordedChannel]) -> None:
        """Count deliveries to live followers, in the channels that have moved."""
        counted = 0
        for channel in channels:
            if channel.events == channel.events_counted:
                continue
            channel.events_counted = channel.events
            for follower in channel.followers():
                if follower.live:  # still
                    follower.count()
                counted += 1
                if counted % FOLLOWERS_AT_ONCE == 0:
                    await asyncio.sleep(0)

    def _note_counts(self) -> None:
        """Note the counts, for the minute of delivery with an error of half a flush."""
        counts, self._counts = self._counts, {}
        minute = (self._clock() - self._flush_s / 2) // MINUTE_S * MINUTE_S
        for (rp, reader), (events, content_bytes, sessions) in counts.items():
            self.note(minute, reader, DELIVER, rp, "", events, 0, content_bytes, 0.0, sessions)


def _names(principal: Principal | None, client: str) -> tuple[str, str, str, str]:
    """Return principal, issuer, kind of client and peer of a principal. A foreign issuer that is not a URL is a peer domain."""
    if principal is None:
        return "", "", client, ""
    issuer = principal.issuer
    peer = issuer if issuer and not principal.local and "://" not in issuer else ""
    return "" if principal.anonymous else principal.identity, issuer, client, peer


def _nothing(*_: object) -> None:
    """Do nothing: records are off."""
