"""What acknowledgement levels keep when a replica takes the primary's place, and that no number is given twice; on real servers.

Named by docs/what-survives-what.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from demo.harness.servers import wait_for
from eventing.core.errors import AckUnavailable, ApplicationError
from eventing.core.events.ack_level import Ack
from eventing.core.events.cursors import Cursor
from eventing.core.events.lineage import Rewound, root_epoch
from eventing.core.events.positions import OffsetGap
from eventing.gateway.delivery.start_positions import start_of
from eventing.log import ack_waits
from eventing.log.ack_waits import Level
from eventing.log.scripts import Appended, parse_notification
from eventing.store import keys
from eventing.store.connection import async_client
from tests.log.harness import Harness, Log, descriptor, make_event
from tests.store.failover import Servers
from tests.store.redis_process import RedisProcess

pytestmark = pytest.mark.processes
MakeServers = Callable[..., Awaitable[tuple[Servers, Harness]]]


@pytest.fixture
async def make_servers(
    new_redis: Callable[..., RedisProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[MakeServers]:
    """Makes servers and an appender on the primary: `make_servers(replicas=2)`."""
    monkeypatch.setattr(ack_waits, "WAIT_MS", 1500)
    made: list[Harness] = []

    async def make(replicas: int = 1, known: int = 0) -> tuple[Servers, Harness]:
        servers = await asyncio.to_thread(Servers, new_redis, tmp_path, replicas)
        made.append(Harness(async_client(servers.url), None, fenced=True, replicas_known=known))
        return servers, made[-1]

    yield make
    for one in made:
        await one.appender.close()
        one.reader.close()
        await one.client.aclose()


async def publish(harness: Harness, rp: str, level: str, *names: str) -> list[Any]:
    """The outcomes of publishing these events, each by itself, at once: Appended, or the error."""
    at = descriptor(rp, level)
    calls = [harness.appender.append_and_wait(at, [make_event(name)]) for name in names]
    return await asyncio.gather(*calls, return_exceptions=True)


def bodies(*names: str) -> list[bytes]:
    return [name.encode() for name in names]


async def test_what_was_stored_and_lost_is_withdrawn_and_its_numbers_are_of_another_epoch(
    make_servers: MakeServers,
) -> None:
    """Scenario A: the link is cut, three events are acknowledged as stored, the primary is lost with its disk."""
    servers, harness = await make_servers()
    rp = descriptor().id
    kept = await publish(harness, rp, "replicated:1", *"12345")
    (replica,) = servers.replicas
    await asyncio.to_thread(servers.cut, replica)
    lost = await publish(harness, rp, "stored", *"678")
    assert [outcome.offsets for outcome in [*kept, *lost]] == [[number] for number in range(1, 9)]
    was = lost[0].epoch
    servers.primary.kill()
    await asyncio.to_thread(servers.promote, replica)
    more = await publish(harness, rp, "stored", "a", "8", "b")
    assert {outcome.epoch for outcome in more} != {was}
    assert [(outcome.offsets, outcome.duplicates) for outcome in more] == [
        ([6], [False]),
        ([7], [False]),
        ([8], [False]),
    ]
    assert await harness.stored(rp) == bodies(*"12345", "a", "8", "b")
    state = await harness.reader.state(rp)
    told = await start_of(harness.reader, rp, Cursor(was, 8), state)
    assert (told.next, told.gap) == (6, OffsetGap(state.epoch, 6, 5, rewound=Rewound(was, 6, 8)))
    goes_on = await start_of(harness.reader, rp, Cursor(was, 5), state)
    assert (goes_on.next, goes_on.recovered, goes_on.gap) == (6, True, None)


async def test_a_primary_that_wakes_after_its_replica_was_promoted_acknowledges_and_shows_nothing(
    make_servers: MakeServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scenario B: the primary stalls with 100 publishes in its sockets, and executes them when it is none any more."""
    servers, harness = await make_servers()
    rp, names = descriptor().id, [str(number) for number in range(100)]
    (first,) = await publish(harness, rp, "replicated:1", "first")
    harness._durability = await harness.durability()  # as a gateway, which asks once in ten seconds
    stalled, (replica,) = servers.primary, servers.replicas
    with stalled.client() as spy, spy.pubsub() as bell:
        bell.subscribe(keys.notification_channel(rp))
        bell.get_message(timeout=10)
        stalled.pause(True)
        waiting = asyncio.create_task(publish(harness, rp, "replicated:1", *names))
        await asyncio.sleep(0.2)  # they are in its sockets
        await asyncio.to_thread(servers.promote, replica)
        stalled.pause(False)
        await asyncio.to_thread(executed, stalled, rp)
        assert not [
            outcome for outcome in (waiting.result() if waiting.done() else []) if isinstance(outcome, Appended)
        ]
        seen = [parse_notification(found["data"]) for found in iter(lambda: bell.get_message(timeout=0.2), None)]
        assert seen == [], "no reader is notified"
        read = await asyncio.to_thread(read_at, stalled, rp)
        assert read == bodies("first"), "no reader is given any"
        await asyncio.to_thread(servers.follow, stalled)
    outcomes = await waiting
    for _ in range(5):
        again = [name for name, one in zip(names, outcomes, strict=True) if not isinstance(one, Appended)]
        if not again:
            break
        assert all(isinstance(one, ApplicationError) for one in outcomes if not isinstance(one, Appended)), outcomes
        more = iter(await publish(harness, rp, "replicated:1", *again))
        outcomes = [one if isinstance(one, Appended) else next(more) for one in outcomes]
    assert all(isinstance(one, Appended) for one in outcomes)
    assert {one.epoch for one in outcomes} != {first.epoch}
    await asyncio.to_thread(servers.in_step)  # the client may still be connected to the former primary, a replica now
    assert sorted(await harness.stored(rp)) == sorted(bodies("first", *names)), "each is stored once"
    assert sorted(one.offsets[0] for one in outcomes) == list(range(2, 102))


def executed(server: RedisProcess, rp: str) -> None:
    """Wait until a server has executed appends behind the first one."""
    with server.client() as client:
        wait_for(lambda: int(client.hget(keys.meta_key(rp), "n") or 0) > 2, about="it executes what waited")


def read_at(server: RedisProcess, rp: str) -> list[bytes]:
    """The events that a server gives to readers."""
    with server.client() as client:
        return Log(client, rp).read().events


async def test_events_wait_for_replicas_before_readers_get_them(make_servers: MakeServers) -> None:
    servers, harness = await make_servers()
    rp = descriptor().id
    await publish(harness, rp, "replicated:1", "1")
    (replica,) = servers.replicas
    replica.pause(True)
    (outcome,) = await publish(harness, rp, "replicated:1", "2")
    assert isinstance(outcome, AckUnavailable)
    await publish(harness, rp, "stored", "3")
    state = await harness.reader.state(rp)
    assert (state.next, await harness.stored(rp)) == (2, bodies("1")), "what follows a withheld event waits with it"
    replica.pause(False)
    (again,) = await publish(harness, rp, "replicated:1", "2")
    assert isinstance(again, Appended)
    assert (again.offsets, again.duplicates) == ([2], [True])
    assert await harness.stored(rp) == bodies("1", "2", "3")
    await publish(harness, rp, "stored", "4")
    assert await harness.stored(rp) == bodies("1", "2", "3", "4"), "nothing is withheld any more"


async def test_what_nobody_publishes_again_is_revealed_when_replicas_have_it(make_servers: MakeServers) -> None:
    """The gateway that waited was killed, or gave up."""
    servers, harness = await make_servers()
    rp = descriptor().id
    await publish(harness, rp, "replicated:1", "1")
    (replica,) = servers.replicas
    replica.pause(True)
    await publish(harness, rp, "replicated:1", "2")
    (head,) = await harness.reader.heads([rp])
    assert head is not None
    assert (head.next, head.withheld) == (2, True)
    await harness.reader.reveal_replicated(rp)
    assert await harness.stored(rp) == bodies("1"), "not before"
    replica.pause(False)
    for _ in range(20):
        await harness.reader.reveal_replicated(rp)
        if await harness.stored(rp) == bodies("1", "2"):
            break
    assert await harness.stored(rp) == bodies("1", "2")


@pytest.mark.parametrize(("level", "kept"), [("replicated:all", True), ("replicated:1", False)])
async def test_the_loss_of_the_primary_and_one_replica_is_survived_at_replicated_all(
    make_servers: MakeServers, level: str, kept: bool
) -> None:
    """Scenario C: the primary and the replica that acknowledged are lost together; the other one is promoted."""
    servers, harness = await make_servers(replicas=2, known=2)
    rp = descriptor().id
    await publish(harness, rp, "replicated:all", "1")
    dies, stays = servers.replicas
    if not kept:
        await asyncio.to_thread(servers.cut, stays)  # an acknowledgement by one replica does not need it
    outcomes = await publish(harness, rp, level, "2", "3")
    assert all(isinstance(one, Appended) for one in outcomes)
    servers.primary.kill()
    dies.kill()
    await asyncio.to_thread(servers.promote, stays)
    await harness.reader.reveal_replicated(rp)  # as gateways do: that they were revealed may not have come to this one
    assert await harness.stored(rp) == (bodies("1", "2", "3") if kept else bodies("1"))


async def test_replicated_all_is_refused_while_a_known_replica_is_away(make_servers: MakeServers) -> None:
    servers, harness = await make_servers(replicas=2, known=2)
    rp = descriptor().id
    await publish(harness, rp, "replicated:all", "1")
    await asyncio.to_thread(servers.cut, servers.replicas[1])
    (outcome,) = await publish(harness, rp, "replicated:all", "2")
    assert isinstance(outcome, AckUnavailable)
    assert "1 of 2" in str(outcome)
    await asyncio.to_thread(servers.follow, servers.replicas[1])
    (again,) = await publish(harness, rp, "replicated:all", "2")
    assert isinstance(again, Appended)


async def test_replicated_all_waits_for_a_replica_that_came_since_they_were_counted(make_servers: MakeServers) -> None:
    servers, harness = await make_servers(replicas=1)
    rp = descriptor().id
    found = await harness.durability()
    harness._durability = found  # as a gateway, which asks once in ten seconds
    new = await asyncio.to_thread(servers.add_replica)
    servers.replicas[0].pause(True)
    (outcome,) = await publish(harness, rp, "replicated:all", "1")
    assert isinstance(outcome, AckUnavailable), "the new one alone is not all"
    servers.replicas[0].pause(False)
    (again,) = await publish(harness, rp, "replicated:all", "1")
    assert isinstance(again, Appended)
    new.kill()


async def test_replicated_all_is_refused_without_replicas(make_servers: MakeServers) -> None:
    _, harness = await make_servers(replicas=0)
    (outcome,) = await publish(harness, descriptor().id, "replicated:all", "1")
    assert isinstance(outcome, AckUnavailable)
    assert "0 of 1" in str(outcome)


async def test_a_restart_withdraws_nothing_and_readers_go_on(make_servers: MakeServers) -> None:
    """The same server, without replicas, killed and started again on its own file: its replication id is another one."""
    servers, harness = await make_servers(replicas=0)
    rp = descriptor().id
    epochs = []
    for number in range(3):
        (outcome,) = await publish(harness, rp, "stored", str(number))
        assert isinstance(outcome, Appended)
        epochs.append(outcome.epoch)
        servers.primary.kill()
        await asyncio.to_thread(servers.primary.start)
    assert {root_epoch(epoch) for epoch in epochs} == {epochs[0]}, "the feed is the same"
    state = await harness.reader.state(rp)
    for offset, epoch in enumerate(epochs, 1):
        start = await start_of(harness.reader, rp, Cursor(epoch, offset), state)
        assert (start.next, start.recovered, start.gap) == (offset + 1, True, None)


async def test_a_stalled_primary_acknowledges_at_stored_what_is_lost(make_servers: MakeServers) -> None:
    """What the level does not promise: the primary that wakes has acknowledged, and becomes a replica of the promoted one."""
    servers, harness = await make_servers()
    rp = descriptor().id
    await publish(harness, rp, "stored", "1")
    harness._durability = await harness.durability()
    stalled, (replica,) = servers.primary, servers.replicas
    await asyncio.to_thread(servers.in_step)
    stalled.pause(True)
    waiting = asyncio.create_task(publish(harness, rp, "stored", "2"))
    await asyncio.sleep(0.2)  # it is in its socket
    await asyncio.to_thread(servers.promote, replica)
    stalled.pause(False)
    (outcome,) = await waiting
    assert isinstance(outcome, Appended)
    await asyncio.to_thread(servers.follow, stalled)
    assert await asyncio.to_thread(read_at, servers.primary, rp) == bodies("1"), "it is lost"


@pytest.mark.parametrize("level", ["replicated:all", "replicated:1"])
async def test_an_acknowledgement_of_a_subscription_is_answered_when_replicas_hold_it(
    make_servers: MakeServers, level: str
) -> None:
    servers, harness = await make_servers()
    rp = descriptor().id
    (outcome,) = await publish(harness, rp, level, "1")
    acked = Cursor(outcome.epoch, 1)
    at_level = Level(Ack.parse(level), await harness.durability())
    (replica,) = servers.replicas
    replica.pause(True)
    with pytest.raises(AckUnavailable):
        await harness.reader.acknowledge_all(rp, "sub", [acked], at_level)
    replica.pause(False)
    assert await harness.reader.acknowledge_all(rp, "sub", [acked], at_level) == [acked]
    servers.primary.kill()
    await asyncio.to_thread(servers.promote, replica)
    held = await harness.reader.subscription_cursor(rp, "sub")
    assert held == acked, "the promoted server has it"


async def test_a_subscription_acknowledges_at_replicated_all_only_while_every_known_replica_is_there(
    make_servers: MakeServers,
) -> None:
    servers, harness = await make_servers(replicas=1, known=2)
    rp = descriptor().id
    (outcome,) = await publish(harness, rp, "stored", "1")
    at_level = Level(Ack.parse("replicated:all"), await harness.durability())
    with pytest.raises(AckUnavailable, match="1 of 2"):
        await harness.reader.acknowledge_all(rp, "sub", [Cursor(outcome.epoch, 1)], at_level)
    found = await harness.durability()
    new = await asyncio.to_thread(servers.add_replica)
    stale = Level(Ack.parse("replicated:all"), replace(found, replicas_known=1))  # as it was counted before
    servers.replicas[0].pause(True)
    with pytest.raises(AckUnavailable, match="1 of 2"):
        await harness.reader.acknowledge_all(rp, "sub", [Cursor(outcome.epoch, 1)], stale)
    servers.replicas[0].pause(False)
    assert await harness.reader.acknowledge_all(rp, "sub", [Cursor(outcome.epoch, 1)], stale)
    new.kill()
