"""log/lua/fence.lua: a server with another history continues a log in a new epoch before it numbers anything.

The server is one that tests share; a log is made one of another server by the id in its head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.asyncio

from demo.harness.servers import wait_for
from eventing.core.errors import InvalidCursor
from eventing.core.events.cursors import Cursor
from eventing.core.events.lineage import Lineage, Rewound, root_epoch
from eventing.core.events.positions import OffsetGap
from eventing.gateway.delivery.start_positions import start_of
from eventing.log import scripts
from eventing.log.reader import LogReader
from eventing.log.scripts import parse_notification
from eventing.store import keys
from eventing.store.client import form_for
from tests.log.harness import Log, make_event
from tests.store.homes import calls, home_of
from tests.store.listening import listening

OTHER = "0123456789abcdef" + "0" * 24  # replication id of another server


@pytest.fixture
def fenced(new_log: Callable[..., Log]) -> Log:
    """A log with five events that this server wrote."""
    log = new_log(fenced=True)
    log.create()
    log.append(*[make_event(str(number)) for number in range(1, 6)])
    return log


@pytest.fixture
def reader(aclient: redis.asyncio.Redis) -> LogReader:
    return LogReader(aclient, fenced=True)


def entries(log: Log) -> list[bytes]:
    """The ids of a log's entries."""
    found: Any = log.client.xrange(keys.log_keys(log.rp)[0])
    return [entry for entry, _ in found]


def replaced(log: Log, *, lost: int = 0) -> None:
    """Make the log that of a server which another has replaced, without its last events."""
    meta, stream = keys.meta_key(log.rp), keys.log_keys(log.rp)[0]
    log.client.hset(meta, "g", OTHER)
    if lost:
        log.client.hincrby(meta, "n", -lost)
        held: Any = log.client.xrange(stream)
        log.client.delete(stream)  # entries that are deleted singly leave a mark in the stream since Redis 7
        for entry, fields in held[:-lost]:
            log.client.xadd(stream, fields, id=entry)


def test_the_same_server_goes_on_in_the_same_epoch(fenced: Log, redis_client: redis.Redis) -> None:
    epoch = fenced.read().state.epoch
    assert fenced.append(make_event("6")) == (epoch, [6], [False])
    held = redis_client.hget(keys.meta_key(fenced.rp), "g")
    home = home_of(redis_client, keys.meta_key(fenced.rp))
    assert held == home.info("replication")["master_replid"].encode()


def test_a_log_of_before_the_fence_is_not_continued(new_log: Callable[..., Log], redis_client: redis.Redis) -> None:
    log = new_log()
    epoch = log.create().epoch
    log.append(make_event("1"))
    assert not redis_client.hexists(keys.meta_key(log.rp), "g"), "the embedded server is not asked who it is"
    log.fenced = True
    assert log.append(make_event("2")).epoch == epoch
    assert redis_client.hexists(keys.meta_key(log.rp), "g")


def test_another_server_continues_the_log_and_offsets_go_on(fenced: Log) -> None:
    was = fenced.read().state.epoch
    replaced(fenced)
    appended = fenced.append(make_event("3"), make_event("6"))
    assert appended.epoch != was == root_epoch(appended.epoch)
    assert (appended.offsets, appended.duplicates) == ([3, 6], [True, False]), "a repetition is recognised as before"
    run = fenced.read()
    assert (run.state.epoch, run.state.next, len(run.events)) == (appended.epoch, 7, 6)
    assert fenced.append(make_event("7")).epoch == appended.epoch, "once"
    assert fenced.lineage() == Lineage(appended.epoch, {was: 5})


def test_the_notification_has_the_new_epoch(fenced: Log, redis_client: redis.Redis) -> None:
    replaced(fenced, lost=2)
    with listening(redis_client, keys.notification_channel(fenced.rp)) as channel:
        appended = fenced.append(make_event("x"))
        message = wait_for(lambda: channel.get_message(timeout=1), about="the notification")
    found = parse_notification(message["data"])
    assert (found.epoch, found.first, found.events) == (appended.epoch, 4, [b"x"])


def test_a_durable_subscription_goes_on_and_what_was_withdrawn_is_acknowledged_up_to_the_end(fenced: Log) -> None:
    was = fenced.read().state.epoch
    assert fenced.acknowledge(Cursor(was, 2)) == Cursor(was, 2)
    fenced.acknowledge(Cursor(was, 5), "sub_b")
    replaced(fenced, lost=2)
    # nothing was written yet: an acknowledgement beyond the end finds out that the server is another one
    held = fenced.acknowledge(Cursor(was, 5))
    assert (root_epoch(held.epoch), held.offset) == (was, 3)
    assert held.epoch != was
    fenced.append(*[make_event(f"x{number}") for number in range(5)])
    assert fenced.acknowledge(Cursor(was, 1)) == Cursor(held.epoch, 3), "it never goes back"
    assert fenced.acknowledge(Cursor(held.epoch, 2), "sub_b") == Cursor(held.epoch, 3), "5 was withdrawn, 3 was not"
    with pytest.raises(InvalidCursor, match="epoch is now"):
        fenced.acknowledge(Cursor("zzzzzzzz", 2))


async def test_a_reader_goes_on_where_it_is_or_is_told_what_was_withdrawn(fenced: Log, reader: LogReader) -> None:
    was = fenced.read().state.epoch
    replaced(fenced, lost=2)
    fenced.append(*[make_event(f"x{number}") for number in range(5)])
    state = await reader.state(fenced.rp)
    for offset in range(4):
        start = await start_of(reader, fenced.rp, Cursor(was, offset), state)
        assert (start.epoch, start.next, start.recovered, start.gap) == (state.epoch, offset + 1, True, None)
    start = await start_of(reader, fenced.rp, Cursor(was, 5), state)
    assert (start.next, start.recovered) == (4, False)
    assert start.gap == OffsetGap(state.epoch, 4, 3, rewound=Rewound(was, 4, 5))
    start = await start_of(reader, fenced.rp, Cursor(was, 5), state, oldest_granted=6)
    assert (start.next, start.gap) == (6, OffsetGap(state.epoch, 4, 5, rewound=Rewound(was, 4, 5)))


async def test_a_reader_finds_out_before_anything_is_written(fenced: Log, reader: LogReader) -> None:
    was = fenced.read().state.epoch
    replaced(fenced, lost=2)
    assert (await reader.state(fenced.rp)).epoch == was
    start = await start_of(reader, fenced.rp, Cursor(was, 4), await reader.state(fenced.rp))
    assert start.gap == OffsetGap(start.epoch, 4, 3, rewound=Rewound(was, 4, 4))
    assert start.epoch != was


async def test_the_log_learns_an_epoch_that_its_server_does_not_know(fenced: Log, reader: LogReader) -> None:
    was = fenced.read().state.epoch
    await reader.lineage_learn(fenced.rp, "anotherone", "undone", 3)
    assert fenced.lineage().ends == {}, "the log has another epoch by now"
    await reader.lineage_learn(fenced.rp, was, "undone", 3)
    await reader.lineage_learn(fenced.rp, was, "undone", 2)
    assert fenced.lineage() == Lineage(was, {"undone": 3})
    start = await start_of(reader, fenced.rp, Cursor("undone", 4), await reader.state(fenced.rp))
    assert start.gap == OffsetGap(was, 4, 3, rewound=Rewound("undone", 4, 4))


@pytest.mark.parametrize(
    ("ours", "theirs", "shared"),
    [
        ({"a": 5}, {"a": 3}, 3),
        ({"a": 3}, {"a": 5}, 3),
        ({"a": 3, "b": 9}, {"a": 5, "c": 8}, 3),
        ({"a": 3, "b": 9}, {"a": 3, "b": 7}, 7),
        ({"a": 3}, {"b": 3}, None),
        ({}, {"a": 3}, None),
    ],
)
def test_two_histories_are_the_same_up_to_the_end_of_their_last_common_epoch(
    ours: dict[str, int], theirs: dict[str, int], shared: int | None
) -> None:
    assert Lineage("z", ours).shared_with(theirs) == shared


def test_only_so_many_epochs_are_remembered(fenced: Log) -> None:
    epochs = [fenced.read().state.epoch]
    for number in range(70):
        fenced.client.hset(keys.meta_key(fenced.rp), mapping={"g": f"{number:040}", "p": f"{epochs[0]}{number:a>8}"})
        fenced.lineage()
    assert len(fenced.lineage().ends) == 64


def test_a_new_entry_is_never_of_before_the_newest_one(fenced: Log, redis_client: redis.Redis) -> None:
    """The server's clock is 30 s behind that of the server before."""
    fenced.create(max_age_s=60)
    meta = keys.meta_key(fenced.rp)
    ahead = int(redis_client.hget(meta, "u") or 0) + 30_000
    redis_client.hset(meta, "u", ahead)
    fenced.append(make_event("6"), make_event("7"))
    assert entries(fenced)[5:] == [f"{offset}-{ahead}".encode() for offset in (6, 7)]
    assert fenced.trim().first == 1
    redis_client.hdel(meta, "u")
    fenced.append(make_event("8"))
    assert entries(fenced)[7] == f"8-{ahead}".encode(), "a log of before the field is looked at"


def test_the_age_bound_trims_nothing_early_after_a_server_whose_clock_is_ahead(
    fenced: Log, redis_client: redis.Redis
) -> None:
    fenced.create(max_age_s=20)
    redis_client.hset(keys.meta_key(fenced.rp), "u", int(redis_client.time()[0] * 1000) + 30_000)
    fenced.append(make_event("6"))
    for number in range(7, 20):
        fenced.append(make_event(str(number)))
    assert fenced.read().state.first == 1


def test_the_script_names_no_server_where_it_need_not(fenced: Log, redis_client: redis.Redis) -> None:
    home = home_of(redis_client, keys.meta_key(fenced.rp))
    before = calls(home, "info")
    redis_client.eval(
        form_for(redis_client, scripts.APPEND).text,
        *scripts.append_args(fenced.rp, [make_event("6")], 600, 1000),
    )
    assert calls(home, "info") == before + 1, "the test's own question only"
