"""A persistent connection: carries out its session's outputs, over one socket after another, at one replica or another.

Life: idle -> dialling -> open -> (lost) -> waiting -> dialling ...        any -> ended
It is idle until there is work. Losing the socket is not an error: after a delay (backoff.py) the next one is dialled,
at the replica that rollover.py chooses, and the session resumes where it was. It ends when every replica refuses (a
terminal close code or problem), when patience runs out, or when the program closes it.

While another replica than the preferred one is in use, the preferred one is asked whether it is ready. Before going
back, the answers of sent operations are awaited, so that no publish is repeated for it.

A better server (server_choice.py) is connected to before the present one is left, in the same way.

Reading stops while a subscription's queue is full, so that TCP slows the gateway down, unless a caller waits for an
answer on this connection. A subscription that stays full for `PARK_S` is parked: the others continue.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from herald.best_server import ServerMove
from herald.dial import Address, Credentials, dial
from herald.errors import ClientClosed, ConnectionLost, HeraldError, Problem
from herald.events import Gap, Item
from herald.reconnection import Reconnection
from herald.rollover import Move, Rollover
from herald.server_choice import ServerChoice
from herald.session import (
    Alternatives,
    Collided,
    Deliver,
    Drop,
    Ended,
    Established,
    Interest,
    NotHere,
    OperationAnswered,
    OperationNotHere,
    OperationRefused,
    Output,
    PendingOperation,
    Redirected,
    Send,
    SessionMachine,
    Target,
)
from herald.statistics import Counters, Disconnected, Reconnected

PARK_S = 5.0  # below the heartbeat, which a connection that is not read cannot answer
SUBSCRIPTIONS_MAX = 5000  # per connection, then another is opened; a gateway's default bound is 10,000
RETURN_S_MAX = 5.0  # seconds that going back waits for answers of sent operations
_PROTOCOL_ERROR = 1002
log = logging.getLogger("herald")


class ConnectionReader(Protocol):
    """The receiver of a connection's items: a subscription."""

    key: int
    target: Target

    @property
    def full(self) -> bool:
        """Return whether it holds as much as it may."""

    def established(self, cursor: str | None) -> None:
        """Report that the gateway accepted it (again), at this position; None: the first gap has the position."""

    def put(self, item: Item, chars: int) -> None:
        """Accept an item."""

    def end(self, error: HeraldError | None) -> None:
        """Report that nothing more arrives; with an error if that was not requested."""

    def move(self, connection: Connection) -> None:
        """Report that another connection delivers from now on."""


class Owner(Protocol):
    """The owner of a connection: the client."""

    def collided(self, interest: Interest, reader: ConnectionReader) -> None:
        """Continue an interest (with its reader) in another connection."""

    def elsewhere(self, connection: Connection, target: Target, problem: Problem) -> Connection | HeraldError:
        """Return where a target continues that the replica of `connection` refuses, or the error it ends with."""

    def replicated(self, connection: Connection, rp: str) -> None:
        """Note that an RP that is read has replicas."""

    def redirected(self, connection: Connection, urls: object) -> None:
        """Note further addresses that a domain named, to be used with `connection`."""

    def moved(self, move: Move) -> None:
        """Report that the connection moves to another replica."""

    @property
    def counters(self) -> Counters:
        """Return the counters to increment."""

    def lost(self, loss: Disconnected) -> None:
        """Report that the connection was lost, and is to be replaced."""

    def replaced(self, return_: Reconnected) -> None:
        """Report that it was replaced."""

    def ready(self, url: str) -> Awaitable[bool]:
        """Return whether a domain states that it is ready."""


class Connection:
    """A persistent connection; see the module. Made by Client; all methods are for its event loop.

    Arguments:
        rollover: the replicas.
        first_patience_s: seconds to keep trying before the first connection; 0 for one attempt at each replica.
        patience_s: seconds to keep trying after a connection was lost; None for ever.
        instead: the error to end with when patience runs out before the first connection; None for the cause itself.
        choice: the choice of better servers; None: only failures make it move.
    """

    def __init__(
        self,
        rollover: Rollover,
        credentials: Credentials,
        session: SessionMachine,
        owner: Owner,
        *,
        first_patience_s: float | None,
        patience_s: float | None,
        instead: HeraldError | None = None,
        choice: ServerChoice | None = None,
    ) -> None:
        self.session = session
        self.rollover = rollover
        self.ended: HeraldError | None = None
        self.session.elsewhere = rollover.many
        self._reconnection = Reconnection(rollover, session, credentials.renewable)
        self._credentials = credentials
        self._owner = owner
        self._patience_s = first_patience_s
        self._later_patience_s = patience_s
        self._instead = instead
        self._choice = choice
        self._prepared: tuple[ServerMove, ClientConnection] | None = None  # the next server, connected
        self._lost_at: float | None = None  # since when there is no connection, after there was one
        self._answered = asyncio.Event()
        self._readers: dict[int, ConnectionReader] = {}
        self._targets: set[Target] = set()
        self._full: set[int] = set()  # keys of readers that hold as much as they may
        self._answers: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._outgoing: deque[str] = deque()
        self._writable = asyncio.Event()
        self._eased = asyncio.Event()
        self._drop: Drop | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._returning = False  # the socket is being closed in order to go back
        self._task: asyncio.Task[None] | None = None

    # ---- for the client ----

    def submit(self, op: str, members: str, target: Target) -> asyncio.Future[Mapping[str, Any]]:
        """Request an operation (see SessionMachine.submit); returns a future of its answer. Cancelling the future abandons the
        operation.
        """
        self._check()
        id = self.session.submit(op, members, target=target)
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._expect(id, answer)
        self._eased.set()
        self._proceed()
        return answer

    def request(self, op: str, members: str) -> asyncio.Future[Mapping[str, Any]]:
        """Request an operation whose answer does not keep reading going. The caller must retrieve the answer's errors."""
        self._check()
        id = self.session.submit(op, members, waited=False)
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._expect(id, answer)
        self._proceed()
        return answer

    def take_over(
        self, operations: Mapping[int, PendingOperation], answers: Mapping[int, asyncio.Future[Mapping[str, Any]]]
    ) -> None:
        """Continue operations that another connection's replica refuses."""
        self._check()
        for id, answer in answers.items():
            self._expect(id, answer)
        self.session.take_over(operations)
        self._proceed()

    def learn(self, urls: Sequence[str]) -> None:
        """Note further replicas."""
        self.rollover.learn(urls)
        self.session.elsewhere = self.rollover.many

    def subscribe(self, reader: ConnectionReader, start: str | None) -> None:
        """Deliver to `reader` from now on, until `unsubscribe` or its `end`."""
        self._check()
        self._keep(reader)
        self.session.subscribe(reader.key, reader.target, start)
        self._eased.set()
        self._proceed()

    def adopt(self, interest: Interest, reader: ConnectionReader) -> None:
        """Take over an interest that collided in another connection."""
        self._check()
        self._keep(reader)
        self.session.adopt(interest)
        self._proceed()

    def unsubscribe(self, reader: ConnectionReader) -> None:
        """Stop delivering to `reader`."""
        if self._release(reader.key) is not None and self.ended is None:
            self.session.unsubscribe(reader.key)
            self._eased.set()
            self._proceed()

    def eased(self, reader: ConnectionReader) -> None:
        """Note that the reader has room again."""
        self._full.discard(reader.key)
        self._eased.set()
        self.session.unpark(reader.key)
        self._carry_out()

    def takes(self, target: Target) -> bool:
        """Return whether another subscription, to `target`, may share this connection."""
        return (
            self.ended is None
            and not self._full
            and target not in self._targets
            and len(self._readers) < SUBSCRIPTIONS_MAX
        )

    async def close(self) -> None:
        """Close the socket and end everything without error."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._end(None)

    # ---- life ----

    def _check(self) -> None:
        if self.ended is not None:
            raise self.ended

    def _proceed(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        self._carry_out()

    async def _run(self) -> None:
        trying_since = time.monotonic()
        try:
            while True:
                try:
                    socket = await self._next_socket()
                except ConnectionLost as error:
                    self.rollover.failed(time.monotonic())
                    self._be_patient(error, trying_since)
                except Problem as problem:
                    self._reconnection.refused(problem, time.monotonic())
                    self._be_patient(problem, trying_since)
                else:
                    await self._live(socket)
                    self._patience_s, self._instead = self._later_patience_s, None
                    trying_since = time.monotonic()
        except HeraldError as error:
            self._end(error)
        except Exception as error:
            # The outermost loop: callers that wait must get the error of a token source, or of a bug here.
            log.exception("The connection ended; its subscriptions and unanswered operations are lost.")
            failure = HeraldError(f"The connection failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._end(failure)
        finally:
            if self._prepared is not None:
                await self._prepared[1].close()

    async def _next_socket(self) -> ClientConnection:
        """Open the next connection, or take the one that is prepared."""
        if self._prepared is not None:
            (move, socket), self._prepared = self._prepared, None
            self.rollover.chosen(move.url, time.monotonic(), move.reason)
            self.session.elsewhere = self.rollover.many
            self._reconnection.dialled(move.url)
            return socket
        url, delay_s = self.rollover.next(time.monotonic())
        await asyncio.sleep(delay_s)
        self._reconnection.dialled(url)
        return await dial(Address(url), self._credentials, None if self._choice is None else self._choice.hops)

    def _be_patient(self, error: HeraldError, trying_since: float) -> None:
        """Raise `error` if every replica has been tried and waiting for the next attempt takes too long."""
        now = time.monotonic()
        delay_s = self.rollover.wait_s(now)
        if delay_s is not None and self._patience_s is not None and now - trying_since + delay_s > self._patience_s:
            raise self._instead or error
        log.info("%s Trying again in %.1f s.", error, self.rollover.next(now)[1])

    async def _live(self, socket: ClientConnection) -> None:
        """Use a socket until it is lost. Raises HeraldError if no other is to follow."""
        if self._choice is not None:
            self._choice.arrived(self.rollover.current)
        if (move := self._reconnection.opened(time.monotonic())) is not None:
            self._owner.moved(move)
        self._park_full()
        self._owner.counters.connects += 1
        if self._lost_at is not None:
            self._owner.replaced(Reconnected(self.rollover.current, time.monotonic() - self._lost_at))
            self._lost_at = None
        self.session.opened()
        self._carry_out()
        writer = asyncio.create_task(self._write(socket))
        leaving = [self._return(socket)] if self.rollover.probe_at is not None else []
        if self._choice is not None:
            leaving.append(self._leave_for_better(self._choice, socket))
        leavers = [asyncio.create_task(one) for one in leaving]
        try:
            await self._read(socket)
        except ConnectionClosed:
            pass
        finally:
            writer.cancel()
            for leaver in leavers:
                leaver.cancel()
            self._owner.counters.ended += 1
            self.session.lost()
            self._outgoing.clear()
            if self._alarm is not None:
                self._alarm.cancel()
            if self._full:
                socket.transport.abort()  # it is not being read: a closing handshake could only time out
            await socket.close(1000 if self._drop is None else _PROTOCOL_ERROR)
        now = time.monotonic()
        if self._prepared is not None:
            self._returning, self._drop = False, None
        elif self._returning:
            self._returning = False
            self.rollover.returning(now)
        elif (drop := self._drop) is not None:
            self._drop = None
            self._reconnection.dropped(drop, now)
            log.warning("%s Connecting again.", drop.reason)
            self._report_loss(_PROTOCOL_ERROR, drop.reason, now)
        else:
            self._reconnection.lost(socket.close_code or 1006, socket.close_reason or "", now)
            delay_s = self.rollover.next(now)[1]
            self._report_loss(socket.close_code or 1006, socket.close_reason or "", now)
            log.info("The connection was lost (code %s). Connecting again in %.1f s.", socket.close_code, delay_s)

    def _report_loss(self, code: int, reason: str, now: float) -> None:
        self._lost_at = now
        self._owner.counters.disconnects += 1
        self._owner.lost(Disconnected(self.rollover.current, code, reason, self.rollover.next(now)[1]))

    async def _return(self, socket: ClientConnection) -> None:
        """Go back to the preferred replica once it is lastingly ready; answers of sent operations are awaited first."""
        good = False
        while not good:
            probe_at = self.rollover.probe_at
            if probe_at is None:
                return
            await asyncio.sleep(max(0.0, probe_at - time.monotonic()))
            ready = await self._owner.ready(self.rollover.preferred)
            good = self.rollover.probed(ready, time.monotonic())
        await self._all_answered()
        self._returning = True
        await socket.close(1000)

    async def _leave_for_better(self, choice: ServerChoice, socket: ClientConnection) -> None:
        """Close the socket once a better server is connected; answers of sent operations are awaited first."""
        self._prepared = await choice.prepared()
        await self._all_answered()
        await socket.close(1000)

    async def _all_answered(self) -> None:
        """Send no more operations on this socket, and wait for the answers of those sent, RETURN_S_MAX at most."""
        self.session.hold()
        try:
            async with asyncio.timeout(RETURN_S_MAX):
                while self.session.unanswered:
                    self._answered.clear()
                    await self._answered.wait()
        except TimeoutError:
            log.info("Leaving %s while publishes are unanswered; they are sent again.", self.rollover.current)

    async def _read(self, socket: ClientConnection) -> None:
        while self._drop is None:
            text = await socket.recv(decode=True)
            self.session.received(text, time.monotonic())
            self._carry_out()
            if self._full and not self.session.awaits_answer:
                await self._ease()

    async def _ease(self) -> None:
        """Wait until no reader is full or an answer is awaited; park readers that stay full for too long."""
        deadline = time.monotonic() + PARK_S
        while self._full and not self.session.awaits_answer:
            self._eased.clear()
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._eased.wait()
            except TimeoutError:
                self._park_full()
                self._carry_out()
                return

    def _park_full(self) -> None:
        for key in self._full:
            self.session.park(key)
        self._full.clear()  # nothing arrives for them any more

    async def _write(self, socket: ClientConnection) -> None:
        try:
            while True:
                while self._outgoing:
                    await socket.send(self._outgoing.popleft())
                self._writable.clear()
                await self._writable.wait()
        except ConnectionClosed:
            return  # the reader notices, too, and everything unanswered is sent again

    # ---- carrying out ----

    def _carry_out(self) -> None:
        for output in self.session.take():
            self._do(output)
        if self._outgoing:
            self._writable.set()
        due_at = self.session.due_at
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if due_at is not None:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(max(0.0, due_at - time.monotonic()), self._wake)

    def _wake(self) -> None:
        self._alarm = None
        self.session.wake(time.monotonic())
        self._carry_out()

    def _do(self, output: Output) -> None:
        match output:
            case Send(text):
                self._outgoing.append(text)
            case Deliver(key, item, chars):
                self._reconnection.understood()
                if (reader := self._readers.get(key)) is not None:
                    if isinstance(item, Gap):
                        self._owner.counters.gaps += 1
                    else:
                        self._owner.counters.received += 1
                    reader.put(item, chars)
                    if reader.full:
                        self._full.add(key)
            case OperationAnswered(id, frame):
                self._reconnection.accepted()
                self._reconnection.understood()
                self._answered.set()
                self._settle(id, frame)
            case OperationRefused(id, problem):
                self._answered.set()
                self._settle(id, problem)
            case Established(key, cursor):
                self._reconnection.accepted()
                if self._choice is not None:
                    self._choice.established(key)
                if (reader := self._readers.get(key)) is not None:
                    reader.established(cursor)
                if cursor is not None and "~" in cursor and reader is not None and reader.target[0] == "rp":
                    self._owner.replicated(self, reader.target[1])
            case Ended(key, error):
                if (reader := self._release(key)) is not None:
                    reader.end(error)
            case Collided(interest):
                if (reader := self._release(interest.key)) is not None:
                    self._owner.collided(interest, reader)
            case NotHere(interest, error):
                if (reader := self._release(interest.key)) is not None:
                    self._elsewhere(interest, reader, error)
            case OperationNotHere(id, target, error):
                self._answered.set()
                self._operations_elsewhere(id, target, error)
            case Redirected(urls):
                self._owner.redirected(self, urls)
                if self._choice is not None:
                    self._choice.redirected(output)
            case Alternatives():
                if self._choice is not None:
                    self._choice.named(output)
            case Drop():
                self._drop = output

    def _elsewhere(self, interest: Interest, reader: ConnectionReader, problem: Problem) -> None:
        where = self._owner.elsewhere(self, interest.target, problem)
        if isinstance(where, HeraldError):
            interest.to("ended")
            reader.end(where)
        else:
            reader.move(where)
            where.adopt(interest, reader)

    def _operations_elsewhere(self, id: int, target: Target, problem: Problem) -> None:
        """Move all operations of the target, so that their order is kept."""
        if id not in self.session.operations:
            return
        where = self._owner.elsewhere(self, target, problem)
        if isinstance(where, HeraldError):
            self.session.abandon(id)
            self._settle(id, where)
        else:
            given = self.session.surrender(target)
            where.take_over(given, {id: self._answers.pop(id) for id in given if id in self._answers})

    def _expect(self, id: int, answer: asyncio.Future[Mapping[str, Any]]) -> None:
        answer.add_done_callback(lambda done: self._forget(id) if done.cancelled() else None)
        self._answers[id] = answer

    def _keep(self, reader: ConnectionReader) -> None:
        self._readers[reader.key] = reader
        self._targets.add(reader.target)

    def _release(self, key: int) -> ConnectionReader | None:
        reader = self._readers.pop(key, None)
        self._full.discard(key)
        if self._choice is not None:
            self._choice.released(key)
        if reader is not None:
            self._targets.discard(reader.target)
        return reader

    def _settle(self, id: int, outcome: Mapping[str, Any] | HeraldError) -> None:
        answer = self._answers.pop(id, None)
        if answer is None:
            if isinstance(outcome, HeraldError):
                log.warning("The gateway refused an operation: %s", outcome)
        elif not answer.done():
            if isinstance(outcome, HeraldError):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)

    def _forget(self, id: int) -> None:
        self._answers.pop(id, None)
        self.session.abandon(id)

    def _end(self, error: HeraldError | None) -> None:
        if self.ended is not None:
            return
        self.ended = error or ClientClosed("The client was closed.")
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            if not answer.done():
                answer.set_exception(self.ended)
        readers, self._readers = self._readers, {}
        for reader in readers.values():
            reader.end(error)
