"""The calendar gives entries in the order of their times, and those of one millisecond in the order of their addition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eventing.sim.calendar import BUCKET_S, Calendar


@given(st.lists(st.floats(0, 50), max_size=60))
def test_entries_are_due_in_order_and_never_early(times: list[float]) -> None:
    calendar: Calendar[tuple[float, int]] = Calendar()
    for number, at in enumerate(times):
        calendar.add(at, (at, number))
    taken = [(now, entry) for now, entries in calendar.until(60.0) for entry in entries]
    assert len(taken) == len(times)
    assert len(calendar) == 0
    assert all(0 < now - at <= 2 * BUCKET_S for now, (at, _) in taken)
    order = [(now, number) for now, (_, number) in taken]
    assert order == sorted(order)


def test_an_entry_added_for_now_is_due_in_the_next_millisecond() -> None:
    calendar: Calendar[str] = Calendar()
    calendar.add(1.0, "first")
    seen = []
    for now, entries in calendar.until(2.0):
        seen += entries
        if entries == ["first"]:
            calendar.add(now, "second")
    assert seen == ["first", "second"]
    calendar.add(3.0, "later")
    assert list(calendar.until(2.5)) == []


def test_what_is_added_without_delay_is_due_in_the_next_bucket_at_every_time() -> None:
    """With floats, the time of bucket 1001 is in bucket 1001 again: the world stood still."""
    calendar: Calendar[int] = Calendar()
    calendar.add(0.0, 0)
    last = 0.0
    for now, entries in calendar.until(5.0):
        assert entries == [round(now * 1000) - 1]
        assert now > last
        last = now
        calendar.add(now, entries[0] + 1)
    assert last == 5.0
