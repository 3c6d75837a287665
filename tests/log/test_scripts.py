"""The pure side of the scripts: how runs are split, and what the notification channel's message carries."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from eventing.core.events.cloudevents import Event
from eventing.core.events.cursors import OFFSET_MAX, Cursor
from eventing.log import scripts
from eventing.log.scripts import RUN_BYTES_MAX, RUN_EVENTS_MAX, parse_own_notification
from tests.log.harness import make_event

EPOCHS = st.text("abcdefghijklmnopqrstuvwxyz234567", min_size=1, max_size=26)


def bell_message(epoch: str, first: int, events: list[bytes]) -> bytes:
    """What append.lua publishes."""
    high, low = divmod(first, 1 << 32)
    parts = [bytes((len(epoch),)), epoch.encode(), struct.pack(">II", high, low)]
    return b"".join([*parts, *(struct.pack(">I", len(event)) + event for event in events)])


@given(EPOCHS, st.integers(1, OFFSET_MAX), st.lists(st.binary(max_size=300), max_size=20))
def test_a_bell_message_is_read_as_it_was_written(epoch: str, first: int, events: list[bytes]) -> None:
    assert parse_own_notification(bell_message(epoch, first, events)) == (epoch, first, events)


@given(st.lists(st.integers(1, RUN_BYTES_MAX * 2), min_size=1, max_size=30))
def test_runs_keep_the_order_and_are_as_long_as_the_bound_by_bytes_allows(sizes: list[int]) -> None:
    events = [make_event(str(number)) for number in range(len(sizes))]
    sized = [Event(event.source, event.id, event.type, _Sized(size)) for event, size in zip(events, sizes, strict=True)]
    parts = scripts.runs(sized)
    assert [event for part in parts for event in part] == sized
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        size = sum(len(event.body) for event in part)
        assert part
        assert size <= RUN_BYTES_MAX or len(part) == 1
        assert following is None or size + len(following[0].body) > RUN_BYTES_MAX


@given(st.integers(1, 3 * RUN_EVENTS_MAX + 1))
def test_runs_are_bounded_by_count(count: int) -> None:
    events = [make_event("e")] * count
    lengths = [len(part) for part in scripts.runs(events)]
    assert sum(lengths) == count
    assert all(length == RUN_EVENTS_MAX for length in lengths[:-1])
    assert 1 <= lengths[-1] <= RUN_EVENTS_MAX


def test_epochs_are_new_each_time_and_good_in_a_cursor() -> None:
    epochs = {scripts.new_epoch() for _ in range(1000)}
    assert len(epochs) == 1000
    for epoch in epochs:
        assert Cursor.parse(f"{epoch}:1").epoch == epoch


class _Sized(bytes):
    """Bytes that only have a length."""

    _size: int

    def __new__(cls, size: int) -> _Sized:
        made = super().__new__(cls)
        made._size = size
        return made

    def __len__(self) -> int:
        return self._size
