"""The notification channel on a real Redis: it rings, it says when it listens, and it comes back whatever happens to its connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import redis.asyncio

from demo.harness.servers import eventually
from eventing.log import notifications as bell_module
from eventing.log.routed_notifications import notification_channels
from eventing.store.connection import async_client, primaries_of_async
from eventing.store.routed_async import RoutedAsyncRedis
from tests.log.harness import NEW_RP, calls_of
from tests.store.redis_process import RedisProcess


class Listener:
    """A bell and what it has brought."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self.client = client
        self.rung: list[tuple[str, bytes]] = []
        self.restored = 0
        self._changed = asyncio.Event()
        self.bell = notification_channels(client, self._on_notification, self._on_restored)
        self.bell.start()

    def _on_notification(self, channel: str, message: bytes) -> None:
        self.rung.append((channel, message))
        self._changed.set()

    def _on_restored(self) -> None:
        self.restored += 1
        self._changed.set()

    async def until(self, condition: Callable[[], bool], within_s: float = 10.0) -> None:
        async with asyncio.timeout(within_s):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def rings(self, channel: str, message: bytes) -> None:
        """A message published now arrives."""
        await self.client.publish(channel, message)
        await self.until(lambda: (channel, message) in self.rung)


@pytest.fixture
async def listener(aclient: redis.asyncio.Redis) -> AsyncIterator[Listener]:
    made = Listener(aclient)
    yield made
    await made.bell.close()


async def test_a_confirmed_channel_rings_at_once(listener: Listener) -> None:
    channel = next(NEW_RP)
    await listener.bell.subscribe(channel)
    for number in range(20):
        await listener.rings(channel, b"%d" % number)
    assert listener.rung == [(channel, b"%d" % number) for number in range(20)]


async def test_thousands_of_channels_are_confirmed_in_a_few_commands(listener: Listener) -> None:
    channels = [next(NEW_RP) for _ in range(1700)]
    before = await calls_of(listener.client, "subscribe")
    await asyncio.wait_for(asyncio.gather(*map(listener.bell.subscribe, channels)), 30)
    if not isinstance(listener.client, RoutedAsyncRedis):  # a sharded channel takes a command of its own
        assert before < await calls_of(listener.client, "subscribe") <= before + 6
    for channel in (channels[0], channels[-1]):
        await listener.rings(channel, b"x")


async def test_subscribing_again_is_confirmed_at_once(listener: Listener) -> None:
    channel = next(NEW_RP)
    await listener.bell.subscribe(channel)
    again = listener.bell.subscribe(channel)
    assert again.done()


async def test_an_unsubscribed_channel_rings_no_more_and_can_be_taken_again(listener: Listener) -> None:
    channel, other = next(NEW_RP), next(NEW_RP)
    await asyncio.gather(listener.bell.subscribe(channel), listener.bell.subscribe(other))
    listener.bell.unsubscribe(channel)

    async def nobody_listens() -> bool:
        return int(await listener.client.publish(channel, b"lost")) == 0

    await eventually(nobody_listens)
    await listener.rings(other, b"x")
    await listener.bell.subscribe(channel)
    await listener.rings(channel, b"back")
    assert [message for rung, message in listener.rung if rung == channel][-1] == b"back"


async def test_after_its_connection_is_killed_every_channel_rings_from_the_moment_it_says_so(
    listener: Listener,
) -> None:
    channels = [next(NEW_RP) for _ in range(1200)]
    await asyncio.gather(*map(listener.bell.subscribe, channels))
    for turn in range(1, 6):
        restored, servers = listener.restored, await primaries_of_async(listener.client)
        for server in servers:
            await server.client_kill_filter(_type="pubsub")
        awaited = restored + len(servers)
        await listener.until(lambda awaited=awaited: listener.restored >= awaited)  # type: ignore[misc]
        for channel in (channels[0], channels[600], channels[-1]):
            assert await listener.client.publish(channel, b"%d" % turn) == 1, "it was not listening yet"
        await listener.until(lambda turn=turn: (channels[-1], b"%d" % turn) in listener.rung)  # type: ignore[misc]


async def test_a_channel_asked_for_while_redis_is_away_is_confirmed_when_it_is_back(
    new_redis: Callable[..., RedisProcess],
) -> None:
    process = new_redis()
    listener = Listener(async_client(process.url))
    first, second = next(NEW_RP), next(NEW_RP)
    await listener.bell.subscribe(first)
    restored = listener.restored
    process.kill()
    asked = listener.bell.subscribe(second)
    await asyncio.sleep(0.2)  # nothing confirms it meanwhile
    assert not asked.done()
    await asyncio.to_thread(process.start)
    await asyncio.wait_for(asked, 30)
    await listener.until(lambda: listener.restored > restored)
    await listener.rings(first, b"1")
    await listener.rings(second, b"2")
    await listener.bell.close()
    await listener.client.aclose()


async def test_a_connection_that_is_dead_without_being_closed_is_made_anew(
    new_redis: Callable[..., RedisProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bell_module, "PING_S", 1.0)
    process = new_redis()
    listener = Listener(async_client(process.url))
    channel = next(NEW_RP)
    await listener.bell.subscribe(channel)
    await asyncio.sleep(2.5)  # two pings, to which nothing happens
    before = listener.restored
    assert before <= 2, "a connection that is alive is left alone, unless this machine stood still for a second"
    process.pause(True)
    await asyncio.sleep(3.0)  # the fault itself: a ping is sent, and has no answer a second later
    process.pause(False)
    await listener.until(lambda: listener.restored > before)
    await listener.rings(channel, b"x")
    await listener.bell.close()
    await listener.client.aclose()
