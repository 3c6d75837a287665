"""Positions: a reader is told whether it has everything it asked for, and if not, exactly what it lacks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.errors import InvalidCursor
from eventing.core.events.cursors import Cursor
from eventing.core.events.positions import (
    NAMED_POSITIONS,
    LogState,
    OffsetGap,
    Start,
    StoredTime,
    begun_at,
    by_vector,
    fits,
    parse_from,
    resolve,
    resume,
)
from eventing.core.events.vectors import Vector, covers

LOG = LogState("abc", first=5, next=9)  # holds 5, 6, 7, 8
EMPTY = LogState("abc", first=1, next=1)
TRIMMED = LogState("abc", first=9, next=9)


@pytest.mark.parametrize(
    ("wanted", "log", "start"),
    [
        ("now", LOG, Start("abc", 9, True)),
        ("earliest", LOG, Start("abc", 5, True)),
        ("last", LOG, Start("abc", 8, True)),
        ("now", EMPTY, Start("abc", 1, True)),
        ("earliest", EMPTY, Start("abc", 1, True)),
        ("last", EMPTY, Start("abc", 1, True)),
        ("last", TRIMMED, Start("abc", 9, True)),
        (Cursor("abc", 8), LOG, Start("abc", 9, True)),
        (Cursor("abc", 6), LOG, Start("abc", 7, True)),
        (Cursor("abc", 4), LOG, Start("abc", 5, True)),
        (Cursor("abc", 3), LOG, Start("abc", 5, False, OffsetGap("abc", 4, 4))),
        (Cursor("abc", 0), LOG, Start("abc", 5, False, OffsetGap("abc", 1, 4))),
        (Cursor("abc", 0), EMPTY, Start("abc", 1, True)),
        (Cursor("abc", 7), TRIMMED, Start("abc", 9, False, OffsetGap("abc", 8, 8))),
        (Cursor("xyz", 6), LOG, Start("abc", 5, False, OffsetGap("abc", 1, 4))),
        (Cursor("abc", 9), LOG, Start("abc", 5, False, OffsetGap("abc", 1, 4))),
        (Cursor("abc", 1), EMPTY, Start("abc", 1, False, OffsetGap("abc", 1, 0))),
    ],
)
def test_start_says_what_is_recovered_and_what_is_lost(wanted: Any, log: LogState, start: Start) -> None:
    assert resolve(wanted, log) == start


logs = st.builds(lambda first, held: LogState("abc", first, first + held), st.integers(1, 50), st.integers(0, 50))
wishes = st.sampled_from(NAMED_POSITIONS) | st.builds(Cursor, st.sampled_from(["abc", "xyz"]), st.integers(0, 120))


@given(wishes, logs)
def test_start_is_never_silently_partial(wanted: Any, log: LogState) -> None:
    start = resolve(wanted, log)
    assert start.epoch == log.epoch
    assert log.first <= start.next <= log.next
    assert start.recovered is (start.gap is None)
    if isinstance(wanted, Cursor):
        known = wanted.epoch == log.epoch and wanted.offset < log.next
        asked = set(range(wanted.offset + 1, log.next)) if known else set(range(1, log.next))
        sent = set(range(start.next, log.next))
        lost = set(range(start.gap.start, start.gap.end + 1)) if start.gap else set()
        assert sent | lost == asked
        assert not sent & lost
        assert known or not start.recovered


@given(st.builds(Cursor, st.from_regex(r"[a-z2-7]{1,26}", fullmatch=True), st.integers(0, 2**53 - 1), st.none()))
def test_cursor_is_read_from_text_and_from_an_event_frame(cursor: Cursor) -> None:
    assert parse_from(str(cursor)) == cursor
    assert parse_from({"epoch": cursor.epoch, "offset": cursor.offset, "rp": "x"}) == cursor


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-11-24T02:50:00Z", 1_795_488_600_000),
        ("2026-11-24T03:50:00+01:00", 1_795_488_600_000),
        ("2026-11-24T02:50:00.123Z", 1_795_488_600_123),
        ("2026-11-24T02:50:00.1230001Z", 1_795_488_600_124),  # no event stored at .123 is at or after it
        ("2026-11-24T02:50:00.999999999Z", 1_795_488_601_000),
        ("1969-12-31T23:59:59Z", 0),
    ],
)
def test_a_time_is_read_from_text_and_from_an_object(text: str, ms: int) -> None:
    assert parse_from(f"time:{text}") == StoredTime(ms) == parse_from({"time": text})


@pytest.mark.parametrize(
    ("offset", "future", "log", "start"),
    [
        (7, False, LOG, Start("abc", 7, True)),
        (9, False, LOG, Start("abc", 9, True)),
        (12, False, LOG, Start("abc", 9, True)),  # stored after the extent was read: they follow live
        (5, False, LOG, Start("abc", 5, False, OffsetGap("abc", 1, 4))),
        (2, False, LOG, Start("abc", 5, False, OffsetGap("abc", 1, 4))),  # trimmed meanwhile
        (9, True, LOG, Start("abc", 9, True)),
        (1, False, EMPTY, Start("abc", 1, True)),
        (1, False, LogState("abc", 1, 4), Start("abc", 1, True)),
        (9, False, TRIMMED, Start("abc", 9, False, OffsetGap("abc", 1, 8))),
        (9, True, TRIMMED, Start("abc", 9, True)),
    ],
)
def test_a_start_by_time_is_a_gap_where_earlier_events_have_gone(
    offset: int, future: bool, log: LogState, start: Start
) -> None:
    assert begun_at(offset, future, log) == start


@pytest.mark.parametrize("place", NAMED_POSITIONS)
def test_places_are_read_as_words(place: str) -> None:
    assert parse_from(place) == place


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        True,
        "",
        "NOW",
        "latest",
        [],
        ["now"],
        {},
        {"epoch": "abc"},
        {"epoch": "abc", "offset": "1"},
        {"epoch": "abc", "offset": True},
        {"epoch": "abc", "offset": -1},
        {"epoch": "abc:1", "offset": 1},
        {"epoch": 1, "offset": 1},
        {"epoch": "abc", "offset": 10**5000},
        "time:",
        "time:5",
        "time:yesterday",
        "time:2026-11-24",
        "time:2026-11-24T02:50Z",
        "time:2026-11-24T02:50:00",
        "time:2026-11-24T02:50:00 01:00",
        "time:2026-11-24T02:50:60Z",
        "time:2026-02-30T02:50:00Z",
        "time:0000-01-01T00:00:00Z",
        "time:9999-12-31T23:59:59-01:00",
        "time:2026-11-24T02:50:00.0000000000Z",
        "time:\u0662026-11-24T02:50:00Z",
        {"time": 5},
        {"time": "now"},
        {"time": "2026-11-24T02:50:00Z", "epoch": "abc"},
    ],
)
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(InvalidCursor):
        parse_from(value)


OWN, OTHER = "o" * 16, "p" * 16
SHARED = LogState("abc", first=5, next=9, foreign=3)  # own 1 and 2, other 1 and 2 are gone; own 3 to 5, other 3 held
GONE = {OWN: 2, OTHER: 2}


@pytest.mark.parametrize(
    ("vector", "first_lacking", "start"),
    [
        ({OWN: 2, OTHER: 2}, 5, Start("abc", 5, True, None, {OWN: 2, OTHER: 2})),
        ({OWN: 4, OTHER: 2}, 7, Start("abc", 7, True, None, {OWN: 4, OTHER: 2})),
        ({OWN: 5, OTHER: 90}, 9, Start("abc", 9, True, None, {OWN: 5, OTHER: 90})),
        ({OWN: 5}, 3, Start("abc", 5, False, OffsetGap("abc", 3, 4, {OTHER: (1, 2)}), {OWN: 5, OTHER: 2})),
        ({OWN: 1, OTHER: 9}, 1, Start("abc", 5, False, OffsetGap("abc", 4, 4, {OWN: (2, 2)}), {OWN: 2, OTHER: 9})),
        ({OWN: 6, OTHER: 2}, 9, Start("abc", 5, False, OffsetGap("abc", 1, 4), GONE)),
        ({OWN: 6, OTHER: 3}, 9, Start("abc", 5, False, OffsetGap("abc", 1, 4), {OWN: 2, OTHER: 3})),
    ],
)
def test_vector_of_another_replica_says_what_is_recovered_and_what_is_lost(
    vector: Vector, first_lacking: int, start: Start
) -> None:
    assert resume(vector, SHARED, OWN, GONE, first_lacking) == start


def test_offset_counts_in_its_own_log_and_the_vector_elsewhere_or_where_history_has_gone() -> None:
    assert not by_vector(Cursor("abc", 6, {OWN: 3}), SHARED)
    assert not by_vector(Cursor("abc", 3), SHARED)
    assert by_vector(Cursor("abc", 3, {OWN: 3}), SHARED)
    assert by_vector(Cursor("abc", 9, {OWN: 3}), SHARED)
    assert by_vector(Cursor("xyz", 6, {OWN: 3}), SHARED)


@given(
    st.dictionaries(st.sampled_from([OWN, OTHER]), st.integers(0, 6)),
    st.dictionaries(st.sampled_from([OWN, OTHER]), st.integers(0, 6)),
    st.integers(1, 9),
)
def test_start_by_vector_is_never_silently_partial(vector: Vector, gone: Vector, first_lacking: int) -> None:
    start = resume(vector, SHARED, OWN, gone, first_lacking)
    believed = vector.get(OWN, 0) <= 5
    assert start.recovered is (believed and covers(vector, gone))
    assert start.recovered is (start.gap is None)
    assert SHARED.first <= start.next
    assert start.held is not None
    assert covers(start.held, gone)
    if start.gap is not None and believed:
        lost = {feed: range(vector.get(feed, 0) + 1, last + 1) for feed, last in gone.items()}
        told = start.gap.feeds or {}
        assert {feed: list(every) for feed, every in lost.items() if every} == {
            feed: list(range(first, last + 1)) for feed, (first, last) in told.items()
        }


def test_a_log_that_was_put_back_is_not_trusted_with_its_offsets() -> None:
    before = {OWN: 4, OTHER: 2}  # what stands before offset 7
    assert fits({OWN: 4, OTHER: 2}, SHARED, OWN, before)
    assert fits({OWN: 5, OTHER: 9}, SHARED, OWN, before), "the reader has some from elsewhere"
    assert not fits({OWN: 3, OTHER: 3}, SHARED, OWN, before), "other events stand at these offsets now"
    assert not fits({OWN: 6, OTHER: 2}, SHARED, OWN, before), "so many were never published in this log"


Event = tuple[str, int, str]  # feed, sequence, and which of the events that had it


@st.composite
def timelines(draw: st.DrawFn) -> tuple[list[Event], list[Event]]:
    """A log, and the same after it was put back from a copy and went on differently."""

    def grown(log: list[Event], life: str) -> list[Event]:
        held = {feed: sum(of == feed for of, _, _ in log) for feed in (OWN, OTHER, "q" * 16)}
        for feed in draw(st.lists(st.sampled_from(sorted(held)), max_size=8)):
            held[feed] += 1
            log = [*log, (feed, held[feed], life if feed == OWN else "")]  # others' numbers never name another event
        return log

    copy = grown([], "first")
    return grown(copy, "before"), grown(copy, "after")


def vector_upto(log: list[Event], offset: int) -> dict[str, int]:
    held = {OWN: 0}
    for feed, sequence, _ in log[:offset]:
        held[feed] = sequence
    return held


@given(timelines(), st.data())
def test_a_reader_of_a_log_that_was_put_back_loses_nothing_of_other_origins_and_is_given_nothing_of_them_twice(
    lives: tuple[list[Event], list[Event]], data: st.DataObject
) -> None:
    before, after = lives
    offset = data.draw(st.integers(0, len(before)))
    vector = vector_upto(before, offset)
    for feed in (OTHER, "q" * 16):  # some it has from another replica
        vector[feed] = max(vector.get(feed, 0), data.draw(st.integers(0, 12)))
    log = LogState("abc", 1, len(after) + 1, foreign=sum(feed != OWN for feed, _, _ in after))
    cursor = Cursor("abc", offset, vector)
    trusted = not by_vector(cursor, log) and fits(vector, log, OWN, vector_upto(after, offset))
    lacking = [at for at, (feed, sequence, _) in enumerate(after, 1) if sequence > vector.get(feed, 0)]
    start = (
        Start("abc", offset + 1, True, None, vector)
        if trusted
        else resume(vector, log, OWN, {}, lacking[0] if lacking else log.next)
    )
    held = {**vector_upto(after, start.next - 1)}
    for feed, last in (start.held or {}).items():
        held[feed] = max(held.get(feed, 0), last)
    given = [event for event in after[start.next - 1 :] if event[1] > held.get(event[0], 0)]
    assert [event for event in given if event[0] != OWN] == [
        event for event in after if event[0] != OWN and event[1] > vector.get(event[0], 0)
    ]
    if vector[OWN] > log.next - 1 - log.foreign:
        assert [event for event in given if event[0] == OWN] == [event for event in after if event[0] == OWN]
        assert not start.recovered
    else:
        assert {event for event in after if event[0] == OWN and event[1] > vector[OWN]} <= set(given)
