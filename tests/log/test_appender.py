"""The appender: many appends in few round trips, order kept, and exactly one outcome each, whatever happens to Redis."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
import redis

from eventing.core.errors import ApplicationError, NotFound, Unavailable
from eventing.core.events.cloudevents import Event
from eventing.log import appender as appender_module
from eventing.log import scripts
from eventing.log.scripts import Appended
from eventing.store import keys
from tests.log.harness import Harness, Outcomes, calls_of, descriptor, make_event
from tests.store.redis_process import RedisProcess


async def test_an_append_is_answered_with_its_place(harness: Harness) -> None:
    rp = descriptor()
    first = await harness.appender.append_and_wait(rp, [make_event("a"), make_event("b")])
    second = await harness.appender.append_and_wait(rp, [make_event("c"), make_event("a")])
    assert (first.offsets, first.duplicates) == ([1, 2], [False, False])
    assert (second.offsets, second.duplicates) == ([3, 1], [False, True])
    assert await harness.stored(rp.id) == [b"a", b"b", b"c"]


async def test_concurrent_appends_share_round_trips(harness: Harness) -> None:
    rp = descriptor()
    await harness.appender.append_and_wait(rp, [make_event("first")])
    before = await calls_of(harness.client, "eval", "evalsha")
    appended = await asyncio.gather(
        *(harness.appender.append_and_wait(rp, [make_event(f"e{number}")]) for number in range(2000))
    )
    assert [one.offsets for one in appended] == [[number + 2] for number in range(2000)]
    assert await calls_of(harness.client, "eval", "evalsha") - before <= 10


async def test_the_order_of_each_rp_is_kept_among_many(harness: Harness) -> None:
    rps = [descriptor() for _ in range(20)]
    outcomes = Outcomes()
    expected: dict[str, list[bytes]] = {rp.id: [] for rp in rps}
    rng = random.Random(1)
    for number in range(3000):
        rp = rng.choice(rps)
        events = [make_event(f"{number}-{part}", rng.choice([0, 0, 3000])) for part in range(rng.choice([1, 1, 5]))]
        expected[rp.id] += [event.body for event in events]
        harness.appender.append(rp, events, outcomes.expect())
        if number % 100 == 0:
            await asyncio.sleep(0)
    assert all(isinstance(outcome, Appended) for outcome in await outcomes.settled())
    for rp in rps:
        assert await harness.stored(rp.id) == expected[rp.id]


async def test_a_batch_larger_than_a_script_call_is_stored_whole_and_in_order(harness: Harness) -> None:
    rp = descriptor()
    events = [make_event(f"e{number}", 4000) for number in range(1200)]
    appended = await harness.appender.append_and_wait(rp, events)
    assert appended.offsets == list(range(1, 1201))
    assert await harness.stored(rp.id) == [event.body for event in events]


async def test_a_missing_log_is_made_and_a_missing_rp_refuses_only_its_own(harness: Harness) -> None:
    here, gone = descriptor(), descriptor()
    harness.gone.add(gone.id)
    outcomes = await asyncio.gather(
        harness.appender.append_and_wait(here, [make_event("a")]),
        harness.appender.append_and_wait(gone, [make_event("b")]),
        harness.appender.append_and_wait(here, [make_event("c")]),
        return_exceptions=True,
    )
    assert harness.remade == [here.id]
    assert isinstance(outcomes[1], NotFound)
    assert [outcomes[0].offsets, outcomes[2].offsets] == [[1], [2]]  # type: ignore[union-attr]


async def test_a_log_lost_under_way_goes_on_as_another_epoch(harness: Harness) -> None:
    rp = descriptor()
    before = await harness.appender.append_and_wait(rp, [make_event("a")])
    await harness.client.delete(*keys.log_keys(rp.id))
    after = await harness.appender.append_and_wait(rp, [make_event("b")])
    assert after.epoch != before.epoch
    assert after.offsets == [1]


async def test_scripts_that_the_server_has_forgotten_are_sent_again(harness: Harness) -> None:
    rp = descriptor()
    for number in range(3):
        await harness.client.script_flush()
        assert (await harness.appender.append_and_wait(rp, [make_event(str(number))])).offsets == [number + 1]


async def test_publishers_are_told_to_come_back_when_too_much_waits(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appender_module, "WAITING_BYTES_MAX", 10_000)
    rp = descriptor()
    outcomes = Outcomes()
    for number in range(50):
        harness.appender.append(rp, [make_event(f"e{number}", 1000)], outcomes.expect())
    settled = await outcomes.settled()
    refused = [outcome for outcome in settled if isinstance(outcome, ApplicationError)]
    assert refused
    assert all(isinstance(outcome, Unavailable) and outcome.retry_after_s for outcome in refused)
    assert len(await harness.stored(rp.id)) == len(settled) - len(refused)


async def test_a_publisher_that_left_does_not_disturb_the_others(harness: Harness) -> None:
    rp = descriptor()
    leaving = asyncio.create_task(harness.appender.append_and_wait(rp, [make_event("a")]))
    staying = asyncio.create_task(harness.appender.append_and_wait(rp, [make_event("b")]))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).offsets == [2]
    assert await harness.stored(rp.id) == [b"a", b"b"]


async def test_close_waits_for_what_is_in_flight(harness: Harness) -> None:
    rp = descriptor()
    outcomes = Outcomes()
    for number in range(5000):
        harness.appender.append(rp, [make_event(str(number))], outcomes.expect())
    await harness.appender.close()
    assert len(await outcomes.settled(10)) == 5000


# Faults


async def test_each_append_is_acknowledged_exactly_once_through_kills_of_redis(
    new_redis: Callable[..., RedisProcess],
    make_harness: Callable[..., Awaitable[Harness]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(appender_module, "RETRY_S", 60.0)  # how long Redis takes to come back is the machine's affair
    process = new_redis()
    harness = await make_harness(process)
    rps = [descriptor() for _ in range(3)]
    outcomes = Outcomes()
    sent: list[tuple[str, Sequence[Event]]] = []
    publishing = True

    async def publish() -> None:
        while publishing:
            for _ in range(5):
                rp = rps[len(sent) % 3]
                events = [make_event(f"e{len(sent)}-{part}", 200) for part in range(1 + len(sent) % 3)]
                sent.append((rp.id, events))
                harness.appender.append(rp, events, outcomes.expect())
            await asyncio.sleep(0.002)

    publisher = asyncio.create_task(publish())
    rng = random.Random(7)
    for _ in range(3):
        await asyncio.sleep(rng.uniform(0.1, 0.3))  # the kill comes at any moment
        await asyncio.to_thread(process.kill)
        await asyncio.sleep(rng.uniform(0.0, 0.2))  # and so long Redis is away
        await asyncio.to_thread(process.start)
    await asyncio.sleep(0.2)  # some more is published after the last one
    publishing = False
    await publisher

    settled = await outcomes.settled(60)
    refused = [outcome for outcome in settled if not isinstance(outcome, Appended)]
    assert not refused, refused[:3]
    for rp in rps:
        expected = [event for sent_to, events in sent if sent_to == rp.id for event in events]
        assert await harness.stored(rp.id) == [event.body for event in expected], "lost, doubled or out of order"
        offsets = [
            offset
            for (sent_to, _), outcome in zip(sent, settled, strict=True)
            if sent_to == rp.id and isinstance(outcome, Appended)
            for offset in outcome.offsets
        ]
        assert offsets == list(range(1, len(expected) + 1))


async def test_a_redis_that_stays_away_is_said_within_the_publishers_patience(
    new_redis: Callable[..., RedisProcess],
    make_harness: Callable[..., Awaitable[Harness]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(appender_module, "RETRY_S", 0.5)
    process = new_redis()
    harness = await make_harness(process)
    rp = descriptor()
    await harness.appender.append_and_wait(rp, [make_event("a")])
    process.kill()
    outcomes: list[Any] = await asyncio.wait_for(
        asyncio.gather(
            *(harness.appender.append_and_wait(rp, [make_event(f"b{number}")]) for number in range(5)),
            return_exceptions=True,
        ),
        60,
    )
    assert all(isinstance(outcome, Unavailable) and outcome.retry_after_s for outcome in outcomes)
    process.start()
    again = await harness.appender.append_and_wait(rp, [make_event("b0")])  # the same id: safe whatever happened before
    assert again.offsets == [2]


async def test_a_write_that_redis_refuses_is_told_and_does_not_stop_the_lane(
    new_redis: Callable[..., RedisProcess], make_harness: Callable[..., Awaitable[Harness]]
) -> None:
    process = new_redis()
    harness = await make_harness(process)
    rp = descriptor()
    await harness.appender.append_and_wait(rp, [make_event("a")])
    await harness.client.config_set("maxmemory", 1)
    with pytest.raises(Unavailable):
        await harness.appender.append_and_wait(rp, [make_event("b")])
    await harness.client.config_set("maxmemory", 0)
    assert (await harness.appender.append_and_wait(rp, [make_event("c")])).offsets == [2]


@pytest.mark.long
async def test_the_order_is_kept_though_the_script_is_loaded_by_others_meanwhile(
    harness: Harness, redis_client: redis.Redis
) -> None:
    """After a restart Redis has no scripts, and whoever comes first loads them: between two calls of a pipeline, too."""
    rp, offset = descriptor(), 1
    await harness.appender.append_and_wait(rp, [make_event("first")])
    for turn in range(60):
        await harness.client.script_flush()
        appends = [
            asyncio.ensure_future(
                harness.appender.append_and_wait(rp, [make_event(f"{turn}-{number}-{at}", 900) for at in range(20)])
            )
            for number in range(100)
        ]
        await asyncio.to_thread(_load_after, redis_client, turn / 4000)
        for one in await asyncio.gather(*appends):
            assert one.offsets == list(range(offset + 1, offset + 21))
            offset += 20


def _load_after(client: redis.Redis, pause_s: float) -> None:
    time.sleep(pause_s)  # into the middle of the pipeline, some time
    client.script_load(scripts.APPEND.text)
