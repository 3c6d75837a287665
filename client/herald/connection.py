"""One connection to a gateway, kept up: carries out what its session says, over one socket after another.

Life: idle -> dialling -> open -> (lost) -> waiting -> dialling ...        any -> ended
It is idle until something is wanted. Losing the socket is not an error: after a delay (backoff.py) the next one is
dialled and the session takes up where it was. It ends when the gateway says so (a terminal close code or problem), when
patience runs out, or when the program closes it.

Reading stops while a subscription's queue is full, so that TCP slows the gateway down, unless someone waits for an
answer on this connection. A subscription that stays full for `PARK_S` is parked: the others go on.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from herald.backoff import Backoff
from herald.dial import Address, Credentials, dial
from herald.errors import (
    FORBIDDEN,
    RP_GONE,
    TOKEN_EXPIRED,
    ClientClosed,
    Closed,
    ConnectionLost,
    HeraldError,
    Problem,
    is_terminal,
)
from herald.events import Item
from herald.session import (
    Answered,
    Collided,
    Deliver,
    Drop,
    Ended,
    Established,
    Interest,
    Output,
    Refused,
    Send,
    Session,
    Target,
)

PARK_S = 5.0  # below the heartbeat, which a connection that is not read cannot answer
SUBSCRIPTIONS_MAX = 5000  # of one connection, then another is opened; a gateway's default bound is 10,000
_PROTOCOL_ERROR = 1002
log = logging.getLogger("herald")


class Reader(Protocol):
    """What a connection delivers to: a subscription."""

    key: int
    target: Target

    @property
    def full(self) -> bool:
        """Whether it holds as much as it may."""

    def established(self, cursor: str | None) -> None:
        """The gateway accepted it (again), at this place; None: the place is told by the gap that comes first."""

    def put(self, item: Item, chars: int) -> None:
        """Take an item."""

    def end(self, error: HeraldError | None) -> None:
        """Nothing more will come; with an error if that was not asked for."""

    def move(self, connection: Connection) -> None:
        """Another connection delivers from now on."""


class Connection:
    """See the module. Made by Client; all methods are for its event loop.

    Arguments:
        first_patience_s: seconds to keep trying before the first connection; 0 for one attempt.
        patience_s: seconds to keep trying after a connection was lost; None for ever.
        collided: called with an interest (and its reader) that must go on in another connection.
    """

    def __init__(
        self,
        address: Address,
        credentials: Credentials,
        *,
        first_patience_s: float,
        patience_s: float | None,
        collided: Callable[[Interest, Reader], None],
    ) -> None:
        self.session = Session(random.Random())  # noqa: S311 - jitter, not a secret
        self.ended: HeraldError | None = None
        self._address = address
        self._credentials = credentials
        self._patience_s: float | None = first_patience_s
        self._later_patience_s = patience_s
        self._collided = collided
        self._backoff = Backoff(self.session.random)
        self._readers: dict[int, Reader] = {}
        self._targets: set[Target] = set()
        self._full: set[int] = set()  # keys of readers that hold as much as they may
        self._answers: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._outgoing: deque[str] = deque()
        self._writable = asyncio.Event()
        self._eased = asyncio.Event()
        self._drop: str | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._token_renewed = False
        self._task: asyncio.Task[None] | None = None

    # ---- for the client ----

    def submit(self, op: str, members: str) -> asyncio.Future[Mapping[str, Any]]:
        """Ask for an operation (see Session.submit); its answer comes. Cancelling the future gives the operation up."""
        self._check()
        id = self.session.submit(op, members)
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda done: self._forget(id) if done.cancelled() else None)
        self._answers[id] = answer
        self._eased.set()
        self._proceed()
        return answer

    def tell(self, op: str, members: str) -> None:
        """Ask for an operation whose answer nobody waits for; a refusal is logged."""
        self._check()
        self.session.submit(op, members, waited=False)
        self._proceed()

    def subscribe(self, reader: Reader, start: str | None) -> None:
        """Deliver to `reader` from now on, until `unsubscribe` or its `end`."""
        self._check()
        self._keep(reader)
        self.session.subscribe(reader.key, reader.target, start)
        self._eased.set()
        self._proceed()

    def adopt(self, interest: Interest, reader: Reader) -> None:
        """Take over an interest that collided in another connection."""
        self._check()
        self._keep(reader)
        self.session.adopt(interest)
        self._proceed()

    def unsubscribe(self, reader: Reader) -> None:
        """Deliver no more to `reader`."""
        if self._release(reader.key) is not None and self.ended is None:
            self.session.unsubscribe(reader.key)
            self._eased.set()
            self._proceed()

    def eased(self, reader: Reader) -> None:
        """The reader has room again."""
        self._full.discard(reader.key)
        self._eased.set()
        self.session.unpark(reader.key)
        self._carry_out()

    def takes(self, target: Target) -> bool:
        """Whether another subscription, to `target`, may share this connection."""
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
                    socket = await dial(self._address, self._credentials)
                except ConnectionLost as error:
                    delay_s = self._backoff.next()
                    self._be_patient(error, trying_since, delay_s)
                except Problem as problem:
                    delay_s = self._after_refusal(problem)
                    self._be_patient(problem, trying_since, delay_s)
                else:
                    delay_s = await self._live(socket)
                    self._patience_s = self._later_patience_s
                    trying_since = time.monotonic()
                await asyncio.sleep(delay_s)
        except HeraldError as error:
            self._end(error)
        except Exception as error:
            # The outermost loop: whoever waits must learn of a token source that failed, or of our own bug.
            log.exception("The connection ended; its subscriptions and unanswered operations are lost.")
            failure = HeraldError(f"The connection failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._end(failure)

    def _be_patient(self, error: HeraldError, trying_since: float, delay_s: float) -> None:
        """Raises `error` if waiting `delay_s` more is too long."""
        if self._patience_s is not None and time.monotonic() - trying_since + delay_s > self._patience_s:
            raise error
        log.info("%s Trying again in %.1f s.", error, delay_s)

    def _after_refusal(self, problem: Problem) -> float:
        if problem.passing or problem.status >= 500:
            return self._backoff.next(problem.retry_after_s)
        if problem.status == 401 and self._credentials.renewable and not self._token_renewed:
            self._token_renewed = True
            return 0.0
        raise problem

    async def _live(self, socket: ClientConnection) -> float:
        """Use a socket until it is lost. Returns the delay before the next; raises HeraldError if there is to be none."""
        opened_at = time.monotonic()
        self._park_full()
        self.session.opened()
        self._carry_out()
        writer = asyncio.create_task(self._write(socket))
        try:
            await self._read(socket)
        except ConnectionClosed:
            pass
        finally:
            writer.cancel()
            self.session.lost()
            self._outgoing.clear()
            if self._alarm is not None:
                self._alarm.cancel()
            if self._full:
                socket.transport.abort()  # it is not being read: a closing handshake could only time out
            await socket.close(1000 if self._drop is None else _PROTOCOL_ERROR)
        self._backoff.lived(time.monotonic() - opened_at)
        if self._drop is not None:
            log.warning("%s Connecting again.", self._drop)
            self._drop = None
            return self._backoff.next()
        delay_s = self._after_loss(socket.close_code or 1006, socket.close_reason or "")
        log.info("The connection was lost (code %s). Connecting again in %.1f s.", socket.close_code, delay_s)
        return delay_s

    def _after_loss(self, code: int, reason: str) -> float:
        if code == TOKEN_EXPIRED and self._credentials.renewable and not self._token_renewed:
            self._token_renewed = True
            return 0.0
        one_of_many = code in (FORBIDDEN, RP_GONE) and len(self.session.interests) > 1
        announced = self.session.closing or {}
        if not one_of_many and (is_terminal(code) or announced.get("retry") is False):
            raise Closed(code, reason or str(announced.get("reason", "")))
        return self._backoff.next(Problem.from_document(announced).retry_after_s)

    async def _read(self, socket: ClientConnection) -> None:
        while self._drop is None:
            text = await socket.recv(decode=True)
            self.session.received(text, time.monotonic())
            self._carry_out()
            if self._full and not self.session.awaits_answer:
                await self._ease()

    async def _ease(self) -> None:
        """Wait until no reader is full or an answer is waited for; park those that stay full for too long."""
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
        self._full.clear()  # nothing comes for them any more

    async def _write(self, socket: ClientConnection) -> None:
        try:
            while True:
                while self._outgoing:
                    await socket.send(self._outgoing.popleft())
                self._writable.clear()
                await self._writable.wait()
        except ConnectionClosed:
            return  # the reader sees it too, and everything unanswered is sent again

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
                if (reader := self._readers.get(key)) is not None:
                    reader.put(item, chars)
                    if reader.full:
                        self._full.add(key)
            case Answered(id, frame):
                self._token_renewed = False
                self._settle(id, frame)
            case Refused(id, problem):
                self._settle(id, problem)
            case Established(key, cursor):
                self._token_renewed = False
                if (reader := self._readers.get(key)) is not None:
                    reader.established(cursor)
            case Ended(key, error):
                if (reader := self._release(key)) is not None:
                    reader.end(error)
            case Collided(interest):
                if (reader := self._release(interest.key)) is not None:
                    self._collided(interest, reader)
            case Drop(reason):
                self._drop = reason

    def _keep(self, reader: Reader) -> None:
        self._readers[reader.key] = reader
        self._targets.add(reader.target)

    def _release(self, key: int) -> Reader | None:
        reader = self._readers.pop(key, None)
        self._full.discard(key)
        if reader is not None:
            self._targets.discard(reader.target)
        return reader

    def _settle(self, id: int, outcome: Mapping[str, Any] | Problem) -> None:
        answer = self._answers.pop(id, None)
        if answer is None:
            if isinstance(outcome, Problem):
                log.warning("The gateway refused an operation: %s", outcome)
        elif not answer.done():
            if isinstance(outcome, Problem):
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
