"""A subscription for its reader: an async iterator that continues across lost connections.

    async for item in client.subscribe("/localhost/a/b/"):
        if isinstance(item, Gap): ...      # events that are no longer available; never silent
        else: ...                          # Received

The last item handed out counts as processed

- when the next one is requested,
- when its loop is left by `break` or `return` (loops.py),
- when the subscription or its client is closed without an exception: not by others while its loop continues, nor after
  its loop was left by an exception, even if that was caught outside,
- when the program acknowledges it.

Only then is its cursor saved (or acknowledged): a reader that crashes in between gets the item again, and misses none.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from types import TracebackType
from typing import Any, Self

from herald.connection import Connection
from herald.errors import ClientClosed, ConnectionLost, HeraldError, Problem
from herald.events import Gap, Item, encode, hand_out
from herald.leases import Lease, keep
from herald.loops import callers, left_in_order
from herald.session import Target
from herald.starts import explained

QUEUE_EVENTS_MAX = 1000
QUEUE_CHARS_MAX = 4 * 1024 * 1024
SAVE_EVERY_S = 0.1  # interval of saving a busy reader's cursor; a killed reader may get the last events again
ACK_S_MAX = 5.0  # seconds that closing waits for the last acknowledgement
RENEW_S_MAX = 15.0  # for the answer to a renewal, then it is repeated: the reading may have moved to another connection
_DELIVERED_ELSEWHERE = frozenset({"moved", "conflict"})  # `conflict`: its address is not known there
log = logging.getLogger("herald")


class SubscriptionLoop:
    """One `async for` over a subscription. Only the loop references it, so that it is dropped when the loop is left."""

    __slots__ = ("__weakref__", "_subscription", "frame")

    def __init__(self, subscription: Subscription, frame: int) -> None:
        self._subscription = subscription
        self.frame = frame  # identity of the frame that it is in

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Item]:
        return self._subscription.__anext__()

    def __del__(self) -> None:
        frame = sys._getframe(1)  # only to read which instruction drops this object
        self._subscription.left(in_order=id(frame) == self.frame and left_in_order(frame))


class Subscription:
    """An async iterator of events and gaps; see the module. Made by `Client.subscribe`; start it with `async for`,
    `async with` or `await`.

    Attributes:
        key: its number within the client.
        target: the target that it was made for.
    """

    def __init__(
        self,
        key: int,
        target: Target,
        start: str | None,
        connect: Callable[[Subscription], Connection],
        *,
        save: Callable[[str], None] | None = None,
        on_gap: Callable[[Gap], None] | None = None,
        on_closed: Callable[[Subscription], None] = lambda _: None,
    ) -> None:
        self.key = key
        self.target = target
        self._on_closed = on_closed
        self._start_from = start
        self._connect = connect
        self._save_to = save
        self._on_gap = on_gap
        self._connection: Connection | None = None
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._queue: deque[tuple[Item, int]] = deque()
        self._chars = 0
        self._stuffed = False
        self._changed = asyncio.Event()
        self._established = asyncio.Event()
        self._ended = False
        self._error: HeraldError | None = None
        self._handed: str | None = None
        self._handed_number = 0  # how many items were handed out
        self._dealt_with: str | None = None
        self._dealt_with_number = 0
        self._loop: weakref.ref[SubscriptionLoop] | None = None  # the last loop
        self._failed = False  # that loop was left by an exception
        self._saved: str | None = None
        self._saved_at = 0.0

    # ---- for the program ----

    @property
    def rp(self) -> str:
        """Return the reference that was subscribed to: an RP's id or name, or a durable subscription's id."""
        return self.target[1]

    @property
    def cursor(self) -> str | None:
        """Return the cursor to continue after the last item handed out; None as long as there is no position yet."""
        return self._handed

    def __await__(self) -> Generator[Any, None, Self]:
        """Wait until the domain has accepted it, so that nothing published from then on is missed."""
        return self._accepted().__await__()

    async def __aenter__(self) -> Self:
        return await self._accepted()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close(in_hand_done=kind is None and self.closes_in_order(callers()))

    def __aiter__(self) -> SubscriptionLoop:
        self._begin()
        loop = SubscriptionLoop(self, id(sys._getframe(1)))
        self._loop = weakref.ref(loop)
        return loop

    async def __anext__(self) -> Item:
        """Return the next event or gap.

        Raises:
            StopAsyncIteration: it was closed.
            Problem: the domain refused it, or ended it.
            Closed, ConnectionLost: the connection ended for good.
        """
        self._begin()
        self._deal_with_hand()
        self._failed = False
        while True:
            if not self._queue or time.monotonic() - self._saved_at >= SAVE_EVERY_S:
                self._save()
            while not self._queue:
                if self._ended:
                    self._on_closed(self)
                    if self._error is not None:
                        raise self._error
                    raise StopAsyncIteration
                self._changed.clear()
                await self._changed.wait()
            item = self._take()
            if not isinstance(item, Gap) or self._on_gap is None:
                return item
            self._on_gap(item)
            self._deal_with_hand()

    async def ack(self, item: Item | str) -> None:
        """Declare everything up to `item` (or a cursor) processed: its position is stored now. Raises StateError."""
        if isinstance(item, str):
            self._dealt_with, self._dealt_with_number = item, self._handed_number
            self._save()
        else:
            await item.ack()

    async def acknowledge(self, cursor: str, number: int) -> None:
        """See events.Acknowledging."""
        if number > self._dealt_with_number:
            self._dealt_with, self._dealt_with_number = cursor, number
        self._save()

    def aclose(self) -> Coroutine[Any, Any, None]:
        """End the subscription; items not handed out are dropped.

        The last item handed out counts as processed, unless the subscription is closed while an exception is being
        handled.
        """
        # Not a coroutine function: the caller's exception is visible only during the call.
        in_order = sys.exc_info()[1] is None
        return self._close(in_hand_done=in_order and self.closes_in_order(callers()))

    # ---- for the client ----

    def closes_in_order(self, frames: frozenset[int]) -> bool:
        """Return whether the last item counts as processed if the subscription is closed in `frames` (loops.py) without
        an exception.

        A loop that continues elsewhere (in another task, in a generator) is still processing its item.
        """
        loop = self._loop() if self._loop is not None else None
        return not self._failed and (loop is None or loop.frame in frames)

    def left(self, *, in_order: bool) -> None:
        """Record that a loop over the subscription was left."""
        self._failed = not in_order
        if _running_loop() is not self._event_loop:
            return  # an abandoned loop, found by the garbage collector later or in another thread
        if in_order:
            self._deal_with_hand()
        self._save()

    def hand_over(self) -> None:
        """Save the position for another subscription, which stores it from now on."""
        self._save()
        self._save_to = None

    async def close(self, *, in_hand_done: bool) -> None:
        """End the subscription. Raises StateError if its position cannot be stored."""
        await self._close(in_hand_done=in_hand_done)

    # ---- for the connection ----

    @property
    def full(self) -> bool:
        """Return whether the queue has reached its bound, and not yet fallen to half of it since."""
        return self._stuffed

    def established(self, cursor: str | None) -> None:
        """See connection.Reader."""
        if self._handed is None:
            self._handed = cursor
        self._established.set()

    def put(self, item: Item, chars: int) -> None:
        """See connection.Reader."""
        self._queue.append((item, chars))
        self._chars += chars
        self._stuffed = self._stuffed or len(self._queue) >= QUEUE_EVENTS_MAX or self._chars >= QUEUE_CHARS_MAX
        self._changed.set()

    def end(self, error: HeraldError | None) -> None:
        """See connection.Reader."""
        self._ended = True
        if isinstance(error, Problem):
            error = explained(error, self._start_from)
        self._error = self._error or error
        self._changed.set()
        self._established.set()

    def move(self, connection: Connection) -> None:
        """Deliver over another connection from now on."""
        self._connection = connection

    # ---- inside ----

    def _begin(self) -> None:
        if self._connection is None and not self._ended:
            self._event_loop = asyncio.get_running_loop()
            self._connection = self._connect(self)
            self._connection.subscribe(self, self._start_from)

    async def _accepted(self) -> Self:
        self._begin()
        await self._established.wait()
        if self._error is not None and not self._queue:
            raise self._error
        return self

    def _take(self) -> Item:
        item, chars = self._queue.popleft()
        self._chars -= chars
        self._handed = item.cursor
        self._handed_number += 1
        hand_out(item, self, self._handed_number)
        if self._stuffed and len(self._queue) <= QUEUE_EVENTS_MAX // 2 and self._chars <= QUEUE_CHARS_MAX // 2:
            self._stuffed = False
            if self._connection is not None:
                self._connection.eased(self)
        return item

    def _deal_with_hand(self) -> None:
        """Record the last item as processed, unless more was acknowledged explicitly."""
        self._dealt_with, self._dealt_with_number = self._handed, self._handed_number

    def _save(self) -> None:
        """Save the position of the last processed item, if that is not done yet."""
        if self._dealt_with is None or self._dealt_with == self._saved:
            return
        if self._save_to is not None:
            self._save_to(self._dealt_with)
        self._saved = self._dealt_with
        self._saved_at = time.monotonic()

    async def _close(self, *, in_hand_done: bool) -> None:
        if in_hand_done:
            self._deal_with_hand()
        self._queue.clear()
        self.end(None)
        if self._connection is not None:
            self._connection.unsubscribe(self)
        self._on_closed(self)
        self._save()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Attached(Subscription):
    """A durable subscription, read over a WebSocket. The domain keeps its position, which acknowledgements move.

    With `auto_ack` processed items are acknowledged automatically; else call `ack`. Its lease is renewed while
    attached, over the connection by which it is read: for a shared subscription that leads to the delivering domain,
    and a renewal without an answer is repeated later. Made by `Client.attach`.

    Arguments:
        granted_s: returns the granted lease from the domain at a URL, for renewals; None not to renew.
    """

    def __init__(
        self,
        key: int,
        subscription_id: str,
        connect: Callable[[Subscription], Connection],
        *,
        auto_ack: bool,
        granted_s: Callable[[str], Awaitable[float]] | None,
        on_gap: Callable[[Gap], None] | None = None,
        on_closed: Callable[[Subscription], None] = lambda _: None,
    ) -> None:
        save, target = self._acknowledge_soon if auto_ack else None, ("subscription", subscription_id)
        super().__init__(key, target, None, connect, save=save, on_gap=on_gap, on_closed=on_closed)
        self._confirmed: str | None = None  # the last acknowledgement that the domain has stored
        self._confirmed_number = 0
        self._granted_s = granted_s
        self._lease_s: int | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def ack(self, item: Item | str) -> None:
        """Acknowledge everything up to `item` (or a cursor); return once the domain has stored that. Raises
        HeraldError.
        """
        if self._connection is None:
            raise ClientClosed("The subscription is not attached yet. Acknowledge only items received from it.")
        cursor = item if isinstance(item, str) else item.cursor
        await self._connection.submit("ack", encode({"subscription": self.rp, "cursor": cursor}), self.target)
        self._confirmed = cursor

    async def acknowledge(self, cursor: str, number: int) -> None:
        """See events.Acknowledging."""
        if number <= self._confirmed_number:
            return
        if number > self._dealt_with_number:
            self._dealt_with, self._dealt_with_number = cursor, number
        elif self._save_to is not None and self._dealt_with is not None:
            cursor, number = self._dealt_with, self._dealt_with_number  # later ones have acknowledgements of their own
        self._saved = cursor
        await self.ack(cursor)
        self._confirmed_number = max(self._confirmed_number, number)

    def established(self, cursor: str | None) -> None:
        """See connection.Reader."""
        super().established(cursor)
        if self._saved is None:
            self._saved = self._confirmed = cursor  # the domain has this position already
        if self._granted_s is not None and self._keeping is None:
            self._keeping = asyncio.get_running_loop().create_task(self._keep(self._granted_s))

    def end(self, error: HeraldError | None) -> None:
        """See connection.Reader."""
        super().end(error)
        if self._keeping is not None:
            self._keeping.cancel()

    async def _keep(self, granted_s: Callable[[str], Awaitable[float]]) -> None:
        try:
            await keep(lambda: self._renew(granted_s))
        except HeraldError as error:
            if self._connection is not None:
                self._connection.unsubscribe(self)
            self.end(error)

    async def _renew(self, granted_s: Callable[[str], Awaitable[float]]) -> Lease:
        """Renew the lease once. Raises Problem for a refusal, ConnectionLost for what another attempt may change."""
        assert self._connection is not None  # noqa: S101 - it was established
        connection = self._connection
        try:
            async with asyncio.timeout(RENEW_S_MAX):
                members: dict[str, Any] = {"subscription": self.rp}
                if (lease_s := await self._asked_s(granted_s, connection.rollover.current)) is not None:
                    members["lease_s"] = lease_s
                return Lease.of(await connection.submit("renew", encode(members), self.target))
        except TimeoutError:
            raise ConnectionLost(f"The renewal of {self.rp} was not answered within {RENEW_S_MAX:g} s.") from None
        except Problem as problem:
            if problem.code in _DELIVERED_ELSEWHERE:
                raise ConnectionLost(
                    f"The domain that delivers {self.rp} cannot be found at the moment: {problem}"
                ) from problem
            raise

    async def _asked_s(self, granted_s: Callable[[str], Awaitable[float]], url: str) -> int | None:
        """Return the lease to request; None if the domain does not state it: then its default, and asked again for the
        next renewal.
        """
        if self._lease_s is None:
            try:
                self._lease_s = max(1, round(await granted_s(url)))
            except Problem as problem:
                if problem.passing:
                    raise
                log.info("%s does not state the length of the lease of %s: %s", url, self.rp, problem)
        return self._lease_s

    def _acknowledge_soon(self, cursor: str) -> None:
        if self._connection is None or self._connection.ended is not None:
            return
        answer = self._connection.request("ack", encode({"subscription": self.rp, "cursor": cursor}))
        answer.add_done_callback(lambda done: self._answered(cursor, done))

    def _answered(self, cursor: str, answer: asyncio.Future[Mapping[str, Any]]) -> None:
        if answer.cancelled():
            return
        error = answer.exception()
        if error is None:
            self._confirmed = cursor
        elif isinstance(error, Problem):  # errors that end the connection are raised by the reader
            log.warning("An acknowledgement of %s was refused: %s", self.rp, error)

    async def _close(self, *, in_hand_done: bool) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
        if in_hand_done:
            self._deal_with_hand()
        try:
            await self._acknowledge_last()
        finally:
            await super()._close(in_hand_done=False)

    async def _acknowledge_last(self) -> None:
        """Acknowledge the processed items, unless the domain has confirmed that already."""
        last = self._dealt_with
        if self._save_to is None or self._ended or last is None or last == self._confirmed:
            return
        self._saved = last
        try:
            async with asyncio.timeout(ACK_S_MAX):
                await self.ack(last)
        except (HeraldError, TimeoutError) as error:
            log.warning("The last acknowledgement of %s is uncertain: %s", self.rp, error)
