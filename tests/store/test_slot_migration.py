"""A slot of a cluster is moved key by key while its rendezvous points are used: commands follow their keys, publishes wait for the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from demo.harness.servers import eventually
from eventing.core.data_plane import slot_of_tag
from eventing.log.scripts import Appended
from eventing.store import keys
from eventing.store.connection import async_client, sync_client
from tests.log.harness import NEW_RP, Harness, descriptor, make_event
from tests.store.cluster_process import ClusterProcesses, Node

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    made = ClusterProcesses(tmp_path_factory.mktemp("migration"))
    yield made
    made.kill()


class SlotMove:
    """The move of an RP's slot to another primary, as `--cluster reshard` does it."""

    def __init__(self, cluster: ClusterProcesses, rp: str) -> None:
        self._primaries, self._slot = cluster.primaries, slot_of_tag(rp)
        slots: Any = cluster.nodes[0].ask("CLUSTER", "SLOTS")
        port = next(row[2][1] for row in slots if row[0] <= self._slot <= row[1])
        self._source = next(node for node in self._primaries if node.port == port)
        self._target = next(node for node in self._primaries if node.port != port)

    def _is_owner(self, node: Node) -> str:
        return str(node.ask("CLUSTER", "MYID").decode())

    def begin(self) -> None:
        self._target.ask("CLUSTER", "SETSLOT", self._slot, "IMPORTING", self._is_owner(self._source))
        self._source.ask("CLUSTER", "SETSLOT", self._slot, "MIGRATING", self._is_owner(self._target))

    def move(self, keys_max: int) -> int:
        """Move some keys; return how many there were."""
        found: Any = self._source.ask("CLUSTER", "GETKEYSINSLOT", self._slot, keys_max)
        for key in found:
            self._source.ask("MIGRATE", "127.0.0.1", self._target.port, key, 0, 10_000)
        return len(found)

    def end(self) -> None:
        while self.move(10):
            pass
        for node in (self._target, *self._primaries):
            node.ask("CLUSTER", "SETSLOT", self._slot, "NODE", self._is_owner(self._target))


async def test_commands_about_a_key_that_was_moved_follow_it(cluster: ClusterProcesses) -> None:
    rp = next(NEW_RP)
    here, there = keys.meta_key(rp), keys.cursors_key(rp)
    with sync_client(cluster.url) as client:
        asynchronous = async_client(cluster.url)
        client.hset(here, "a", 1)
        move = SlotMove(cluster, rp)
        move.begin()
        assert move.move(10) == 1
        assert client.hget(here, "a") == b"1"
        client.hset(there, "b", 2)  # a key that the slot does not have yet is made where it goes to
        assert await asynchronous.hget(there, "b") == b"2"
        with client.pipeline(transaction=True) as pipeline:
            pipeline.hincrby(here, "a", 1)
            pipeline.hget(here, "a")
            assert pipeline.execute() == [2, b"2"]
        async with asynchronous.pipeline(transaction=True) as pipe:
            pipe.hincrby(here, "a", 1)
            pipe.hget(here, "a")
            assert await pipe.execute() == [3, b"3"]
        move.end()
        assert client.hmget(here, "a") == [b"3"]
        await asynchronous.aclose()


async def test_publishes_wait_until_the_slot_is_moved_and_none_is_refused(cluster: ClusterProcesses) -> None:
    client = async_client(cluster.url)
    harness, rp = Harness(client, fenced=True), next(NEW_RP)
    at, over, outcomes = descriptor(rp), asyncio.Event(), []

    async def publish(publisher: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            outcomes.append(await harness.appender.append_and_wait(at, [make_event(f"{publisher}-{number}", 200)]))

    async def has_published(count: int) -> bool:
        return len(outcomes) >= count

    publishers = [asyncio.create_task(publish(number)) for number in range(4)]
    await eventually(lambda: has_published(50), about="events are published")
    move = SlotMove(cluster, rp)
    await asyncio.to_thread(move.begin)
    await asyncio.to_thread(move.move, 1)
    await asyncio.sleep(0.3)  # some keys are at one server, some at the other
    await asyncio.to_thread(move.end)
    before = len(outcomes)
    await eventually(lambda: has_published(before + 50), about="events are published again")
    over.set()
    await asyncio.gather(*publishers)
    assert all(isinstance(outcome, Appended) for outcome in outcomes)
    offsets = sorted(offset for outcome in outcomes for offset in outcome.offsets)
    assert offsets == list(range(1, len(outcomes) + 1))
    assert len(await harness.stored(rp)) == len(outcomes)
    await harness.appender.close()
    await client.aclose()
