"""append.lua and create.lua on a real Redis: numbering, deduplication, bounds, and the notification channel's one ring per run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from demo.harness.servers import wait_for
from eventing.core.events.cloudevents import Event
from eventing.log import scripts
from eventing.log.scripts import Appended, NoLog
from eventing.store import keys
from tests.log.harness import Log, make_event
from tests.store.listening import listening


def held(log: Log) -> list[bytes]:
    """The bodies of all events that the log holds."""
    return log.read().events


# Numbering


def test_offsets_begin_at_one_and_follow_each_other_without_a_hole(log: Log) -> None:
    first = log.append(make_event("a"), make_event("b"))
    second = log.append(make_event("c"))
    assert first.offsets == [1, 2]
    assert second.offsets == [3]
    assert first.epoch == second.epoch
    run = log.read()
    assert (run.first, run.events, run.state.next) == (1, [b"a", b"b", b"c"], 4)


def test_a_run_as_large_as_a_script_call_may_be_is_numbered_in_its_order(log: Log) -> None:
    events = [make_event(f"e{number}") for number in range(scripts.RUN_EVENTS_MAX)]
    assert log.append(*events).offsets == list(range(1, scripts.RUN_EVENTS_MAX + 1))
    assert held(log) == [event.body for event in events]


def test_any_bytes_are_kept_as_they_are(log: Log) -> None:
    bodies = [bytes(range(256)), b"", b"\r\n$5\r\n", "\u00e9\U0001f600".encode()]
    log.append(*(Event("/tests", str(number), "test", body) for number, body in enumerate(bodies)))
    assert held(log) == bodies


def test_numbering_goes_on_after_all_events_have_gone(log: Log) -> None:
    log.append(make_event("a"), make_event("b"))
    log.client.xtrim(keys.log_keys(log.rp)[0], maxlen=0)
    assert log.append(make_event("c")).offsets == [3]


def test_offsets_stay_exact_beyond_what_lua_writes_as_a_plain_number(log: Log) -> None:
    log.client.hset(keys.meta_key(log.rp), "n", 2**52)
    with listening(log.client, keys.notification_channel(log.rp)) as listener:
        assert log.append(make_event("a"), make_event("b")).offsets == [2**52, 2**52 + 1]
        assert log.append(make_event("a")) == Appended(log.read().state.epoch, [2**52], [True])
        run = log.read(2**52 + 1)
        assert (run.first, run.events, run.state.first) == (2**52 + 1, [b"b"], 2**52)
        message = wait_for(lambda: listener.get_message(timeout=0.1), 20)
        assert scripts.parse_own_notification(message["data"])[1] == 2**52


def test_without_a_log_nothing_is_made(new_log: Callable[..., Log]) -> None:
    log = new_log()
    for call in (lambda: log.append(make_event("a")), log.read, log.trim, log.oldest_granted):
        with pytest.raises(NoLog):
            call()
    assert not list(log.client.scan_iter(match=f"*{log.rp}*"))


# Create


def test_create_again_keeps_epoch_events_and_numbering_and_sets_the_bounds(log: Log) -> None:
    before = log.create()
    log.append(*(make_event(name) for name in "abcde"))
    after = log.create(max_events=2)
    assert (after.epoch, after.first, after.next) == (before.epoch, 4, 6)
    assert held(log) == [b"d", b"e"]
    assert log.append(make_event("f")).offsets == [6]
    assert held(log) == [b"e", b"f"]


def test_create_with_a_tighter_bound_by_bytes_trims_at_once(log: Log) -> None:
    log.append(*(make_event(name, 100) for name in "abcde"))
    state = log.create(max_bytes=250)
    assert (state.first, state.bytes) == (4, 200)


def test_a_log_made_anew_has_another_epoch_and_begins_at_one(log: Log) -> None:
    before = log.append(make_event("a"))
    log.client.delete(*keys.log_keys(log.rp))
    log.create()
    after = log.append(make_event("a"))
    assert after.epoch != before.epoch
    assert (after.offsets, after.duplicates) == ([1], [False])


def test_a_log_made_anew_does_not_know_ids_of_its_former_life(log: Log) -> None:
    log.append(make_event("a"), make_event("b"))
    log.client.delete(keys.meta_key(log.rp))  # a part of the keys was lost
    log.create()
    assert log.append(make_event("b")).duplicates == [False]


# Deduplication


def test_a_repeated_event_is_answered_with_the_place_it_has_and_not_stored_again(log: Log) -> None:
    log.append(make_event("a"), make_event("b"))
    again = log.append(make_event("b"), make_event("c"), make_event("a"))
    assert again.offsets == [2, 3, 1]
    assert again.duplicates == [True, False, True]
    assert held(log) == [b"a", b"b", b"c"]


def test_a_repetition_within_one_batch_is_stored_once(log: Log) -> None:
    batch = log.append(make_event("a"), make_event("a"), make_event("b"), make_event("a"))
    assert batch.offsets == [1, 1, 2, 1]
    assert batch.duplicates == [False, True, False, True]
    assert held(log) == [b"a", b"b"]


def test_the_same_id_of_another_source_is_another_event(log: Log) -> None:
    log.append(make_event("a", source="/one"))
    assert log.append(make_event("a", source="/two")).duplicates == [False]


def test_source_and_id_are_not_confused_with_each_other(log: Log) -> None:
    log.append(make_event("bc", source="a"))
    assert log.append(make_event("c", source="ab")).duplicates == [False]


def test_a_run_of_repetitions_only_does_not_ring_the_bell(log: Log) -> None:
    log.append(make_event("a"))
    with listening(log.client, keys.notification_channel(log.rp)) as listener:
        log.append(make_event("a"))
        log.append(make_event("b"))
        message = wait_for(lambda: listener.get_message(timeout=0.1), 20)
        assert scripts.parse_own_notification(message["data"]) == (log.read().state.epoch, 2, [b"b"])


def move_window_back(log: Log, by_ms: int) -> None:
    """Let the present window have begun `by_ms` earlier, which is what waiting does."""
    log.client.hincrby(keys.meta_key(log.rp), "d", -by_ms)


def test_an_id_is_recognised_through_the_rotation_of_windows(new_log: Callable[..., Log]) -> None:
    log = new_log(window_s=100)
    log.create()
    log.append(make_event("old"))
    move_window_back(log, 101_000)
    rotating = log.append(make_event("new"), make_event("old"))
    assert rotating.duplicates == [False, True]
    assert log.append(make_event("old"), make_event("new")) == rotating._replace(
        offsets=[1, 2], duplicates=[True, True]
    )


def test_an_id_is_forgotten_after_two_windows(new_log: Callable[..., Log]) -> None:
    log = new_log(window_s=100)
    log.create()
    log.append(make_event("old"))
    for _ in range(2):
        move_window_back(log, 101_000)
        assert log.append(make_event(f"filler{log.read().state.next}")).duplicates == [False]
    assert log.append(make_event("old")).duplicates == [False]


def test_after_two_idle_windows_nothing_is_remembered_and_nothing_is_left_in_memory(
    new_log: Callable[..., Log],
) -> None:
    log = new_log(window_s=100)
    log.create()
    log.append(make_event("old"))
    move_window_back(log, 201_000)
    assert log.append(make_event("old")).duplicates == [False]
    _, _, ids, ids_before = keys.log_keys(log.rp)
    assert log.client.hlen(ids) == 1
    assert not log.client.exists(ids_before)


def test_rotation_by_a_run_of_repetitions_only_keeps_them_known(new_log: Callable[..., Log]) -> None:
    log = new_log(window_s=100)
    log.create()
    log.append(make_event("a"))
    move_window_back(log, 101_000)
    assert log.append(make_event("a")).duplicates == [True]
    assert log.append(make_event("a"), make_event("b")).duplicates == [True, False]
    assert log.append(make_event("a"), make_event("b")).duplicates == [True, True]


def test_remembered_ids_are_bounded_and_the_oldest_half_goes_first(new_log: Callable[..., Log]) -> None:
    log = new_log(ids_max=20)
    log.create()
    for number in range(100):
        log.append(make_event(f"e{number}"))
        _, _, ids, ids_before = keys.log_keys(log.rp)
        assert log.client.hlen(ids) + log.client.hlen(ids_before) <= 20
    assert log.append(*(make_event(f"e{number}") for number in range(90, 100))).duplicates == [True] * 10


def test_remembered_ids_expire_with_an_idle_log(new_log: Callable[..., Log]) -> None:
    log = new_log(window_s=100)
    log.create()
    log.append(make_event("a"))
    assert 0 < log.client.pttl(keys.log_keys(log.rp)[2]) <= 200_000


# Bounds


def test_the_history_is_bounded_by_count(new_log: Callable[..., Log]) -> None:
    log = new_log()
    log.create(max_events=3)
    log.append(*(make_event(name) for name in "abcde"))
    run = log.read()
    assert (run.state.first, run.state.next, run.events) == (3, 6, [b"c", b"d", b"e"])


def test_the_history_is_bounded_by_bytes(new_log: Callable[..., Log]) -> None:
    log = new_log()
    log.create(max_bytes=1000)
    for number in range(50):
        log.append(make_event(f"e{number}", 90 + number))
        state = log.read().state
        assert state.bytes <= 1000
        assert state.bytes == sum(map(len, held(log)))


def test_the_newest_event_is_kept_however_large_it_is(new_log: Callable[..., Log]) -> None:
    log = new_log()
    log.create(max_bytes=100)
    log.append(make_event("small", 10), make_event("large", 5000))
    assert held(log) == [make_event("large", 5000).body]
    log.append(make_event("next", 60))
    assert held(log) == [make_event("next", 60).body]


def test_last_event_only_is_a_valid_bound(new_log: Callable[..., Log]) -> None:
    log = new_log()
    log.create(max_events=1)
    for number in range(1, 6):
        log.append(make_event(f"e{number}"))
        run = log.read()
        assert (run.first, run.events) == (number, [f"e{number}".encode()])


def test_events_older_than_the_bound_by_age_are_not_shown(new_log: Callable[..., Log]) -> None:
    log = new_log()
    log.create(max_age_s=1)
    log.append(*(make_event(name) for name in "abc"))
    assert held(log) == [b"a", b"b", b"c"]
    wait_for(lambda: not held(log))
    assert log.append(make_event("d")).offsets == [4]
    run = log.read()
    assert (run.state.first, run.first, run.events) == (4, 4, [b"d"])


def test_the_bound_by_age_cuts_between_old_and_young(new_log: Callable[..., Log]) -> None:
    log = new_log()
    log.create(max_age_s=2)
    log.append(*(make_event(f"old{number}") for number in range(300)))
    boundary_ms = log.client.time()[0] * 1000 + log.client.time()[1] // 1000 + 1000
    wait_for(lambda: log.client.time()[0] * 1000 + log.client.time()[1] // 1000 >= boundary_ms)
    log.append(*(make_event(f"young{number}") for number in range(200)))
    wait_for(lambda: log.read().state.first > 1, every_s=0.005)
    run = log.read()
    assert (run.state.first, run.state.next) == (301, 501)
    assert run.events == [f"young{number}".encode() for number in range(200)]
    assert run.state.bytes == sum(map(len, run.events))


# The notification channel


def test_a_run_rings_once_with_epoch_first_offset_and_the_new_events_only(log: Log) -> None:
    with listening(log.client, keys.notification_channel(log.rp)) as listener:
        log.append(make_event("a"))
        log.append(make_event("a"), make_event("b", 70_000), make_event("c"))
        epoch = log.read().state.epoch
        rings = [wait_for(lambda: listener.get_message(timeout=0.1), 20)["data"] for _ in range(2)]
        assert [scripts.parse_own_notification(ring) for ring in rings] == [
            (epoch, 1, [b"a"]),
            (epoch, 2, [make_event("b", 70_000).body, b"c"]),
        ]
        assert listener.get_message(timeout=0.05) is None
