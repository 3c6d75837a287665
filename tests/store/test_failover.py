"""Publishing through failovers of a cluster, and what it costs: a gateway's appender, reader and notification channels on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from demo.harness.servers import eventually
from eventing.core.events.cursors import Cursor
from eventing.log.ack_waits import Level
from eventing.log.reader import LogReader
from eventing.log.routed_notifications import RoutedNotificationChannels, notification_channels
from eventing.log.scripts import Appended
from eventing.store import connection, keys
from eventing.store.connection import async_client
from eventing.store.routed_async import RoutedAsyncRedis
from tests.log.harness import ALWAYS, BOUNDS, NEW_RP, Harness, descriptor, make_event
from tests.store.cluster_process import ClusterProcesses, Node

pytestmark = pytest.mark.long

STALL_S = 5.0
"""By which a machine that is busy with other tests may be late; the figures are printed, and no publish is refused in any case."""
RATE = 1000
RPS = 60


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcesses]:
    """Three primaries, each with a replica."""
    made = ClusterProcesses(tmp_path, replicas=1)
    yield made
    made.kill()


@pytest.fixture
def one_primary(tmp_path: Path) -> Iterator[ClusterProcesses]:
    """One primary with two replicas."""
    made = ClusterProcesses(tmp_path, primaries=1, replicas=2)
    yield made
    made.kill()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""

    async def holds() -> bool:
        return condition()

    await eventually(holds, 90)


class Publishing:
    """Appends at a steady rate, with what became of them."""

    def __init__(self, harness: Harness, rps: list[str]) -> None:
        self.refused: list[Any] = []
        self.acked: dict[str, int] = dict.fromkeys(rps, 0)
        self.longest_s = 0.0
        self.offsets: dict[str, list[int]] = {rp: [] for rp in rps}
        self._harness, self._rps, self._open = harness, rps, 0
        self._last: dict[str, float] = {}

    async def run(self, for_s: float) -> None:
        """Append for so long, then wait for the outcomes."""
        began, sent = monotonic(), 0
        while (now := monotonic()) < began + for_s:
            while sent < (now - began) * RATE:
                self._append(self._rps[sent % len(self._rps)], sent)
                sent += 1
            await asyncio.sleep(0.002)
        await until(lambda: not self._open)

    def _append(self, rp: str, number: int) -> None:
        began = monotonic()
        self._open += 1

        def done(outcome: Any) -> None:
            self._open -= 1
            self.longest_s = max(self.longest_s, monotonic() - began)
            if isinstance(outcome, Appended):
                self.acked[rp] += 1
                self.offsets[rp] += outcome.offsets
            else:
                self.refused.append(outcome)

        self._harness.appender.append(descriptor(rp), [make_event(f"{rp}-{number}", 200)], done)


@pytest.fixture
async def harness(cluster: ClusterProcesses) -> AsyncIterator[Harness]:
    client = async_client(cluster.url)
    made = Harness(client, ALWAYS)
    yield made
    await made.appender.close()
    await client.aclose()


async def logs_made(harness: Harness) -> list[str]:
    rps = [next(NEW_RP) for _ in range(RPS)]
    await LogReader(harness.client).create_all([(rp, BOUNDS) for rp in rps])
    return rps


async def test_a_planned_failover_refuses_nothing_and_pauses_for_less_than_half_a_second(
    cluster: ClusterProcesses, harness: Harness
) -> None:
    rps = await logs_made(harness)
    publishing = Publishing(harness, rps)
    running = asyncio.ensure_future(publishing.run(4))
    for replica in list(cluster.replica_of):
        await asyncio.sleep(0.7)
        await asyncio.to_thread(cluster.failover, replica)
    await running
    assert publishing.refused == []
    assert sum(publishing.acked.values()) == len({(rp, at) for rp, some in publishing.offsets.items() for at in some})
    assert all(sorted(some) == list(range(1, len(some) + 1)) for some in publishing.offsets.values())
    print(f"longest append {publishing.longest_s * 1000:.0f} ms")
    assert publishing.longest_s < 0.5 + STALL_S


async def test_after_a_crash_the_replica_takes_the_writes_within_five_seconds(
    cluster: ClusterProcesses, harness: Harness
) -> None:
    rps = await logs_made(harness)
    publishing = Publishing(harness, rps)
    running = asyncio.ensure_future(publishing.run(3))
    await asyncio.sleep(0.5)
    await asyncio.to_thread(cluster.primaries[1].kill)
    await running
    assert publishing.refused == []
    print(f"longest append {publishing.longest_s * 1000:.0f} ms")
    assert publishing.longest_s < 5 + STALL_S


@pytest.mark.soak
async def test_a_primary_that_hangs_is_left_when_its_replica_is_promoted(
    cluster: ClusterProcesses, harness: Harness
) -> None:
    rps = await logs_made(harness)
    publishing = Publishing(harness, rps)
    running = asyncio.ensure_future(publishing.run(6))
    await asyncio.sleep(1)
    cluster.primaries[1].pause(True)
    await running
    assert publishing.refused == []
    print(f"longest append {publishing.longest_s * 1000:.0f} ms")
    assert publishing.longest_s < 8


async def test_notification_channels_are_back_after_a_crash(cluster: ClusterProcesses, harness: Harness) -> None:
    rung: dict[str, int] = {}
    restored: list[float] = []
    channels = notification_channels(
        harness.client,
        lambda channel, _: rung.update({channel: rung.get(channel, 0) + 1}),
        lambda: restored.append(monotonic()),
    )
    channels.start()
    names = [keys.notification_channel(next(NEW_RP)) for _ in range(2000)]
    try:
        await asyncio.wait_for(asyncio.gather(*map(channels.subscribe, names)), 30)
        restored.clear()
        await asyncio.to_thread(cluster.primaries[0].kill)

        await until(lambda: bool(restored))  # so the logs are read for what was published meanwhile
        for name in names[:100]:
            await harness.client.publish(name, b"x")
        await until(lambda: rung.keys() >= set(names[:100]))
    finally:
        await channels.close()


async def test_channels_are_subscribed_to_when_the_cluster_came_after_the_gateway(
    one_primary: ClusterProcesses,
) -> None:
    """No server states the topology at first. Without a look that may fail, no channel would ever be subscribed to."""
    one_primary.kill()
    client = async_client(one_primary.url)
    assert isinstance(client, RoutedAsyncRedis)
    channels = notification_channels(client, lambda *_: None, lambda: None)
    channels.start()
    try:
        subscribed = channels.subscribe(keys.notification_channel(next(NEW_RP)))
        assert isinstance(channels, RoutedNotificationChannels)
        await until(lambda: not channels._lost.is_set())  # it has been looked in vain
        await asyncio.sleep(0.1)
        await asyncio.to_thread(one_primary.start)
        await asyncio.wait_for(subscribed, 60)
    finally:
        await channels.close()
        await client.aclose()


@pytest.mark.soak
async def test_a_slot_that_moves_to_another_shard_keeps_its_events_in_order(
    cluster: ClusterProcesses, harness: Harness
) -> None:
    """Valkey 9 moves slots at once; while they move, and after, nothing is refused, doubled or out of order."""
    rps = await logs_made(harness)
    publishing = Publishing(harness, rps)
    running = asyncio.ensure_future(publishing.run(4))
    await asyncio.sleep(1)
    source, target = cluster.primaries[0], cluster.primaries[1]
    await asyncio.to_thread(moved, source, target, 0, 2000)
    await running
    assert publishing.refused == []
    assert all(some == list(range(1, len(some) + 1)) for some in publishing.offsets.values())


def moved(source: Node, target: Node, first: int, last: int) -> None:
    source.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", first, last, "NODE", target.ask("CLUSTER", "MYID"))


async def test_reads_leave_a_primary_that_hangs_when_its_replica_is_promoted(
    cluster: ClusterProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds its connections: without a look at the topology the answer would be waited for until its bound."""
    monkeypatch.setattr(connection, "ANSWER_TIMEOUT_S", 250)
    client = async_client(cluster.url)
    assert isinstance(client, RoutedAsyncRedis)
    client._retry_s = 100  # how long the promotion takes is the machine's affair
    names = [str(number) for number in range(20)]
    try:
        for name in names:
            await client.set(name, name)
        pipeline = client.pipeline(transaction=False)
        for name in names:
            pipeline.get(name)
        cluster.primaries[1].pause(True)
        async with asyncio.timeout(120):
            await asyncio.gather(*(client.get(name) for name in names), pipeline.execute())
    finally:
        cluster.primaries[1].pause(False)
        await client.aclose()


async def test_replicas_of_a_cluster_that_connect_since_they_were_counted_are_waited_for(
    one_primary: ClusterProcesses,
) -> None:
    client = async_client(one_primary.url)
    counted_one = replace(ALWAYS, replicas=1, replicas_known=1)
    harness = Harness(client, counted_one, fenced=True)
    try:
        at = descriptor(ack="replicated:all")
        stored = await harness.appender.append_and_wait(at, [make_event("1"), make_event("2")])
        assert (stored.offsets, stored.duplicates) == ([1, 2], [False, False])
        acked = Cursor(stored.epoch, 2)
        assert await harness.reader.acknowledge_all(at.id, "sub", [acked], Level(at.ack, counted_one)) == [acked]
    finally:
        await harness.appender.close()
        harness.reader.close()
        await client.aclose()
