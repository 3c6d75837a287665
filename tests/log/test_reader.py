"""The gateway's reads: thousands of questions for a log's extent in a few round trips, each answered as of now."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest
import redis.asyncio
from redis.exceptions import RedisError

from eventing.core.events.cursors import Cursor
from eventing.core.events.history import HistoryBounds
from eventing.log.reader import LogReader, ReadableEnd
from eventing.log.scripts import NoLog
from eventing.store.connection import async_client
from tests.log.harness import NEW_RP, Log, calls_of, make_event
from tests.store.redis_process import RedisProcess


async def test_thousands_of_readers_asking_at_once_cost_a_few_round_trips(
    log: Log, aclient: redis.asyncio.Redis
) -> None:
    reader = LogReader(aclient)
    log.append(make_event("a"))
    before = await calls_of(aclient, "eval", "evalsha")
    states = await asyncio.gather(*(reader.state(log.rp) for _ in range(3000)))
    assert {state.next for state in states} == {2}
    assert await calls_of(aclient, "eval", "evalsha") - before <= 4


async def test_an_extent_is_never_older_than_the_question(log: Log, aclient: redis.asyncio.Redis) -> None:
    reader = LogReader(aclient)
    asking = []
    for number in range(1, 100):
        log.append(make_event(str(number)))
        asking.append(asyncio.create_task(reader.state(log.rp)))
        await asyncio.sleep(0)
    for number, state in enumerate(await asyncio.gather(*asking), 1):
        assert state.next >= number + 1


async def test_a_missing_log_is_told_to_those_who_asked_for_it_only(log: Log, aclient: redis.asyncio.Redis) -> None:
    reader = LogReader(aclient)
    answers = await asyncio.gather(
        reader.state(log.rp), reader.state(next(NEW_RP)), reader.state(log.rp), return_exceptions=True
    )
    assert isinstance(answers[1], NoLog)
    assert answers[0] == answers[2]


async def test_scripts_that_the_server_forgot_are_sent_again(log: Log, aclient: redis.asyncio.Redis) -> None:
    reader = LogReader(aclient)
    log.append(make_event("a"))
    await aclient.script_flush()
    assert (await reader.state(log.rp)).next == 2
    await aclient.script_flush()
    assert (await reader.read(log.rp, 1)).events == [b"a"]
    await aclient.script_flush()
    assert await reader.oldest_granted(log.rp, HistoryBounds(1, 1)) == 1


async def test_a_redis_that_is_away_is_an_error_at_once_and_reads_go_on_when_it_is_back(
    new_redis: Callable[..., RedisProcess],
) -> None:
    process = new_redis()
    client = async_client(process.url)
    reader = LogReader(client)
    rp = next(NEW_RP)
    await reader.create(rp, HistoryBounds(10, 1000))
    process.kill()
    asked = await asyncio.wait_for(asyncio.gather(*(reader.state(rp) for _ in range(5)), return_exceptions=True), 5)
    assert all(isinstance(answer, RedisError | OSError) for answer in asked)
    await asyncio.to_thread(process.start)
    assert (await reader.state(rp)).next == 1
    await client.aclose()


async def test_heads_of_many_logs_at_once(log: Log, aclient: redis.asyncio.Redis) -> None:
    reader = LogReader(aclient)
    epoch = log.append(make_event("a")).epoch
    assert await reader.heads([log.rp, next(NEW_RP)]) == [ReadableEnd(epoch, 2, False), None]


async def test_the_greatest_of_many_cursors_is_acknowledged(log: Log, aclient: redis.asyncio.Redis) -> None:
    reader = LogReader(aclient)
    epoch = log.append(*(make_event(name) for name in "abc")).epoch
    assert await reader.subscription_cursor(log.rp, "sub_a") is None
    second = Cursor(epoch, 2)
    assert await reader.acknowledge_all(log.rp, "sub_a", [Cursor(epoch, 1), second]) == [second, second]
    assert await reader.acknowledge_all(log.rp, "sub_a", [Cursor(epoch, 1)]) == [second]
    assert await reader.subscription_cursor(log.rp, "sub_a") == second
    with pytest.raises(NoLog):
        await reader.acknowledge_all(next(NEW_RP), "sub_a", [Cursor(epoch, 1)])


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
async def test_cursors_that_the_log_has_not_are_refused_each_for_itself(
    log: Log, aclient: redis.asyncio.Redis, order: tuple[int, ...]
) -> None:
    epoch = log.append(*(make_event(name) for name in "abc")).epoch
    cursors = [Cursor(epoch, 2), Cursor("zzzzzzzz", 1), Cursor(epoch, 4), Cursor("yyyyyyyy", 9)]
    expected = [Cursor(epoch, 2), epoch, "only delivered events", epoch]
    found = await LogReader(aclient).acknowledge_all(log.rp, "sub_a", [cursors[at] for at in order])
    for at, outcome in zip(order, found, strict=True):
        wanted = expected[at]
        if isinstance(outcome, Cursor):
            assert outcome == wanted
        else:
            assert str(wanted) in outcome.detail
    assert await LogReader(aclient).acknowledge_all(log.rp, "sub_b", [Cursor("zzzzzzzz", 1)]) != []
    assert await LogReader(aclient).subscription_cursor(log.rp, "sub_b") is None
