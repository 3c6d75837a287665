"""Lag and loss: the figures are those of the gap that a pull reports, and the time to loss is that of the present rates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.events.cursors import Cursor
from eventing.core.events.history import HistoryBounds
from eventing.core.events.lag import Lag, WaitingEvents, in_words, lag_by_offset, lag_by_vector, loss_in_s, share_used
from eventing.core.events.positions import LogState, raised, resolve, resume
from eventing.core.events.vectors import merged

BOUNDS = HistoryBounds(500, 1_000_000, None)
OWN, OTHER = "a" * 16, "b" * 16


def waiting(events: int, age_s: float, size: int = 0, newest_age_s: float = 0.0) -> WaitingEvents:
    return WaitingEvents(events, size, age_s, newest_age_s)


def test_a_reader_that_fell_behind_a_history_of_500_events() -> None:
    lag = lag_by_offset(Cursor("e", 0), LogState("e", 6820, 7320), 0)
    assert lag == Lag(7319, 6819)
    assert in_words(lag) == "7,319 behind, 6,819 of them lost"
    assert in_words(Lag(12, 0)) == "12 behind"


@given(
    first=st.integers(1, 50),
    held=st.integers(0, 50),
    offset=st.integers(0, 120),
    oldest_granted=st.integers(0, 100),
    same=st.booleans(),
)
def test_what_is_lost_is_the_gap_that_a_pull_reports(
    first: int, held: int, offset: int, oldest_granted: int, same: bool
) -> None:
    log = LogState("e", first, first + held)
    cursor, oldest_granted = Cursor("e" if same else "old", offset), min(oldest_granted, log.next)
    lag = lag_by_offset(cursor, log, oldest_granted)
    start = raised(resolve(cursor, log), oldest_granted)
    gap = 0 if start.gap is None else start.gap.end - start.gap.start + 1
    assert lag.lost == gap
    assert lag.events - lag.lost == log.next - start.next


@given(
    acked=st.dictionaries(st.sampled_from([OWN, OTHER]), st.integers(0, 30)),
    before=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    more=st.tuples(st.integers(0, 20), st.integers(0, 20)),
)
def test_by_vector_it_is_the_gap_of_its_feeds(
    acked: dict[str, int], before: tuple[int, int], more: tuple[int, int]
) -> None:
    """At a replica, whose log has other offsets than the one where the subscription was acknowledged."""
    stood = dict(zip((OWN, OTHER), before, strict=True))
    held = {feed: stood[feed] + extra for feed, extra in zip((OWN, OTHER), more, strict=True)}
    acked = {feed: min(at, held[feed]) for feed, at in acked.items()}
    lag = lag_by_vector(acked, held, stood)
    log = LogState("e", sum(before) + 1, sum(held.values()) + 1, foreign=held[OTHER])
    start = resume(acked, log, OWN, stood, log.first)
    lost = {} if start.gap is None else start.gap.feeds or {}
    assert lag.lost == sum(last - begin + 1 for begin, last in lost.values())
    assert lag.events == sum(held[feed] - acked.get(feed, 0) for feed in held)
    assert lag_by_vector(merged(acked, held), held, stood) == Lag(0, 0)


@pytest.mark.parametrize(
    ("found", "bounds", "acked_per_s", "loss_s"),
    [
        pytest.param(waiting(250, 250), BOUNDS, 0, 250, id="one event a second, half is left"),
        pytest.param(waiting(250, 250, 800_000), BOUNDS, 0, 62.5, id="the bytes end first"),
        pytest.param(waiting(500, 9), BOUNDS, 0, 0, id="the next event costs one"),
        pytest.param(waiting(500, 99_999, 0, 99_000), BOUNDS, 0, 0, id="also after a pause"),
        pytest.param(waiting(300, 600, 0, 500), BOUNDS, 0, None, id="the publisher has paused"),
        pytest.param(waiting(5, 300, 0, 60), HistoryBounds(10, 10**6), 0, 300, id="a slow publisher has not"),
        pytest.param(waiting(250, 250), BOUNDS, 0.5, 500, id="the reader takes half of what comes"),
        pytest.param(waiting(400, 4), BOUNDS, 99, None, id="the reader keeps up"),
        pytest.param(waiting(400, 4), BOUNDS, 5000, None, id="the reader catches up"),
        pytest.param(waiting(1, 3000, 0, 3000), HistoryBounds(500, 10**6, 3600), 0, 600, id="by age nothing need come"),
        pytest.param(waiting(0, 0), BOUNDS, 0, None, id="nothing waits"),
    ],
)
def test_time_to_loss(found: WaitingEvents, bounds: HistoryBounds, acked_per_s: float, loss_s: Any) -> None:
    assert loss_in_s(found, bounds, acked_per_s) == (None if loss_s is None else pytest.approx(loss_s))


def test_the_share_of_the_history_that_waits_is_that_of_the_nearest_bound() -> None:
    assert share_used(waiting(250, 10, 900_000), BOUNDS) == pytest.approx(0.9)
    assert share_used(waiting(1, 30), HistoryBounds(500, 10**6, 60)) == pytest.approx(0.5)
