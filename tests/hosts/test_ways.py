"""What becomes of packets on one way, without a network."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.hosts.ways import Way

SENT = 2000


def fates(seed: str, share: float) -> list[bool]:
    way = Way(seed)
    way.loss = share
    return [way.due(0.0) is None for _ in range(SENT)]


def test_the_stated_share_is_lost_and_a_seed_repeats_which() -> None:
    assert fates("7:0:1", 0.2) == fates("7:0:1", 0.2)
    assert fates("7:0:1", 0.2) != fates("8:0:1", 0.2)
    assert 0.17 < sum(fates("7:0:1", 0.2)) / SENT < 0.23
    assert not any(fates("7:0:1", 0.0))
    assert all(fates("7:0:1", 1.0))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.floats(0, 2), st.floats(0, 2))
def test_each_packet_takes_the_delay_and_up_to_the_jitter_and_none_overtakes(
    pauses: list[float], delay_s: float, jitter_s: float
) -> None:
    way = Way("1")
    way.delay_s, way.jitter_s = delay_s, jitter_s
    now, before = 0.0, 0.0
    for pause in pauses:
        now += pause
        at = way.due(now)
        assert at is not None
        assert at >= max(before, now + delay_s)
        assert at <= max(before, now + delay_s + jitter_s)
        before = at


def test_a_cut_loses_what_enters_and_what_is_under_way_until_it_is_healed() -> None:
    way = Way("1")
    way.delay_s = 1.0
    assert way.due(0.0) == 1.0
    way.is_cut = True
    assert way.due(0.5) is None
    assert not way.arrives()
    way.heal()
    assert way.due(1.5) == 1.5
    assert way.arrives()
    assert (way.delivered, way.lost) == (1, 2)
