"""The checker finds every kind of violation in histories made by hand, and none in legal ones."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.checker import check
from tests.faults.history import HELD, Record
from tests.faults.made import RP, Made


def names(records: list[Record]) -> set[str]:
    return check(records).names


def test_a_history_without_faults_is_clean() -> None:
    made = Made()
    made.publish("1")
    made.publish("2", "3")
    made.read("r", 2)
    made.acknowledge(2)
    report = check(made.end("r"))
    assert report.names == set()
    assert report.counts["acknowledged events"] == 3
    assert report.counts["deliveries"] == 3, "those of the reader, not those of the log"


def test_an_event_without_an_answer_may_appear_or_not() -> None:
    made = Made()
    made.doubt("1", stored=True)
    made.doubt("2", stored=False)
    made.publish("3")
    report = check(made.end("r"))
    assert report.names == set()
    assert report.notes["appeared unacknowledged"] == 1


def test_readers_that_are_told_of_a_failover_go_on() -> None:
    made = Made()
    made.publish("1", "2")
    made.read("live")
    made.read("pull", 1)
    made.fail_over()
    made.publish("3")
    made.read("live", live=True)
    assert names(made.end("live", "pull")) == set()


def test_what_is_withdrawn_is_legal_at_a_level_that_promises_nothing_and_found_at_one_that_does() -> None:
    for promised, wanted in (((), set()), (("stored",), {"withdrawn", "lost"})):
        made = Made("stored", promised)
        made.publish("1", "2", "3")
        made.read("r")
        made.fail_over(lost=2)
        made.publish("4")
        report = check(made.end("r"))
        assert report.names == wanted
        assert report.notes["rewound"] == 1


def test_an_event_that_nobody_acknowledged_may_be_withdrawn() -> None:
    made = Made()
    made.publish("1")
    made.doubt("2", stored=True)
    made.read("r")
    made.fail_over(lost=1)
    made.publish("3")
    report = check(made.end("r"))
    assert report.names == set()
    assert report.notes["withdrawn unacknowledged"] == 1


def test_an_acknowledged_event_that_is_not_in_the_log_is_lost() -> None:
    made = Made()
    made.publish("1", "2")
    made.log.pop()
    assert names(made.end()) == {"lost"}


def test_an_event_that_a_reader_is_not_given_is_lost() -> None:
    made = Made()
    made.publish("1", "2", "3")
    made.begin("r", 0)
    made.event("r", 1)
    made.event("r", 3)
    made.places["r"] = "a", 3
    assert "lost" in names(made.end("r"))


def test_a_resume_further_than_the_reader_was_is_a_loss() -> None:
    made = Made()
    made.publish("1", "2", "3")
    made.read("r", 1)
    made.begin("r", 2, from_="a:1")
    made.event("r", 3)
    made.places["r"] = "a", 3
    assert "lost" in names(made.end("r"))


def test_one_event_at_two_offsets_is_doubled() -> None:
    made = Made()
    made.publish("1")
    call = made.invoke("1")
    made.log.append("1")
    made.answer(call, 2)
    assert "doubled" in names(made.end("r"))


def test_an_event_that_is_given_again_is_doubled() -> None:
    made = Made()
    made.publish("1", "2")
    made.read("r")
    made.event("r", 2)
    assert names(made.end("r")) == {"doubled"}


def test_one_offset_of_one_epoch_with_two_events_is_forked() -> None:
    made = Made("stored", ())
    made.publish("1", "2")
    made.read("early")
    made.log[1] = "x"
    made.invoke("x")
    assert "forked" in names(made.end("early", "late"))


def test_a_reader_that_holds_what_the_log_has_not_and_was_not_told_is_found() -> None:
    made = Made("stored", ())
    made.publish("1", "2")
    made.read("r")
    made.fail_over(lost=1)
    made.publish("x")
    made.places["r"] = "a1", 2
    made.add("r", "continued", rp=RP, epoch="a1", offset=2, previous={"epoch": "a", "to": 2})
    made.publish("3")
    assert "forked" in names(made.end("r"))


def test_an_event_published_after_another_was_acknowledged_is_behind_it() -> None:
    made = Made()
    first = made.invoke("1")
    made.answer(first, 2)
    second = made.invoke("2")
    made.answer(second, 1)
    made.log = ["2", "1"]
    assert names(made.end()) == {"reordered"}


def test_events_of_a_batch_are_in_its_order() -> None:
    made = Made()
    call = made.invoke("1", "2")
    made.answer(call, 2, 1)
    made.log = ["2", "1"]
    assert names(made.end()) == {"reordered"}


def test_events_that_are_published_at_once_have_any_order() -> None:
    made = Made()
    first, second = made.invoke("1"), made.invoke("2")
    made.answer(second, 1)
    made.answer(first, 2)
    made.log = ["2", "1"]
    assert names(made.end()) == set()


def test_an_event_that_nobody_published_is_a_phantom() -> None:
    made = Made()
    made.log.append("x")
    assert names(made.end("r")) == {"phantom"}


def test_an_event_that_was_refused_for_good_is_a_phantom() -> None:
    made = Made()
    call = made.invoke("1")
    made.add("p", "publish", "fail", call=call, why="forbidden")
    made.log.append("1")
    assert names(made.end("r")) == {"phantom"}


@pytest.mark.parametrize("offset", [0, 1])
def test_a_place_before_the_readers_is_untold(offset: int) -> None:
    made = Made()
    made.publish("1", "2")
    made.read("r")
    made.begin("r", offset, from_="a:2")
    for at in range(offset + 1, 3):
        made.event("r", at)
    assert "untold" in names(made.end("r"))


def test_another_epoch_on_a_connection_is_untold() -> None:
    made = Made()
    made.publish("1")
    made.read("r")
    made.fail_over()
    made.publish("2")
    made.event("r", 2)
    made.places["r"] = "a1", 2
    assert names(made.end("r")) == {"untold"}


def test_an_answer_that_is_not_recovered_is_followed_by_a_gap() -> None:
    made = Made()
    made.publish("1", "2")
    made.read("r", 1)
    made.begin("r", 1, from_="a:1", recovered=False)
    made.event("r", 2)
    made.places["r"] = "a", 2
    assert "untold" in names(made.end("r"))


def test_a_gap_of_events_that_the_log_holds_is_false() -> None:
    made = Made()
    made.publish("1", "2", "3")
    made.read("r", 1)
    made.add("r", "gap", rp=RP, epoch="a", from_=2, to=2)
    made.event("r", 3)
    made.places["r"] = "a", 3
    assert names(made.end("r")) == {"false-gap"}


def test_an_unknown_epoch_is_legal_when_the_reader_is_told() -> None:
    made = Made()
    made.publish("1", "2")
    made.read("r")
    made.epoch = "b"
    made.begin("r", 0, from_="a:2", recovered=False)
    made.add("r", "gap", rp=RP, epoch="b", from_=1, to=0)
    made.event("r", 1)
    made.event("r", 2)
    made.places["r"] = "b", 2
    report = check(made.end("r"))
    assert report.names == set()
    assert report.notes["unknown epoch"] == 1


def test_a_durable_subscription_goes_on_after_what_it_acknowledged_or_later_events_it_was_given() -> None:
    made = Made()
    made.publish("1", "2", "3")
    made.begin("d", 0, from_=HELD)
    for at in (1, 2, 3):
        made.event("d", at)
    made.acknowledge(2)
    made.begin("d", 2, from_=HELD)
    made.event("d", 3)
    made.places["d"] = "a", 3
    assert names(made.end("d")) == set()


@pytest.mark.parametrize(("offset", "promised", "wanted"), [(1, True, True), (3, True, True), (1, False, False)])
def test_a_subscription_that_lost_an_acknowledgement_or_made_one_up_is_found(
    offset: int, promised: bool, wanted: bool
) -> None:
    made = Made(promised=("replicated:all",) if promised else ())
    made.publish("1", "2", "3")
    made.begin("d", 0, from_=HELD)
    for at in (1, 2, 3):
        made.event("d", at)
    made.acknowledge(2)
    made.begin("d", offset, from_=HELD)
    for at in range(offset + 1, 4):
        made.event("d", at)
    made.places["d"] = "a", 3
    assert ("acknowledgement" in names(made.end("d"))) is wanted


def test_an_acknowledgement_that_is_answered_with_less_is_found() -> None:
    made = Made()
    made.publish("1", "2", "3")
    made.acknowledge(3)
    made.acknowledge(2, answered=2)
    assert names(made.end()) == {"acknowledgement"}


def test_a_reader_that_does_not_get_to_the_end_is_stuck() -> None:
    made = Made()
    made.publish("1", "2")
    made.read("r", 1)
    assert names(made.end()) == {"stuck"}


# Random legal histories, and one thing wrong in them

ACTS = st.lists(
    st.tuples(st.sampled_from(("publish", "doubt", "unstored", "read", "live", "fail over")), st.integers(0, 2)),
    min_size=1,
    max_size=30,
)


def legal(acts: list[tuple[str, int]], lossy: bool) -> Made:
    """A history of these acts, with three readers."""
    made = Made("stored", () if lossy else ("stored",))
    for number, (act, which) in enumerate(acts):
        if act == "publish":
            made.publish(*(f"e{number}-{one}" for one in range(which + 1)))
        elif act in ("doubt", "unstored"):
            made.doubt(f"e{number}", stored=act == "doubt")
        elif act == "fail over":
            made.fail_over(lost=min(which, len(made.log)) if lossy else 0)
        else:
            made.read(f"r{which}", 1 + which, live=act == "live")
    return made


@given(ACTS, st.booleans())
def test_legal_histories_are_clean(acts: list[tuple[str, int]], lossy: bool) -> None:
    made = legal(acts, lossy)
    report = check(made.end("r0", "r1", "r2"))
    assert report.violations == []


def _without(records: list[Record], at: int) -> list[Record]:
    return records[:at] + records[at + 1 :]


def _twice(records: list[Record], at: int) -> list[Record]:
    return [*records[: at + 1], copy.deepcopy(records[at]), *records[at + 1 :]]


def _other(records: list[Record], at: int) -> list[Record]:
    changed: dict[str, Any] = {**records[at], "id": "made-up"}
    return [*records[:at], changed, *records[at + 1 :]]


@given(ACTS, st.booleans(), st.sampled_from((_without, _twice, _other)), st.data())
def test_an_event_that_is_left_out_given_twice_or_exchanged_is_found(
    acts: list[tuple[str, int]],
    lossy: bool,
    wrong: Callable[[list[Record], int], list[Record]],
    data: st.DataObject,
) -> None:
    records = legal([*acts, ("publish", 0)], lossy).end("r0", "r1", "r2")
    events = [at for at, one in enumerate(records) if one["op"] == "event" and one["process"] != "log"]
    assert names(wrong(records, data.draw(st.sampled_from(events))))
