"""What each acknowledgement level promises, on real servers: fsync settings and a real replica."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from demo.harness.servers import free_port, wait_for
from eventing.core.errors import AckUnavailable
from eventing.log import ack_waits
from eventing.log.scripts import Appended
from eventing.store import keys
from tests.log.harness import Harness, calls_of, descriptor, make_event
from tests.store.redis_process import RedisProcess

MakeHarness = Callable[..., Awaitable[Harness]]


@pytest.fixture
def primary(new_redis: Callable[..., RedisProcess]) -> tuple[RedisProcess, int]:
    """A Redis that a replica can follow, and its port."""
    port = free_port()
    return new_redis(port=port, bind="127.0.0.1"), port


def follow(new_redis: Callable[..., RedisProcess], port: int) -> RedisProcess:
    """A replica that is in step with the primary at `port`."""
    replica = new_redis(replicaof=f"127.0.0.1 {port}")
    with replica.client() as client:
        wait_for(lambda: client.info("replication")["master_link_status"] == "up", about="the replica is in step")
    return replica


async def test_every_level_but_replicas_is_given_by_the_embedded_redis(
    new_redis: Callable[..., RedisProcess], make_harness: MakeHarness
) -> None:
    harness = await make_harness(new_redis(), None)
    for ack in ("accepted", "stored"):
        appended = await harness.appender.append_and_wait(descriptor(ack=ack), [make_event("a")])
        assert isinstance(appended, Appended)


async def test_stored_is_on_disk_when_it_is_acknowledged(
    new_redis: Callable[..., RedisProcess], make_harness: MakeHarness
) -> None:
    process = new_redis()
    harness = await make_harness(process, None)
    rp = descriptor()
    for number in range(20):
        await harness.appender.append_and_wait(rp, [make_event(str(number))])
        if number % 5 == 0:
            process.kill()
            process.start()
    assert await harness.stored(rp.id) == [str(number).encode() for number in range(20)]


async def test_stored_is_refused_where_fsync_is_once_a_second_and_says_what_to_set(
    new_redis: Callable[..., RedisProcess], make_harness: MakeHarness
) -> None:
    harness = await make_harness(new_redis(appendfsync="everysec"), None)
    with pytest.raises(AckUnavailable, match="appendfsync always"):
        await harness.appender.append_and_wait(descriptor(), [make_event("a")])
    rp = descriptor(ack="accepted")
    await harness.appender.append_and_wait(rp, [make_event("b")])
    assert await harness.stored(rp.id) == [b"b"]


async def test_stored_is_refused_without_an_append_only_file(
    new_redis: Callable[..., RedisProcess], make_harness: MakeHarness
) -> None:
    harness = await make_harness(new_redis(appendonly="no"), None)
    with pytest.raises(AckUnavailable):
        await harness.appender.append_and_wait(descriptor(), [make_event("a")])


async def test_replicated_is_on_the_replica_when_it_is_acknowledged(
    new_redis: Callable[..., RedisProcess],
    primary: tuple[RedisProcess, int],
    make_harness: MakeHarness,
) -> None:
    process, port = primary
    replica = follow(new_redis, port)
    harness = await make_harness(process, None)
    rp = descriptor(ack="replicated:1")
    with replica.client() as on_replica:
        for number in range(30):
            await harness.appender.append_and_wait(rp, [make_event(str(number))])
            assert on_replica.xlen(keys.log_keys(rp.id)[0]) == number + 1
    assert await calls_of(harness.client, "wait") >= 30


async def test_replicated_without_a_replica_says_so_and_publishing_again_is_safe(
    new_redis: Callable[..., RedisProcess],
    primary: tuple[RedisProcess, int],
    make_harness: MakeHarness,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ack_waits, "WAIT_MS", 200)
    process, port = primary
    harness = await make_harness(process, None)
    rp = descriptor(ack="replicated:1")
    with pytest.raises(AckUnavailable, match="0 of 1 replicas") as caught:
        await harness.appender.append_and_wait(rp, [make_event("a")])
    assert caught.value.retry_after_s
    await asyncio.to_thread(follow, new_redis, port)
    again = await harness.appender.append_and_wait(rp, [make_event("a"), make_event("b")])
    assert (again.offsets, again.duplicates) == ([1, 2], [True, False])


async def test_repeating_an_event_does_not_pretend_that_a_stalled_replica_has_it(
    new_redis: Callable[..., RedisProcess],
    primary: tuple[RedisProcess, int],
    make_harness: MakeHarness,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ack_waits, "WAIT_MS", 300)
    process, port = primary
    replica = await asyncio.to_thread(follow, new_redis, port)
    harness = await make_harness(process, None)
    rp = descriptor(ack="replicated:1")
    await harness.appender.append_and_wait(rp, [make_event("a")])
    replica.pause(True)
    for _ in range(3):
        with pytest.raises(AckUnavailable):
            await harness.appender.append_and_wait(rp, [make_event("b")])
        await harness.client.connection_pool.disconnect()  # the next try is on a connection that has written nothing
    replica.pause(False)
    again = await harness.appender.append_and_wait(rp, [make_event("b")])
    assert (again.offsets, again.duplicates) == ([2], [True])


async def test_a_level_that_cannot_be_given_does_not_hold_up_the_others(
    primary: tuple[RedisProcess, int],
    make_harness: MakeHarness,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ack_waits, "WAIT_MS", 500)
    harness = await make_harness(primary[0], None)
    waiting = asyncio.create_task(harness.appender.append_and_wait(descriptor(ack="replicated:1"), [make_event("a")]))
    for _ in range(5):
        await harness.appender.append_and_wait(descriptor(), [make_event("b")])
    assert not waiting.done()
    with pytest.raises(AckUnavailable):
        await waiting
