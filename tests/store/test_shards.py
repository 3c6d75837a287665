"""Separate servers, and servers that Sentinels watch, as the data plane."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio

from demo.harness.servers import free_port, wait_for
from eventing.core.config import Config
from eventing.core.data_plane import data_plane_address, slot_of_tag
from eventing.log.known_durability import KnownDurability
from eventing.log.reader import LogReader
from eventing.log.routed_notifications import notification_channels
from eventing.log.scripts import Appended
from eventing.store import keys
from eventing.store.client import commands_all
from eventing.store.connection import async_client, primaries_of, sync_client
from eventing.store.plane import SeveralSlots
from eventing.store.routed import RoutedRedis
from eventing.store.shards import ShardsExchanged, shards_verify
from eventing.store.topology import look_up
from portal.supervisor import redis_server
from portal.supervisor.diagnosis.data_plane import data_plane_findings
from portal.supervisor.errors import StartError
from portal.supervisor.parent_watchdog import death_signal
from tests.log.harness import ALWAYS, BOUNDS, NEW_RP, Harness, descriptor, make_event
from tests.store.cluster_process import Node


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    folder = tmp_path_factory.mktemp("shards")
    made = [Node(folder / f"shard{number}", cluster_enabled="no") for number in range(3)]
    yield made
    for one in made:
        one.kill()


def url_of(servers: list[Node]) -> str:
    return "redis+shards://" + ",".join(f"127.0.0.1:{one.port}" for one in servers)


@pytest.fixture
def shards(servers: list[Node]) -> Iterator[RoutedRedis]:
    client = sync_client(url_of(servers))
    assert isinstance(client, RoutedRedis)
    yield client
    client.flushall()
    client.close()


@pytest.fixture
async def harness(servers: list[Node], shards: RoutedRedis) -> AsyncIterator[Harness]:
    client = async_client(url_of(servers))
    made = Harness(client, ALWAYS)
    yield made
    await made.appender.close()
    made.reader.close()
    await client.aclose()


def test_each_rp_has_one_home_and_answers_come_back_in_order(shards: RoutedRedis, servers: list[Node]) -> None:
    rps = [next(NEW_RP) for _ in range(60)]
    pipeline = shards.pipeline(transaction=False)
    for number, rp in enumerate(rps):
        pipeline.hset(keys.meta_key(rp), "n", number)
        pipeline.hget(keys.meta_key(rp), "n")
    assert pipeline.execute()[1::2] == [b"%d" % number for number in range(60)]
    assert commands_all(shards, [("HGET", keys.meta_key(rp), "n") for rp in rps]) == [b"%d" % at for at in range(60)]
    homes = [shards.plane.home_of(rp).place.port for rp in rps]
    assert homes == [servers[(slot_of_tag(rp) * 3 + 2) // 16384].port for rp in rps], "equal parts, rounded down"
    assert {one.port: len(one.ask("KEYS", "*")) for one in servers} == {
        one.port: homes.count(one.port) for one in servers
    }
    assert len(list(shards.scan_iter(match="herald:*"))) == 60


def test_a_command_or_a_transaction_with_keys_of_two_slots_is_refused(shards: RoutedRedis) -> None:
    with pytest.raises(SeveralSlots):
        shards.delete("herald:{a}:x", "herald:{b}:x")
    pipeline = shards.pipeline(transaction=True)
    pipeline.set("herald:{a}:x", 1)
    pipeline.set("herald:{b}:x", 1)
    with pytest.raises(SeveralSlots):
        pipeline.execute()
    transaction = shards.pipeline(transaction=True)
    transaction.set("herald:{a}:x", 1)
    transaction.incr("herald:{a}:x")
    assert transaction.execute() == [True, 2]
    assert shards.delete("herald:{a}:x", "herald:{a}:y") == 1


def test_a_servers_error_is_raised_and_is_a_value_where_all_are_wanted(shards: RoutedRedis) -> None:
    shards.set("herald:{a}:x", "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        shards.hget("herald:{a}:x", "f")
    pipeline = shards.pipeline(transaction=False)
    pipeline.hget("herald:{a}:x", "f")
    pipeline.get("herald:{a}:x")
    error, value = pipeline.execute(raise_on_error=False)
    assert isinstance(error, redis.ResponseError)
    assert value == b"text"


def test_shards_in_another_order_or_number_are_refused(shards: RoutedRedis, servers: list[Node]) -> None:
    shards_verify(shards)
    shards_verify(shards)
    for others in (servers[::-1], servers[:2]):
        with sync_client(url_of(others)) as exchanged, pytest.raises(ShardsExchanged, match=r"[13] of 3"):
            shards_verify(exchanged)


async def test_events_are_published_and_notified_of_at_all_shards(harness: Harness) -> None:
    rung: list[str] = []
    channels = notification_channels(harness.client, lambda channel, _: rung.append(channel), lambda: None)
    channels.start()
    rps = [next(NEW_RP) for _ in range(30)]
    await LogReader(harness.client).create_all([(rp, BOUNDS) for rp in rps])
    names = [keys.notification_channel(rp) for rp in rps]
    await asyncio.wait_for(asyncio.gather(*map(channels.subscribe, names)), 30)
    outcomes = await asyncio.gather(
        *(harness.appender.append_and_wait(descriptor(rp), [make_event("a")]) for rp in rps)
    )
    assert all(isinstance(one, Appended) and one.offsets == [1] for one in outcomes)
    assert [await harness.stored(rp) for rp in rps] == [[b"a"]] * 30
    async with asyncio.timeout(30):
        while set(rung) != set(names):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await channels.close()


async def test_a_shard_that_is_away_delays_nobody_elses_publishes(harness: Harness, servers: list[Node]) -> None:
    client: Any = harness.client
    away = servers[0].port
    rps = [next(NEW_RP) for _ in range(30)]
    await harness.reader.create_all([(rp, BOUNDS) for rp in rps])
    there = [rp for rp in rps if client.plane.home_of(rp).place.port == away]
    others = [rp for rp in rps if rp not in there]
    assert there
    assert others
    servers[0].kill()
    try:
        waiting = [
            asyncio.ensure_future(harness.appender.append_and_wait(descriptor(rp), [make_event("a")])) for rp in there
        ]
        for rp in others:
            async with asyncio.timeout(5):
                assert (await harness.appender.append_and_wait(descriptor(rp), [make_event("a")])).offsets == [1]
        assert not any(one.done() for one in waiting)
    finally:
        servers[0].start()  # not in a thread: the server would end with it
    async with asyncio.timeout(30):
        assert all(one.offsets == [1] for one in await asyncio.gather(*waiting))


def sentinel_started(stated: Path) -> subprocess.Popen[bytes]:
    """A Sentinel with this configuration."""
    command = [redis_server.find_server().path, str(stated), "--sentinel"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=death_signal(signal.SIGKILL))


@pytest.mark.long
async def test_sentinels_name_the_primary_also_after_a_failover(tmp_path: Path) -> None:
    nodes = [Node(tmp_path / f"node{number}", cluster_enabled="no") for number in range(2)]
    nodes[1].ask("REPLICAOF", "127.0.0.1", nodes[0].port)
    wait_for(
        lambda: nodes[1].ask("INFO", "replication")["master_link_status"] == "up", about="the replica is connected"
    )
    watching = free_port()
    stated = tmp_path / "sentinel.conf"
    stated.write_text(
        f"port {watching}\nbind 127.0.0.1\ndir {tmp_path}\nsentinel monitor herald 127.0.0.1 {nodes[0].port} 1\n"
        "sentinel down-after-milliseconds herald 500\nsentinel failover-timeout herald 3000\n"
    )
    with ExitStack() as stack:
        for node in nodes:
            stack.callback(node.kill)
        sentinel = sentinel_started(stated)
        stack.callback(sentinel.wait)
        stack.callback(sentinel.terminate)
        with redis.Redis(port=watching) as asked:

            def knows_the_replica() -> bool:
                try:
                    return len(asked.sentinel_slaves("herald")) == 1
                except redis.RedisError:
                    return False

            wait_for(knows_the_replica, about="the Sentinel knows the replica")
        url = f"redis+sentinel://127.0.0.1:{watching}/herald"
        harness = Harness(async_client(url), ALWAYS)
        client: Any = harness.client
        rp = next(NEW_RP)
        await harness.reader.create(rp, BOUNDS)
        assert client.plane.home_of(rp).place.port == nodes[0].port
        assert (await harness.appender.append_and_wait(descriptor(rp), [make_event("a")])).offsets == [1]
        wait_for(lambda: nodes[1].ask("XLEN", keys.log_keys(rp)[0]) == 1, about="the event is replicated")
        known = KnownDurability(client, harness.reader.durability, lambda: 0.0)  # no answer becomes old
        assert ((await known.get()).replicas, (await known.get()).replicas) == (1, 1)
        nodes[0].kill()
        async with asyncio.timeout(30):
            while True:  # a failover may take longer than a publish is repeated for
                outcome: Any = await asyncio.gather(
                    harness.appender.append_and_wait(descriptor(rp), [make_event("b")]), return_exceptions=True
                )
                if isinstance(outcome[0], Appended):
                    break
        assert outcome[0].offsets == [2]
        assert client.plane.home_of(rp).place.port == nodes[1].port
        assert (await known.get()).replicas == 0, (
            "the new primary is asked, or a publish would wait for replicas that it has not"
        )
        await known.close()
        with sync_client(url) as again:
            assert len(primaries_of(again)) == 1
        await harness.appender.close()
        harness.reader.close()
        await client.aclose()


def lone_sentinel(folder: Path, primary: int, epoch: int, stack: ExitStack) -> int:
    """The port of a Sentinel that knows no other, and of a primary on this port since the failover of this number."""
    folder.mkdir()
    watching = free_port()
    stated = folder / "sentinel.conf"
    stated.write_text(
        f"port {watching}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor herald 127.0.0.1 {primary} 3\n"
        f"sentinel down-after-milliseconds herald 600000\nsentinel config-epoch herald {epoch}\n"
    )
    sentinel = sentinel_started(stated)
    stack.callback(sentinel.wait)
    stack.callback(sentinel.terminate)
    return watching


def is_up(port: int) -> bool:
    try:
        with redis.Redis(port=port) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def test_a_sentinel_that_missed_the_last_failover_is_not_believed(tmp_path: Path) -> None:
    """It was cut off with the old primary, finds it well, and answers as quickly as the others."""
    with ExitStack() as stack:
        ports = [lone_sentinel(tmp_path / str(at), 7000 + at, at, stack) for at in (1, 2)]
        wait_for(lambda: all(map(is_up, ports)), about="the Sentinels answer")
        for order in (ports, ports[::-1], [free_port(), *ports]):
            address = data_plane_address(
                "redis+sentinel://" + ",".join(f"127.0.0.1:{port}" for port in order) + "/herald"
            )
            assert [one.place.port for one in look_up(address).primaries] == [7002]
        alone = data_plane_address(f"redis+sentinel://127.0.0.1:{ports[0]},127.0.0.1:{free_port()}/herald")
        assert [one.place.port for one in look_up(alone).primaries] == [7001]
        unknown = data_plane_address(f"redis+sentinel://127.0.0.1:{ports[0]}/other")
        with pytest.raises(redis.ConnectionError, match="other"):
            look_up(unknown)


def test_doctor_checks_every_primary(servers: list[Node], shards: RoutedRedis) -> None:
    settings = Config(redis_url=url_of(servers), broker_url="redis://127.0.0.1:1/0")
    found = {finding.subject: finding for finding in data_plane_findings(settings)}
    assert found["redis"].grade == "ok"
    assert "shards of 3 primaries" in found["redis"].says
    assert found["ack stored"].grade == "ok"
    cluster = Config(redis_url=url_of(servers).replace("shards", "cluster"), broker_url="redis://127.0.0.1:1/0")
    (refused,) = data_plane_findings(cluster)
    assert refused.grade == "fail"
    servers[2].kill()
    try:
        found = {finding.grade: finding for finding in data_plane_findings(settings) if finding.subject == "redis"}
        assert f"127.0.0.1:{servers[2].port} of 3 primaries does not answer" in found["fail"].says
        assert "ok" in found
    finally:
        servers[2].start()


def test_a_start_refuses_what_is_no_cluster_and_shards_of_another_order(
    servers: list[Node], shards: RoutedRedis
) -> None:
    settings = Config(redis_url=url_of(servers), broker_url="redis://127.0.0.1:1/0")
    assert redis_server.external_version(settings).endswith("3 primaries")
    with pytest.raises(StartError, match="not those of before"):
        redis_server.external_version(replace(settings, redis_url=url_of(servers[::-1])))
