"""One script call that appends at several RPs gives what calls about one RP, one after the other, give; a fault of one RP stays its
own, and a crash leaves all of a call or nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.exceptions import ResponseError

from demo.harness.servers import wait_for
from eventing.core.errors import NotFound, Unavailable
from eventing.core.events.cloudevents import Event
from eventing.log import scripts
from eventing.log.appender import _calls, _Run
from eventing.log.scripts import Appended
from eventing.store import keys
from tests.log.harness import NEW_RP, Harness, Log, calls_of, descriptor, make_event
from tests.store.listening import listening
from tests.store.redis_process import RedisProcess

one_server = pytest.mark.skipif(
    os.environ.get("HERALD_TEST_PLANE") == "cluster", reason="In a cluster, a call is about one RP."
)
RPS = 4
EVENTS = st.lists(st.builds(make_event, st.integers(0, 12).map(str), st.integers(0, 40)), min_size=1, max_size=6)
CALLS = st.lists(
    st.tuples(st.dictionaries(st.integers(0, RPS), EVENTS, min_size=1), st.integers(0, 1)), min_size=1, max_size=6
)
"""Calls, each of runs by the number of their RP, of which RPS has no log, and the replicas to wait for."""


def append_runs(client: redis.Redis, runs: Sequence[tuple[Log, Sequence[Event]]], replicas: int = 0) -> list[Any]:
    """Append in one call; errors are values."""
    args = scripts.append_runs_args([(log.rp, events) for log, events in runs], 600, 1000, replicas)
    script = scripts.append_script(runs[0][0].fenced)
    answers: Any = client.eval(script.text, *args)
    found = answers if len(runs) > 1 else [answers]
    return [
        answer if isinstance(answer, Exception) else scripts.appended(answer, len(events))
        for answer, (_, events) in zip(found, runs, strict=True)
    ]


def one_by_one(runs: Sequence[tuple[Log, Sequence[Event]]], replicas: int) -> list[Any]:
    """Append in a call for each run; errors are values."""
    found: list[Any] = []
    for log, events in runs:
        found += append_runs_of_one(log, events, replicas)
    return found


def append_runs_of_one(log: Log, events: Sequence[Event], replicas: int) -> list[Any]:
    try:
        return append_runs(log.client, [(log, events)], replicas)
    except ResponseError as error:
        return [error]


def plain(outcomes: Sequence[Any], logs: Sequence[Log], epochs: dict[str, str]) -> list[Any]:
    """Outcomes without what differs by chance: the names of epochs."""
    return [
        str(one)[:5] if isinstance(one, Exception) else (one.epoch == epochs[log.rp], one.offsets, one.duplicates)
        for log, one in zip(logs, outcomes, strict=True)
    ]


def contents(log: Log) -> Any:
    """What a log holds and knows, without times and names."""
    run = log.read()
    _, meta, ids, ids_before = keys.log_keys(log.rp)
    head = log.client.hmget(meta, ["n", "t", "k", "h", "y", "j"])
    known = log.client.hgetall(ids), log.client.hgetall(ids_before)
    return run.first, run.events, run.state.next, run.state.bytes, head, known


@one_server
@pytest.mark.parametrize("fenced", [False, True])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=CALLS, bounds=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 200)), min_size=RPS, max_size=RPS))
def test_runs_of_one_call_are_appended_as_by_calls_of_their_own(
    redis_client: redis.Redis, fenced: bool, calls: Any, bounds: list[tuple[int, int]]
) -> None:
    sides = [[Log(redis_client, next(NEW_RP), fenced=fenced) for _ in range(RPS + 1)] for _ in range(2)]
    epochs = {log.rp: log.create(*bound).epoch for side in sides for log, bound in zip(side, bounds, strict=False)}
    for by_rp, replicas in calls:
        together, single = ([(side[number], events) for number, events in by_rp.items()] for side in sides)
        outcomes = (
            append_runs(redis_client, together, replicas) if len(together) > 1 else one_by_one(together, replicas)
        )
        wanted = one_by_one(single, replicas)
        assert plain(outcomes, [log for log, _ in together], epochs) == plain(
            wanted, [log for log, _ in single], epochs
        )
    for one, other in zip(sides[0][:RPS], sides[1][:RPS], strict=True):
        assert contents(one) == contents(other)


@one_server
def test_each_run_of_a_call_is_notified_on_the_channel_of_its_rp(redis_client: redis.Redis) -> None:
    logs = [Log(redis_client, next(NEW_RP)) for _ in range(3)]
    for log in logs:
        log.create()
    with ExitStack() as stack:
        listeners = [stack.enter_context(listening(redis_client, keys.notification_channel(log.rp))) for log in logs]
        append_runs(redis_client, [(log, [make_event(f"{log.rp}-{at}") for at in range(2)]) for log in logs])
        for log, listener in zip(logs, listeners, strict=True):
            message = wait_for(partial(listener.get_message, timeout=0.1), 20)
            bodies = [f"{log.rp}-{at}".encode() for at in range(2)]
            assert scripts.parse_own_notification(message["data"])[1:] == (1, bodies)


@one_server
def test_an_rp_whose_keys_are_damaged_or_missing_refuses_only_its_own_run(redis_client: redis.Redis) -> None:
    here, damaged, missing, there = (Log(redis_client, next(NEW_RP)) for _ in range(4))
    for log in (here, damaged, there):
        log.create()
    redis_client.set(keys.log_keys(damaged.rp)[0], "no stream")
    runs = [(log, [make_event("a"), make_event("b")]) for log in (here, damaged, missing, there)]
    first, second, third, fourth = append_runs(redis_client, runs)
    assert first.offsets == fourth.offsets == [1, 2]
    assert isinstance(second, ResponseError)
    assert "WRONGTYPE" in str(second)
    assert str(third).startswith("NOLOG")
    assert here.read().events == there.read().events == [b"a", b"b"]


@one_server
async def test_a_pipeline_at_many_rps_takes_few_script_calls(harness: Harness) -> None:
    rps = [descriptor() for _ in range(2 * scripts.CALL_RUNS_MAX + 1)]
    for rp in rps[:-1]:
        await harness.remake(rp.id)
    harness.gone.add(rps[-1].id)
    before = await calls_of(harness.client, "eval", "evalsha")
    outcomes = await asyncio.gather(
        *(harness.appender.append_and_wait(rp, [make_event(part)]) for part in "ab" for rp in rps),
        return_exceptions=True,
    )
    for at, rp in enumerate(rps[:-1]):
        assert [outcomes[at].offsets, outcomes[at + len(rps)].offsets] == [[1], [2]]  # type: ignore[union-attr]
        assert await harness.stored(rp.id) == [b"a", b"b"]
    assert isinstance(outcomes[len(rps) - 1], NotFound)
    assert isinstance(outcomes[-1], NotFound)
    reads = len(rps) * 2  # of `stored`
    assert await calls_of(harness.client, "eval", "evalsha") - before - reads <= 12


def test_a_call_is_bounded_by_runs_events_and_bytes() -> None:
    def runs(count: int, events: int, size: int) -> list[_Run]:
        return [_Run(str(at), [make_event("a")] * events, size, False) for at in range(count)]

    for made in (runs(250, 1, 100), runs(9, 200, 100), runs(9, 1, 400_000), runs(3, 500, 1 << 20), runs(2, 1, 1 << 21)):
        calls = _calls(made, scripts.CALL_RUNS_MAX)
        assert [run.rp for call in calls for run in call] == [run.rp for run in made]
        for call in calls:
            assert len(call) <= scripts.CALL_RUNS_MAX
            assert sum(len(run.events) for run in call) <= scripts.RUN_EVENTS_MAX
            assert len(call) == 1 or sum(run.size for run in call) <= scripts.RUN_BYTES_MAX
    assert [len(call) for call in _calls(runs(250, 1, 100), scripts.CALL_RUNS_MAX)] == [100, 100, 50]
    assert [len(call) for call in _calls(runs(3, 1, 100), 1)] == [1, 1, 1]


# Faults


def test_a_crash_leaves_all_runs_of_a_call_or_none(
    new_redis: Callable[..., RedisProcess], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The file of the server is cut at several places of what one call has written, as a crash within the write would."""
    process = new_redis()
    with process.client() as client:
        logs = [Log(client, next(NEW_RP)) for _ in range(3)]
        for log in logs:
            log.create()
        folder = Path(str(client.config_get("dir")["dir"]))
        file = next(path for path in folder.rglob("*.aof") if path.stat().st_size)
        begin = file.stat().st_size
        append_runs(client, [(log, [make_event("a", 100), make_event("b", 100)]) for log in logs])
        end = file.stat().st_size
        assert end > begin
    process.kill()
    whole = file.read_bytes()
    for cut in (begin, begin + 40, (begin + end) // 2, end - 40, end):
        file.write_bytes(whole[:cut])
        process.start()
        with process.client() as client:
            held = [Log(client, log.rp).read().events for log in logs]
        process.kill()
        assert [len(events) for events in held] == [2 if cut == end else 0] * 3, cut


async def test_events_refused_by_a_full_server_are_stored_by_none_of_the_rps(
    new_redis: Callable[..., RedisProcess], make_harness: Callable[..., Awaitable[Harness]]
) -> None:
    harness = await make_harness(new_redis())
    rps = [descriptor() for _ in range(5)]
    await asyncio.gather(*(harness.appender.append_and_wait(rp, [make_event("a")]) for rp in rps))
    await harness.client.config_set("maxmemory", 1)
    refused = await asyncio.gather(
        *(harness.appender.append_and_wait(rp, [make_event("b")]) for rp in rps), return_exceptions=True
    )
    assert all(isinstance(one, Unavailable) for one in refused)
    await harness.client.config_set("maxmemory", 0)
    again = await asyncio.gather(*(harness.appender.append_and_wait(rp, [make_event("b")]) for rp in rps))
    assert again == [Appended(one.epoch, [2], [False]) for one in again]
