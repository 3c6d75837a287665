"""read.lua, trim.lua, oldest_granted.lua and acknowledge.lua on a real Redis."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from demo.harness.servers import wait_for
from eventing.core.errors import InvalidCursor
from eventing.core.events.cursors import Cursor
from eventing.log.scripts import NoLog
from eventing.store import keys
from tests.log.harness import Log, make_event


def fill(log: Log, count: int, size: int = 0) -> list[bytes]:
    """Append `count` events; their bodies."""
    events = [make_event(f"e{number}", size) for number in range(1, count + 1)]
    for at in range(0, count, 500):
        log.append(*events[at : at + 500])
    return [event.body for event in events]


# Read


@pytest.mark.parametrize("events_max", [1, 7, 8, 9, 40, 41, 1000])
def test_a_read_is_bounded_by_events_and_can_be_continued(log: Log, events_max: int) -> None:
    bodies = fill(log, 700)
    found: list[bytes] = []
    while len(found) < 700:
        run = log.read(len(found) + 1, events_max)
        assert run.first == len(found) + 1
        assert 1 <= len(run.events) <= events_max
        found += run.events
    assert found == bodies
    assert log.read(701).events == []


def test_a_read_is_bounded_by_bytes(log: Log) -> None:
    fill(log, 20, 100)
    assert len(log.read(1, 1000, 1000).events) == 10
    assert len(log.read(1, 1000, 999).events) == 9
    assert len(log.read(15, 1000, 1000).events) == 6


def test_one_event_is_given_however_small_the_bound_by_bytes(log: Log) -> None:
    fill(log, 3, 5000)
    for first in (1, 2, 3):
        run = log.read(first, 1000, 1)
        assert (run.first, len(run.events)) == (first, 1)


def test_a_read_of_no_events_gives_the_extent(log: Log) -> None:
    fill(log, 3, 10)
    run = log.read(1, 0, 0)
    assert (run.events, run.state.first, run.state.next, run.state.bytes) == ([], 1, 4, 30)


def test_a_read_from_before_the_oldest_begins_there(new_log: Callable[..., Log]) -> None:
    log = new_log()
    log.create(max_events=2)
    fill(log, 9)
    run = log.read(3)
    assert (run.first, run.events) == (8, [b"e8", b"e9"])


def test_an_empty_log_reads_as_empty(log: Log) -> None:
    run = log.read()
    assert (run.state.first, run.state.next, run.state.bytes, run.events) == (1, 1, 0, [])


# Trim


def test_trim_says_what_left_by_any_bound_since_the_last_call(new_log: Callable[..., Log]) -> None:
    log = new_log()
    log.create(max_events=4, max_age_s=1)
    fill(log, 10)
    assert log.trim() == (6, 7)
    assert log.trim() == (0, 7)
    wait_for(lambda: log.trim() == (4, 11))
    assert log.trim() == (0, 11)


def test_trim_without_a_bound_by_age_removes_nothing(log: Log) -> None:
    fill(log, 10)
    assert log.trim() == (0, 1)


# Floor


def test_the_floor_by_count(log: Log) -> None:
    fill(log, 10)
    assert [log.oldest_granted(max_events=count) for count in (1, 3, 10, 99)] == [10, 8, 1, 1]


def test_the_floor_by_bytes_always_grants_the_newest(log: Log) -> None:
    fill(log, 10, 100)
    assert [log.oldest_granted(max_bytes=size) for size in (1, 100, 199, 200, 999, 1000)] == [10, 10, 10, 9, 2, 1]


def test_the_floor_by_age(log: Log) -> None:
    fill(log, 5)
    assert log.oldest_granted(max_age_s=60) == 1
    wait_for(lambda: log.oldest_granted(max_age_s=1) == 6)
    log.append(make_event("young"))
    assert log.oldest_granted(max_age_s=1) == 6
    assert log.read().state.first == 1  # another's bounds leave the log as it is


def test_the_floor_is_never_below_what_the_log_holds(new_log: Callable[..., Log]) -> None:
    log = new_log()
    log.create(max_events=3)
    fill(log, 10)
    assert log.oldest_granted(max_events=100) == 8


def test_the_floor_of_an_empty_log_is_its_end(log: Log) -> None:
    assert log.oldest_granted(max_events=1) == 1


# Acknowledge


def test_a_cursor_moves_forward_and_never_back(log: Log) -> None:
    epoch = log.create().epoch
    fill(log, 5)
    assert log.acknowledge(Cursor(epoch, 2)) == Cursor(epoch, 2)
    assert log.acknowledge(Cursor(epoch, 4)) == Cursor(epoch, 4)
    assert log.acknowledge(Cursor(epoch, 3)) == Cursor(epoch, 4)
    assert log.acknowledge(Cursor(epoch, 4)) == Cursor(epoch, 4)
    assert log.client.hget(keys.cursors_key(log.rp), "sub_a") == f"{epoch}:4".encode()


def test_subscriptions_do_not_share_a_cursor(log: Log) -> None:
    epoch = log.create().epoch
    fill(log, 5)
    log.acknowledge(Cursor(epoch, 5), "sub_a")
    assert log.acknowledge(Cursor(epoch, 1), "sub_b") == Cursor(epoch, 1)


def test_what_was_not_published_cannot_be_acknowledged(log: Log) -> None:
    epoch = log.create().epoch
    fill(log, 5)
    assert log.acknowledge(Cursor(epoch, 5)) == Cursor(epoch, 5)
    with pytest.raises(InvalidCursor):
        log.acknowledge(Cursor(epoch, 6))
    assert log.client.hget(keys.cursors_key(log.rp), "sub_a") == f"{epoch}:5".encode()


def test_a_cursor_of_another_epoch_is_refused_with_the_one_in_force(log: Log) -> None:
    epoch = log.create().epoch
    fill(log, 5)
    with pytest.raises(InvalidCursor) as caught:
        log.acknowledge(Cursor("abcdefgh", 1))
    assert caught.value.extra == {"epoch": epoch}


def test_a_cursor_left_from_another_epoch_does_not_hold_back_the_new_one(log: Log) -> None:
    epoch = log.create().epoch
    fill(log, 5)
    log.client.hset(keys.cursors_key(log.rp), "sub_a", "abcdefgh:4")
    assert log.acknowledge(Cursor(epoch, 1)) == Cursor(epoch, 1)


def test_without_a_log_nothing_is_acknowledged(new_log: Callable[..., Log]) -> None:
    with pytest.raises(NoLog):
        new_log().acknowledge(Cursor("abcdefgh", 1))
