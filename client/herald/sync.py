"""The client for programs without asyncio: the same client, run on a thread of its own.

    from herald.sync import Client

    with Client(token=token) as client:
        client.publish("/localhost/weather/", {"celsius": 21.5})
        for item in client.subscribe("/localhost/weather/", from_="earliest"):
            ...

Every method works as its async namesake (see herald.Client) and raises the same errors. Safe to use from several threads.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import weakref
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import herald.client
from herald.blocking_hooks import BlockingHooks, RunCoroutine
from herald.blocking_worker import work as work
from herald.client import CONFIRM_S_MAX, FIRST_PATIENCE_S
from herald.defaults import URL_DEFAULT
from herald.durable import DurableSubscription, Pulled
from herald.events import Confirmation, Gap, Item, hand_out
from herald.leases import Lease
from herald.loops import callers, left_in_order
from herald.rendezvous_points import RendezvousPoint
from herald.rollover import Move
from herald.state import CursorStore
from herald.statistics import Disconnected, Reconnected, Statistics
from herald.subscription import Subscription as AsyncSubscription

T = TypeVar("T")


class LoopThread:
    """An event loop on a daemon thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="herald-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the client's thread and wait for it; an interruption here (Ctrl-C) cancels it there."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start `work` on the client's thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call(self, function: Callable[[], None]) -> None:
        """Call `function` on the client's thread, before anything that is run there later. No effect once it was
        stopped.
        """
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        """End the loop and its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


class BlockingClient:
    """See herald.Client; use it as `with Client(url, token=token) as client`. Callbacks are called on the client's thread."""

    def __init__(
        self,
        url: str | Sequence[str] = URL_DEFAULT,
        *,
        token: str | Mapping[str, str] | Callable[..., str] | None = None,
        on_move: Callable[[Move], None] | None = None,
        on_disconnect: Callable[[Disconnected], None] | None = None,
        on_reconnect: Callable[[Reconnected], None] | None = None,
        source: str | None = None,
        first_patience_s: float = FIRST_PATIENCE_S,
        patience_s: float | None = None,
    ) -> None:
        self._loop = LoopThread()
        self._closed = False
        self._subscriptions: set[BlockingSubscription] = set()  # those that are open
        try:
            patience = {"first_patience_s": first_patience_s, "patience_s": patience_s}
            told: dict[str, Any] = {"on_move": on_move, "on_disconnect": on_disconnect, "on_reconnect": on_reconnect}
            self._client = self._loop.run(_made(url, token=token, source=source, **told, **patience))
        except BaseException:
            self._loop.stop()
            raise
        self.rps = BlockingRendezvousPoints(self._loop.run, self._client)
        self.subscriptions = BlockingDurableSubscriptions(self._loop.run, self._client)
        self.peers = BlockingPeers(self._loop.run, self._client)
        self.hooks = BlockingHooks(self._loop.run, self._client.hooks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(in_order=kind is None)

    def close(self) -> None:
        """Close all subscriptions and connections and end the thread; see herald.Client.aclose."""
        self._close(in_order=sys.exc_info()[1] is None)

    def _close(self, *, in_order: bool) -> None:
        if self._closed:
            return
        self._closed = True
        for subscription in list(self._subscriptions):
            subscription._before_close()
        try:
            self._loop.run(self._client._aclose(in_order=in_order, frames=frozenset()))
        finally:
            self._loop.stop()

    def publish(
        self, rp: str, data: Any = None, *, timeout_s: float = CONFIRM_S_MAX, **attributes: Any
    ) -> Confirmation:
        """Publish one event and wait for its confirmation."""
        return self._loop.run(self._client.publish(rp, data, timeout_s=timeout_s, **attributes))

    def publish_many(self, rp: str, events: Iterable[Any], *, timeout_s: float = CONFIRM_S_MAX) -> list[Confirmation]:
        """Publish events in one frame, all or none, and wait for their confirmations."""
        return self._loop.run(self._client.publish_many(rp, events, timeout_s=timeout_s))

    @property
    def stats(self) -> Statistics:
        """Return counters of connections, events and publishes, as they are now."""
        return self._client.stats

    def publish_http(self, rp: str, *events: Any) -> list[Confirmation]:
        """Publish by one HTTP request."""
        return self._loop.run(self._client.publish_http(rp, *events))

    def subscribe(
        self,
        rp: str,
        *,
        from_: str | datetime = "now",
        state: CursorStore | str | os.PathLike[str] | None = None,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> BlockingSubscription:
        """Return a subscription, accepted by the domain; iterate over it. `on_gap` is called on the client's thread."""
        return self._subscription(self._client.subscribe(rp, from_=from_, state=state, on_gap=on_gap))

    def attach(
        self,
        subscription_id: str,
        *,
        auto_ack: bool = True,
        renew: bool = True,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> BlockingSubscription:
        """Read a durable subscription; iterate over the result. `on_gap` is called on the client's thread."""
        attached = self._client.attach(subscription_id, auto_ack=auto_ack, renew=renew, on_gap=on_gap)
        return self._subscription(attached)

    def _subscription(self, subscription: AsyncSubscription) -> BlockingSubscription:
        made = BlockingSubscription(self._loop, subscription, self._subscriptions.discard)
        self._subscriptions.add(made)
        return made

    def about(self) -> dict[str, Any]:
        """Return the domain's statement about itself."""
        return self._loop.run(self._client.about())


class ReadLoop:
    """One `for` over a subscription. Only the loop references it, so that it is dropped when the loop is left
    (loops.py).
    """

    __slots__ = ("__weakref__", "_subscription", "frame")

    def __init__(self, subscription: BlockingSubscription, frame: int) -> None:
        self._subscription = subscription
        self.frame = frame  # identity of the frame that it is in

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        return next(self._subscription)

    def __del__(self) -> None:
        frame = sys._getframe(1)  # only to read which instruction drops this object
        self._subscription._left(in_order=id(frame) == self.frame and left_in_order(frame))


class BlockingSubscription:
    """See herald.Subscription; a plain iterator and context manager."""

    def __init__(
        self, loop: LoopThread, subscription: AsyncSubscription, on_closed: Callable[[BlockingSubscription], None]
    ) -> None:
        self._loop = loop
        self._on_closed = on_closed
        self._subscription = subscription
        self._waiting: Future[Item | None] | None = (
            None  # pending wait for the next item after an interruption (Ctrl-C)
        )
        self._reading: weakref.ref[ReadLoop] | None = None  # the last loop
        self._loop.run(_accepted(subscription))

    @property
    def cursor(self) -> str | None:
        """Return the cursor to continue after the last item handed out."""
        return self._subscription.cursor

    def __iter__(self) -> Iterator[Item]:
        loop = ReadLoop(self, id(sys._getframe(1)))
        self._reading = weakref.ref(loop)
        return loop

    def __next__(self) -> Item:
        # An interrupted wait continues here: an item that arrived meanwhile was never handed out, and must not be
        # skipped.
        if self._waiting is None:
            self._waiting = self._loop.start(_next(self._subscription))
        try:
            item = self._waiting.result()
        except BaseException as error:
            if self._waiting.done() and self._waiting.exception() is error:
                self._waiting = None
                self._on_closed(self)
            raise
        self._waiting = None
        if item is None:
            self._on_closed(self)
            raise StopIteration
        hand_out(item, self, item._handed_out[1])
        return item

    def ack(self, item: Item | str) -> None:
        """Declare everything up to `item` processed: it is stored, or acknowledged to the domain. See
        herald.Subscription.
        """
        if isinstance(item, str):
            self._loop.run(_acknowledged(self._subscription, item))
        else:
            item.ack()

    def acknowledge(self, cursor: str, number: int) -> Awaitable[None]:
        """See events.Acknowledging: done on return; nothing has to be awaited."""
        self._loop.run(self._subscription.acknowledge(cursor, number))
        return _Done()

    def close(self) -> None:
        """End the subscription; the last item handed out counts as processed, unless an exception is being handled."""
        self._close(in_order=sys.exc_info()[1] is None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(in_order=kind is None)

    def _left(self, *, in_order: bool) -> None:
        self._loop.call(lambda: self._subscription.left(in_order=in_order))

    def _before_close(self) -> None:
        """Keep the last item unprocessed if a loop continues in another thread, or the last wait was interrupted."""
        loop = self._reading() if self._reading is not None else None
        if (loop is not None and loop.frame not in callers()) or self._waiting is not None:
            self._left(in_order=False)

    def _close(self, *, in_order: bool) -> None:
        self._before_close()
        self._on_closed(self)
        self._loop.run(_closed(self._subscription, in_order))


class _Done:
    """An awaitable that is done."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class BlockingRendezvousPoints:
    """See herald.rendezvous_points."""

    def __init__(self, run: RunCoroutine, client: herald.client.Client) -> None:
        self._run = run
        self._rps = client.rps

    def create(self, **stated: Any) -> RendezvousPoint:
        """Create an RP."""
        return self._run(self._rps.create(**stated))

    def get(self, reference: str) -> RendezvousPoint:
        """Describe an RP."""
        return self._run(self._rps.get(reference))

    def list(self, **filters: str) -> Iterator[RendezvousPoint]:
        """Yield all RPs, page by page."""
        pages = self._rps.list(**filters)
        while (rp := self._run(_next(pages))) is not None:
            yield rp

    def update(self, reference: str, changes: Mapping[str, Any], *, if_match: str | None = None) -> RendezvousPoint:
        """Change an RP."""
        return self._run(self._rps.update(reference, changes, if_match=if_match))

    def renew(self, reference: str, lease_s: int | None = None) -> Lease:
        """Renew its lease."""
        return self._run(self._rps.renew(reference, lease_s))

    def delete(self, reference: str, *, reason: str = "") -> None:
        """Delete an RP."""
        self._run(self._rps.delete(reference, reason=reason))


class BlockingDurableSubscriptions:
    """See herald.durable."""

    def __init__(self, run: RunCoroutine, client: herald.client.Client) -> None:
        self._run = run
        self._subscriptions = client.subscriptions

    def create(self, rp: str, **stated: Any) -> DurableSubscription:
        """Create one at an RP."""
        return self._run(self._subscriptions.create(rp, **stated))

    def get(self, subscription_id: str) -> DurableSubscription:
        """Describe one."""
        return self._run(self._subscriptions.get(subscription_id))

    def renew(self, subscription_id: str, lease_s: int | None = None) -> Lease:
        """Renew its lease."""
        return self._run(self._subscriptions.renew(subscription_id, lease_s))

    def delete(self, subscription_id: str) -> None:
        """End one."""
        self._run(self._subscriptions.delete(subscription_id))

    def pull(self, subscription_id: str, *, limit: int = 100, wait_s: float = 0.0, after: str | None = None) -> Pulled:
        """Read on."""
        pulling = self._subscriptions.pull(subscription_id, limit=limit, wait_s=wait_s, after=after)
        return self._run(pulling)

    def ack(self, subscription_id: str, cursor: str) -> None:
        """Acknowledge everything up to `cursor`."""
        self._run(self._subscriptions.ack(subscription_id, cursor))


class BlockingPeers:
    """See herald.peers."""

    def __init__(self, run: RunCoroutine, client: herald.client.Client) -> None:
        self._run = run
        self._peers = client.peers

    def look(self, url: str | None = None, *, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return a domain's own statement."""
        return self._run(self._peers.look(url, document=document))

    def add(self, url: str | None = None, *, fingerprint: str, **stated: Any) -> dict[str, Any]:
        """Add a domain."""
        return self._run(self._peers.add(url, fingerprint=fingerprint, **stated))

    def all(self) -> list[dict[str, Any]]:
        """Return all peers."""
        return self._run(self._peers.all())

    def get(self, name: str) -> dict[str, Any]:
        """Describe one."""
        return self._run(self._peers.get(name))

    def approve(self, name: str, *, fingerprint: str, **trust: Any) -> dict[str, Any]:
        """Approve a domain that asks."""
        return self._run(self._peers.approve(name, fingerprint=fingerprint, **trust))

    def change(self, name: str, **trust: Any) -> dict[str, Any]:
        """Change what a peer may do."""
        return self._run(self._peers.change(name, **trust))

    def suspend(self, name: str, *, note: str | None = None) -> dict[str, Any]:
        """Suspend a peer."""
        return self._run(self._peers.suspend(name, note=note))

    def resume(self, name: str, *, note: str | None = None) -> dict[str, Any]:
        """Resume a peer."""
        return self._run(self._peers.resume(name, note=note))

    def remove(self, name: str) -> None:
        """Remove a peer."""
        self._run(self._peers.remove(name))


async def _made(url: str | Sequence[str], **options: Any) -> herald.client.Client:
    return herald.client.Client(url, **options)


async def _accepted(subscription: AsyncSubscription) -> None:
    await subscription


async def _closed(subscription: AsyncSubscription, in_order: bool) -> None:
    await subscription.close(in_hand_done=in_order and subscription.closes_in_order(frozenset()))


async def _acknowledged(subscription: AsyncSubscription, cursor: str) -> None:
    await subscription.ack(cursor)


async def _next(iterator: AsyncIterator[T]) -> T | None:
    return await anext(iterator, None)


Client = BlockingClient
Subscription = BlockingSubscription
RendezvousPoints = BlockingRendezvousPoints
DurableSubscriptions = BlockingDurableSubscriptions
Peers = BlockingPeers
