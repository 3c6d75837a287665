"""History bounds: granted as asked or refused whole; a subscription's bounds lie within its RP's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.errors import InvalidRequest, QuotaExceeded
from eventing.core.events.history import AGE_S_MAX, BYTES_DEFAULT_MIN, EVENTS_DEFAULT, HistoryBounds, admit, tightest

EVENTS_MAX, BYTES_MAX = 100_000, 64 * 1024 * 1024
ages = st.none() | st.integers(1, AGE_S_MAX)
bounds = st.builds(HistoryBounds, st.integers(1, EVENTS_MAX), st.integers(1, BYTES_MAX), ages)


def ask(events: int | None = None, size: int | None = None, age: int | None = None) -> HistoryBounds:
    return admit(events, size, age, events_max=EVENTS_MAX, bytes_max=BYTES_MAX)


def test_nothing_asked_gives_the_defaults() -> None:
    assert ask() == HistoryBounds(EVENTS_DEFAULT, BYTES_DEFAULT_MIN, None)


def test_last_event_only_can_be_asked() -> None:
    assert ask(events=1).max_events == 1


def test_many_events_reserve_bytes_for_them_up_to_what_is_allowed() -> None:
    assert ask(events=10_000).max_bytes == 10_000 * 1024
    assert ask(events=EVENTS_MAX).max_bytes == BYTES_MAX


@given(bounds)
def test_what_is_within_the_limits_is_granted_exactly(asked: HistoryBounds) -> None:
    assert ask(asked.max_events, asked.max_bytes, asked.max_age_s) == asked


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("name", ["events", "size", "age"])
def test_bound_below_one_is_refused_by_name(name: str, value: int) -> None:
    with pytest.raises(InvalidRequest, match=r"history\.max_(events|bytes|age_s) is at least 1"):
        ask(**{name: value})


@pytest.mark.parametrize(
    ("asked", "limit"),
    [
        ({"events": EVENTS_MAX + 1}, EVENTS_MAX),
        ({"size": BYTES_MAX + 1}, BYTES_MAX),
        ({"age": AGE_S_MAX + 1}, AGE_S_MAX),
    ],
)
def test_more_than_the_limit_is_refused_whole_and_says_the_limit(asked: dict[str, int], limit: int) -> None:
    with pytest.raises(QuotaExceeded, match=str(limit)) as caught:
        ask(**asked)
    assert caught.value.document()["limit"] == limit


@given(bounds, bounds)
def test_tightest_exceeds_neither(asked: HistoryBounds, granted: HistoryBounds) -> None:
    both = tightest(asked, granted)
    assert both == tightest(granted, asked)
    for one in (asked, granted):
        assert both.max_events <= one.max_events
        assert both.max_bytes <= one.max_bytes
        assert one.max_age_s is None or (both.max_age_s is not None and both.max_age_s <= one.max_age_s)
    assert both.max_age_s in (asked.max_age_s, granted.max_age_s)
