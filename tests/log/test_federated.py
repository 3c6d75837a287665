"""Runs of other domains' feeds in a log, own runs sealed, and both given on: on a real Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from demo.harness.servers import wait_for
from eventing.conf import config
from eventing.core import merkle
from eventing.core.events.feeds import FEEDS_MAX, ORIGIN_FEEDS_MAX, Feed
from eventing.core.events.history import HistoryBounds
from eventing.core.seals.seals import RUN_BYTES_MAX, RUN_EVENTS_MAX
from eventing.log import control, federated, federated_bulk, scripts
from eventing.log.federated import LogHead, ReceivedRun, Unsealed
from eventing.log.federated_bulk import Incoming, OwnSeal
from eventing.log.reader import LogReader
from eventing.log.scripts import OWN, NoLog
from eventing.store import keys
from eventing.store.client import client as redis_client
from eventing.store.connection import async_client
from tests.log.harness import NEW_RP, make_event
from tests.log.runs import receive_run, runs_after, seal_keep, unsealed
from tests.store.listening import listening

B, C = (Feed(origin, "abc").key for origin in ("b.example", "c.example"))
WIDE = HistoryBounds(10_000, 1 << 24)


@pytest.fixture
def rp(redis_url: str) -> Iterator[str]:
    """An RP whose log exists."""
    made = next(NEW_RP)
    control.ensure_log(made, WIDE)
    yield made
    control.delete_log(made)


@pytest.fixture
def rings(rp: str) -> Iterator[Callable[[], scripts.Notification]]:
    """The next ring of the RP's bell."""
    with listening(redis_client(), keys.notification_channel(rp)) as listener:
        yield lambda: scripts.parse_notification(wait_for(lambda: listener.get_message(timeout=0.1), 20)["data"])


def publish(rp: str, *names: str, size: int = 0) -> scripts.Appended:
    return control.append(rp, [make_event(name, size) for name in names], WIDE)


def own_key(rp: str) -> str:
    state = control.log_state(rp)
    assert state is not None
    return Feed("a.example", state.epoch).key


def incoming(
    rp: str,
    feed: str,
    first: int,
    last: int,
    *,
    given: int | None = None,
    gap_to: int | None = None,
    size: int = 0,
    origin: str = "b.example",
) -> Incoming:
    """The run `first` to `last` of a feed, with all or the last `given` of its events; the seal is the Merkle root."""
    events = [make_event(f"{feed[:1]}{number}", size) for number in range(first, last + 1)]
    kept = events[len(events) - (len(events) if given is None else given) :]
    leaves = merkle.leaves(event.body for event in events)
    withheld = leaves[: merkle.HASH_BYTES * (len(events) - len(kept))]
    bodies, digests = [event.body for event in kept], [scripts.digest(event) for event in kept]
    return Incoming(rp, feed, first, last, bodies, digests, merkle.root(leaves), withheld, [origin], gap_to)


def receive(rp: str, feed: str, first: int, last: int, **how: Any) -> ReceivedRun:
    return receive_run(incoming(rp, feed, first, last, **how))


def seal(rp: str) -> Unsealed:
    """Seal the next own run, as its root."""
    found = unsealed(rp)
    leaves = merkle.leaves(found.events)
    root = merkle.root(leaves)
    assert seal_keep(OwnSeal(rp, own_key(rp), found.lost, found.last, root, leaves, found.o, found.z, found.epoch))
    return found


def bodies(rp: str) -> list[bytes]:
    return control.read(rp, 1, 10_000, 1 << 24).events


# An RP without other domains' events


def test_a_log_without_foreign_events_is_kept_answered_and_rung_as_ever(
    rp: str, rings: Callable[[], scripts.Notification]
) -> None:
    epoch = publish(rp, "a", "b").epoch
    entries: Any = redis_client().xrange(keys.log_keys(rp)[0])
    assert [sorted(fields) for _, fields in entries] == [[b"c", b"e"]] * 2
    answer = control.call(scripts.READ, scripts.read_args(rp, 1, 10, 1000))
    assert answer == [epoch.encode(), 1, 3, 2, 1, b"a", b"b"]
    assert rings() == (epoch, 1, [b"a", b"b"], OWN, 1)
    assert redis_client().exists(keys.feeds_key(rp), keys.vectors_key(rp)) == 0


def test_a_seal_costs_the_log_no_more_than_its_stream(rp: str) -> None:
    publish(rp, "a")
    seal(rp)
    publish(rp, "b")
    assert federated.feed_event_at(rp, 2) == (OWN, 2, b"b")
    assert control.read(rp, 1, 10, 1000).places == ()


# Receiving


def test_own_events_are_numbered_without_the_foreign_ones_between(
    rp: str, rings: Callable[[], scripts.Notification]
) -> None:
    epoch = publish(rp, "a").epoch
    assert receive(rp, B, 1, 2) == ("new", 2, 2, 2)
    assert publish(rp, "b").offsets == [4]
    assert [rings(), rings(), rings()] == [
        (epoch, 1, [b"a"], OWN, 1),
        (epoch, 2, [b"%c1" % ord(B[0]), b"%c2" % ord(B[0])], B, 1),
        (epoch, 4, [b"b"], OWN, 2),
    ]
    assert federated.heads([rp]) == [LogHead(epoch, epoch, 1, 5, 2, {B: 2}, 0)]
    assert [federated.feed_event_at(rp, offset) for offset in (1, 3, 4)] == [
        (OWN, 1, b"a"),
        (B, 2, b"%c2" % ord(B[0])),
        (OWN, 2, b"b"),
    ]


def test_a_run_is_stored_once_whoever_brings_it_again(rp: str) -> None:
    receive(rp, B, 1, 3)
    assert receive(rp, B, 1, 3) == ("known", 3, 0, 0)
    assert receive(rp, B, 2, 2) == ("known", 3, 0, 0)
    assert len(bodies(rp)) == 3


def test_of_a_run_that_is_partly_held_only_the_rest_is_appended(rp: str) -> None:
    receive(rp, B, 1, 3)
    assert receive(rp, B, 2, 5) == ("new", 5, 4, 2)
    assert [federated.feed_event_at(rp, offset) for offset in (4, 5)] == [
        (B, number, b"%c%d" % (ord(B[0]), number)) for number in (4, 5)
    ]


def test_a_run_behind_a_hole_changes_nothing_until_the_gap_is_accepted(rp: str) -> None:
    receive(rp, B, 1, 1)
    assert receive(rp, B, 4, 5) == ("hole", 1, 0, 0)
    assert receive(rp, B, 4, 5, gap_to=2) == ("hole", 1, 0, 0)
    assert len(bodies(rp)) == 1
    assert receive(rp, B, 4, 5, gap_to=3) == ("new", 5, 2, 2)
    assert receive(rp, C, 1, 4, given=1) == ("hole", 0, 0, 0)
    assert receive(rp, C, 1, 4, given=1, gap_to=3) == ("new", 4, 4, 1)
    assert federated.vector_at(rp, 1) == {B: 1}
    assert federated.vector_at(rp, 3) == {B: 5}


def test_a_run_of_which_everything_is_withheld_is_passed_over_when_that_is_accepted(rp: str) -> None:
    assert receive(rp, B, 1, 3, given=0) == ("hole", 0, 0, 0)
    assert receive(rp, B, 1, 3, given=0, gap_to=3) == ("new", 3, 0, 0)
    assert bodies(rp) == []
    assert receive(rp, B, 4, 4) == ("new", 4, 1, 1)
    runs = runs_after(rp, {}, own_key(rp))
    assert [(run.first, run.last, len(run.events)) for run in runs] == [(4, 4, 1)]


def test_an_event_that_came_by_another_feed_is_appended_but_its_publisher_is_recognised_here(rp: str) -> None:
    event = make_event("same")
    publish(rp, "same")
    for feed in (B, C):
        run = Incoming(rp, feed, 1, 1, [event.body], [scripts.digest(event)], b"seal", b"", [feed], None)
        assert receive_run(run).appended == 1
    again = publish(rp, "same")
    assert (again.offsets, again.duplicates) == ([1], [True])
    receive(rp, B, 2, 2)
    again = publish(rp, f"{B[0]}2")
    assert (again.offsets, again.duplicates) == ([4], [True])


def test_the_feeds_of_one_rp_are_bounded(rp: str) -> None:
    for number in range(FEEDS_MAX - 1):
        assert receive(rp, Feed("b.example", f"{number}").key, 1, 1, origin=f"{number}.example").kind == "new"
    before = control.log_state(rp)
    assert receive(rp, B, 1, 1) == ("full", 0, 0, 0)
    assert control.log_state(rp) == before
    assert receive(rp, Feed("b.example", "0").key, 2, 2).kind == "new"


def test_the_feeds_of_one_origin_are_bounded_until_all_are_forgotten(rp: str) -> None:
    def new(number: int, origin: str = "b.example") -> str:
        return receive(rp, Feed(origin, f"{number}").key, 1, 1, origin=origin).kind

    for life in range(2):
        assert federated.feeds_of_origin(rp, "b.example") == 0
        assert [new(number) for number in range(ORIGIN_FEEDS_MAX + 2)] == ["new"] * ORIGIN_FEEDS_MAX + ["full"] * 2
        assert federated.feeds_of_origin(rp, "b.example") == ORIGIN_FEEDS_MAX
        assert receive(rp, Feed("b.example", "0").key, 2, 2).kind == "new", "what is here goes on"
        assert new(0, "c.example") == "new"
        if life == 0:
            federated.renumber(rp)
    control.delete_log(rp)
    control.ensure_log(rp, WIDE)
    assert federated.feeds_of_origin(rp, "b.example") == 0


def test_the_own_feed_is_not_received(rp: str) -> None:
    publish(rp, "a")
    seal(rp)
    assert federated_bulk.receive_all([incoming(rp, own_key(rp), 2, 2)]) == [None]


def test_without_a_log_nothing_is_made(redis_url: str) -> None:
    missing = next(NEW_RP)
    for call in (
        lambda: federated.vector_at(missing, 1),
        lambda: federated.first_lacking(missing, {}, B),
        lambda: federated.renumber(missing),
    ):
        with pytest.raises(NoLog):
            call()
    assert federated.heads([missing]) == [None]
    assert federated_bulk.receive_all([incoming(missing, B, 1, 1)]) == [None]
    assert federated_bulk.unsealed_all([missing]) == [None]
    assert federated_bulk.seals_keep([OwnSeal(missing, B, 1, 1, b"", bytes(32), 1, 1)]) == [False]
    assert runs_after(missing, {}, B) == []
    assert not list(redis_client().scan_iter(match=f"*{missing}*"))


@pytest.mark.parametrize(
    "change",
    [{"last": 0}, {"last": 1001}, {"digests": []}, {"leaves": bytes(33)}, {"events": [b"a"] * 2, "digests": [b""] * 2}],
)
def test_what_is_no_run_is_not_even_tried(rp: str, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        receive_run(incoming(rp, B, 1, 1)._replace(**change))


def test_a_run_as_large_as_one_may_be_is_one_call(rp: str) -> None:
    size = RUN_BYTES_MAX // RUN_EVENTS_MAX
    assert receive(rp, B, 1, 1000, size=size) == ("new", 1000, 1, 1000)
    (run,) = runs_after(rp, {}, own_key(rp))
    assert len(run.events) == 1000
    assert federated.vector_at(rp, 500) == {B: 500}


# Sealing


def test_the_unsealed_events_are_the_own_ones_in_order_whatever_came_between(rp: str) -> None:
    publish(rp, "a", "b")
    receive(rp, B, 1, 300)
    epoch = publish(rp, "c").epoch
    assert unsealed(rp, 2) == (1, 2, [b"a", b"b"], 1, 2, 1, epoch)
    assert seal(rp).events == [b"a", b"b", b"c"]
    receive(rp, B, 301, 301)
    publish(rp, "d")
    assert unsealed(rp) == (4, 4, [b"d"], 305, 305, 4, epoch)


def test_an_own_run_does_not_reach_over_more_offsets_than_the_bound(rp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(federated_bulk, "RUN_OFFSETS_MAX", 100)
    publish(rp, "a")
    receive(rp, B, 1, 98)
    publish(rp, "b", "c")
    assert seal(rp).events == [b"a", b"b"]
    assert seal(rp).events == [b"c"]


def test_the_first_own_event_is_found_behind_more_foreign_ones_than_a_run_may_reach_over(
    rp: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(federated_bulk, "RUN_OFFSETS_MAX", 100)
    receive(rp, B, 1, 150)
    publish(rp, "a")
    receive(rp, B, 151, 300)
    publish(rp, "b")
    assert seal(rp).events == [b"a"]
    assert (seal(rp).events, redis_client().hget(keys.meta_key(rp), "q")) == ([b"b"], b"2")


def test_what_left_history_before_it_was_sealed_is_named_and_may_be_left_out_of_the_seals(rp: str) -> None:
    control.ensure_log(rp, HistoryBounds(3, 1 << 20))
    publish(rp, *"abcde")
    receive(rp, B, 1, 1)
    found = unsealed(rp)
    assert (found.first, found.lost, found.last, found.events) == (1, 4, 5, [b"d", b"e"])
    leaves = merkle.leaves([b"e"])
    assert not seal_keep(OwnSeal(rp, own_key(rp), 5, 5, b"", leaves, 5, 5))  # the 4th is there to be sealed
    assert seal(rp) == found
    assert unsealed(rp).events == []
    receive(rp, B, 2, 4)
    publish(rp, "f")
    receive(rp, B, 5, 8)
    lost = unsealed(rp)
    assert (lost.first, lost.lost, lost.last, lost.events, lost.o, lost.z) == (6, 7, 6, [], 0, 0)


def test_of_two_who_seal_at_once_one_is_first_and_the_other_learns_it(rp: str) -> None:
    publish(rp, "a", "b")
    one = OwnSeal(rp, own_key(rp), 1, 1, b"one", bytes(32), 1, 1, "")
    other = one._replace(last=2, seal=b"other", leaves=bytes(64), z=2)
    assert federated_bulk.seals_keep([one, other, one, other._replace(rp=next(NEW_RP))]) == [True, False, False, False]
    stored = federated.seal_of(rp, own_key(rp), 1)
    assert stored is not None
    assert (stored.seal, stored.first, stored.last) == (b"one", 1, 1)
    assert federated.seal_of(rp, own_key(rp), 2) is None


def test_a_seal_of_a_former_epoch_is_refused(rp: str) -> None:
    publish(rp, "a")
    found, key = unsealed(rp), own_key(rp)
    federated.renumber(rp)
    publish(rp, "other")
    assert not seal_keep(OwnSeal(rp, key, 1, 1, b"", bytes(32), found.o, found.z, found.epoch))


def test_more_than_there_is_cannot_be_sealed(rp: str) -> None:
    publish(rp, "a")
    assert not seal_keep(OwnSeal(rp, own_key(rp), 1, 2, b"", bytes(64), 1, 2))


# Giving runs on


def test_of_a_run_that_history_has_partly_left_the_rest_can_still_be_verified(rp: str) -> None:
    publish(rp, *"abcd")
    seal(rp)
    receive(rp, B, 1, 4)
    control.ensure_log(rp, HistoryBounds(6, 1 << 20))
    (own,) = runs_after(rp, {B: 4}, own_key(rp))
    assert own.events == [b"c", b"d"]
    assert merkle.root(own.leaves + merkle.leaves(own.events)) == own.seal
    control.ensure_log(rp, HistoryBounds(1, 1 << 20))
    (foreign,) = runs_after(rp, {own_key(rp): 4}, own_key(rp))
    assert (len(foreign.events), len(foreign.leaves)) == (1, 3 * merkle.HASH_BYTES)
    assert merkle.root(foreign.leaves + merkle.leaves(foreign.events)) == foreign.seal
    assert foreign.path == ("b.example",)


def test_a_feed_with_a_long_backlog_does_not_keep_the_others_waiting(rp: str) -> None:
    for number in range(100):
        receive(rp, B, 10 * number + 1, 10 * number + 10)
    receive(rp, C, 1, 1)
    have: dict[str, int] = {}
    for _ in range(60):  # each call has an even chance to begin with C: it would take 2**60 to fail
        (run,) = runs_after(rp, have, own_key(rp), 10)
        have[run.feed_key] = run.last
        if C in have:
            break
    assert C in have


def test_runs_are_whole_and_together_within_the_bounds(rp: str) -> None:
    for number in range(4):
        receive(rp, B, 10 * number + 1, 10 * number + 10)
    assert [run.last for run in runs_after(rp, {}, own_key(rp), 25)] == [10, 20]
    assert [run.last for run in runs_after(rp, {}, own_key(rp), 5)] == [10]
    assert [run.last for run in runs_after(rp, {B: 15}, own_key(rp))] == [20, 30, 40]
    assert runs_after(rp, {B: 40}, own_key(rp)) == []


def test_an_event_larger_than_a_request_travels_alone(rp: str) -> None:
    publish(rp, "a")
    publish(rp, "large", size=2 << 20)
    publish(rp, "b")
    assert [seal(rp).events[0][:5] for _ in range(3)] == [b"a", b"large", b"b"]
    have: dict[str, int] = {}
    seen = []
    while runs := runs_after(rp, have, own_key(rp)):
        have[own_key(rp)] = runs[-1].last
        seen.append([run.last for run in runs])
    assert seen == [[1], [2], [3]]


def test_what_is_not_sealed_does_not_leave(rp: str) -> None:
    publish(rp, "a")
    assert runs_after(rp, {}, own_key(rp)) == []


def test_several_rps_are_asked_and_given_in_one_go(rp: str) -> None:
    missing = next(NEW_RP)
    publish(rp, "a")
    assert [found and found.events for found in federated_bulk.unsealed_all([missing, rp])] == [None, [b"a"]]
    results = federated_bulk.receive_all([incoming(rp, B, 1, 2), incoming(missing, B, 1, 1), incoming(rp, B, 3, 3)])
    assert results == [("new", 2, 2, 2), None, ("new", 3, 4, 1)]


def test_scripts_that_redis_has_forgotten_are_loaded_again(rp: str) -> None:
    redis_client().script_flush()
    assert receive(rp, B, 1, 1).kind == "new"
    redis_client().script_flush()
    assert federated_bulk.receive_all([incoming(rp, B, 2, 2), incoming(rp, B, 3, 3)])[1] == ("new", 3, 3, 1)
    redis_client().script_flush()
    assert federated.heads([rp, rp])[1] is not None


# Places and vectors


async def test_the_gateway_finds_places_as_the_services_do(rp: str) -> None:
    publish(rp, "a")
    receive(rp, B, 1, 5)
    publish(rp, "b")
    client = async_client(config().effective_redis_url)
    try:
        reader = LogReader(client)
        assert await reader.vector_at(rp, 3) == federated.vector_at(rp, 3) == {OWN: 1, B: 2}
        assert await reader.vector_at(rp, 8) is None
        assert await reader.first_lacking(rp, {own_key(rp): 1, B: 3}, own_key(rp)) == 5
        run = await reader.read(rp, 2, 4)
        assert (run.places, run.before, run.state.foreign) == (((0, B, 1),), {OWN: 1}, 5)
    finally:
        await client.aclose()


def test_a_reader_that_lacks_what_has_left_history_is_told_a_place_before_it(rp: str) -> None:
    receive(rp, B, 1, 4)
    publish(rp, "a", "b")
    control.ensure_log(rp, HistoryBounds(3, 1 << 20))
    assert federated.first_lacking(rp, {B: 2}, own_key(rp)) < 4
    assert federated.first_lacking(rp, {B: 3}, own_key(rp)) == 4
    assert federated.first_lacking(rp, {B: 4, own_key(rp): 1}, own_key(rp)) == 6
    assert federated.first_lacking(rp, {B: 9, own_key(rp): 9}, own_key(rp)) == 7
    assert federated.vector_at(rp, 3) == {B: 3}
    assert federated.vector_at(rp, 2) is None


def test_a_vector_is_known_at_every_offset_of_a_long_log_and_looks_at_few_entries(rp: str) -> None:
    expected: list[dict[str, int]] = [{}]
    now: dict[str, int] = {}
    for turn in range(60):
        feed, size = (B, C)[turn % 2], (1, 7, 120)[turn % 3]
        receive(rp, feed, now.get(feed, 0) + 1, now.get(feed, 0) + size)
        if turn % 5:
            publish(rp, *(f"{turn}.{number}" for number in range(turn % 5)))
        for one, count in ((feed, size), (OWN, turn % 5)):
            for _ in range(count):
                now[one] = now.get(one, 0) + 1
                expected.append(dict(now))
    for offset in range(0, len(expected), 7):
        assert federated.vector_at(rp, offset) == expected[offset]
        told = {own_key(rp) if feed == OWN else feed: number for feed, number in expected[offset].items()}
        assert federated.first_lacking(rp, told, own_key(rp)) == offset + 1
    marks = redis_client().xlen(keys.vectors_key(rp))
    assert len(expected) // 512 <= marks <= len(expected) // 128 + 2


# Trimming, deletion, new epochs


def test_seals_and_checkpoints_go_with_the_events_they_are_of(rp: str) -> None:
    for number in range(20):
        receive(rp, B, 50 * number + 1, 50 * number + 50)
        publish(rp, f"own{number}")
        seal(rp)
    control.ensure_log(rp, HistoryBounds(60, 1 << 20))
    for _ in range(2):
        control.trim_log(rp)
    assert [seal.first for seal in federated.seals_after(rp, B, 0, 100)] == [901, 951]
    assert [seal.last for seal in federated.seals_after(rp, own_key(rp), 0, 100)] == [19, 20]
    assert redis_client().xlen(keys.vectors_key(rp)) == 1
    assert federated.sealed_feeds(rp) == sorted([B, own_key(rp)])


def test_when_all_has_aged_away_the_last_seals_and_the_vector_stay(rp: str) -> None:
    publish(rp, "a")
    seal(rp)
    receive(rp, B, 1, 2)
    control.ensure_log(rp, HistoryBounds(100, 1 << 20, 1))
    wait_for(lambda: control.trim_log(rp).first == 4)
    assert federated.vector_at(rp, 3) == {OWN: 1, B: 2}
    assert federated.first_lacking(rp, {}, own_key(rp)) < 4
    assert federated.first_lacking(rp, {own_key(rp): 1, B: 2}, own_key(rp)) == 4
    runs = runs_after(rp, {}, own_key(rp))
    assert sorted(run.feed_key for run in runs) == sorted([B, own_key(rp)])
    assert all(run.events == [] and merkle.root(run.leaves) == run.seal for run in runs)
    assert receive(rp, B, 3, 3) == ("new", 3, 4, 1)


def test_a_deleted_log_leaves_nothing(rp: str) -> None:
    publish(rp, "a")
    seal(rp)
    receive(rp, B, 1, 2)
    redis_client().hset(keys.cursors_key(rp), "sub", "x:1")
    control.delete_log(rp)
    assert not list(redis_client().scan_iter(match=f"*{rp}*"))


def test_a_log_made_anew_holds_nothing_of_the_feeds_of_its_former_life(rp: str) -> None:
    receive(rp, B, 1, 2)
    redis_client().delete(*keys.log_keys(rp))  # a part of the keys was lost
    control.ensure_log(rp, WIDE)
    assert runs_after(rp, {}, own_key(rp)) == []
    assert receive(rp, B, 1, 2) == ("new", 2, 1, 2)


def test_a_new_epoch_begins_empty_at_one_and_takes_the_old_own_feed_back_as_any_other(rp: str) -> None:
    publish(rp, "a", "b")
    seal(rp)
    receive(rp, B, 1, 2)
    was, old = control.log_state(rp), own_key(rp)
    assert was is not None
    saved = runs_after(rp, {}, old)
    epoch = federated.renumber(rp, was.epoch)
    assert epoch != was.epoch
    assert federated.renumber(rp, was.epoch) == epoch  # whoever finds the stale log a little later changes nothing
    assert federated.heads([rp]) == [LogHead(epoch, epoch, 1, 1, 0, {}, 0)]
    assert not list(redis_client().scan_iter(match=keys.seals_prefix(rp).replace("{", "[{]") + "*"))
    assert publish(rp, "c") == (epoch, [1], [False])
    for run in saved:
        digests = [scripts.digest(make_event(body.decode())) for body in run.events]
        back = (run.first, run.last, run.events, digests, run.seal, run.leaves, run.path or ("a.example",))
        assert receive_run(Incoming(rp, run.feed_key, *back)).kind == "new"
    assert federated.vector_at(rp, 5) == {OWN: 1, old: 2, B: 2}
    assert publish(rp, "a").duplicates == [True]


def test_what_was_published_after_the_last_seal_is_taken_into_the_new_epoch(rp: str) -> None:
    publish(rp, "sealed")
    seal(rp)
    receive(rp, B, 1, 2)
    publish(rp, "before")
    seconds, micros = redis_client().time()
    sealed_at_ms = seconds * 1000 + micros // 1000
    wait_for(lambda: redis_client().time()[0] * 1000 + redis_client().time()[1] // 1000 > sealed_at_ms)
    publish(rp, "later1", "later2")
    receive(rp, C, 1, 1)
    epoch = federated.renumber(rp, carry_after_ms=sealed_at_ms)
    assert bodies(rp) == [b"later1", b"later2"]
    assert federated.heads([rp]) == [LogHead(epoch, epoch, 1, 3, 2, {}, 0)]
    assert publish(rp, "later2", "more") == (epoch, [2, 3], [True, False])
    assert publish(rp, "before").duplicates == [False]
    assert seal(rp).events == [b"later1", b"later2", b"more", b"before"]
    control.ensure_log(rp, HistoryBounds(2, 1 << 20))
    assert bodies(rp) == [b"more", b"before"]
