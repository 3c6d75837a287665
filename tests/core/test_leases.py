"""Leases: granted for what was asked or less, warned of before they end, and never broken by a renewal."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.errors import InvalidRequest
from eventing.core.leases import USE_LEASE_S_MIN, WARNING_S_MAX, grant, renew, renewed_by_use_from

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAY = 86_400
durations = st.integers(1, 10**9)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_grant_counts_from_now_and_warns_when_a_fifth_is_left() -> None:
    granted = grant(1000, NOW, default_s=60, longest_s=DAY)
    assert (granted.granted_s, granted.warn_at, granted.expires_at) == (1000, after(800), after(1000))


def test_nothing_asked_gives_the_default() -> None:
    assert grant(None, NOW, default_s=60, longest_s=DAY).granted_s == 60


def test_longer_than_the_longest_is_shortened() -> None:
    assert grant(10**30, NOW, default_s=60, longest_s=DAY).expires_at == after(DAY)


@pytest.mark.parametrize("asked_s", [0, -1])
def test_less_than_a_second_is_refused(asked_s: int) -> None:
    with pytest.raises(InvalidRequest, match="at least 1 second"):
        grant(asked_s, NOW, default_s=60, longest_s=DAY)
    with pytest.raises(InvalidRequest, match="at least 1 second"):
        renew(after(5), asked_s, NOW, default_s=60, longest_s=DAY)


@given(durations, st.integers(1, 366 * DAY))
def test_warning_lies_before_the_end_and_not_too_early(asked_s: int, longest_s: int) -> None:
    granted = grant(asked_s, NOW, default_s=60, longest_s=longest_s)
    assert granted.granted_s == min(asked_s, longest_s)
    assert NOW <= granted.warn_at < granted.expires_at
    assert granted.expires_at - granted.warn_at <= timedelta(seconds=WARNING_S_MAX)


@given(st.floats(-DAY, 366 * DAY), durations, st.integers(1, 366 * DAY))
def test_renewal_never_ends_earlier_than_the_running_lease(left_s: float, asked_s: int, longest_s: int) -> None:
    running_until = after(left_s)
    granted = renew(running_until, asked_s, NOW, default_s=60, longest_s=longest_s)
    assert granted.expires_at == max(running_until, after(min(asked_s, longest_s)))
    assert NOW <= granted.warn_at < granted.expires_at
    assert granted.granted_s >= 1


def test_renewal_of_a_shorter_lease_counts_from_now() -> None:
    assert renew(after(10), 100, NOW, default_s=60, longest_s=DAY).expires_at == after(100)
    assert renew(after(-10), None, NOW, default_s=60, longest_s=DAY).expires_at == after(60)


@given(durations, st.integers(0, DAY))
def test_use_renews_a_lease_once_a_quarter_of_it_or_an_hour_has_passed(asked_s: int, used_after_s: int) -> None:
    granted = grant(asked_s, NOW, default_s=DAY, longest_s=30 * DAY)
    begin = renewed_by_use_from(granted.expires_at, asked_s, default_s=DAY, longest_s=30 * DAY)
    if granted.granted_s < USE_LEASE_S_MIN:
        assert begin is None, "the sweep might come too late"
        return
    assert begin is not None
    assert begin == after(min(granted.granted_s / 4, 3600))
    assert begin < granted.warn_at, "what is in use is not warned of"
    assert granted.expires_at - begin >= timedelta(seconds=granted.granted_s * 3 / 4)


def test_use_asks_for_the_default_where_nothing_was_asked() -> None:
    assert renewed_by_use_from(after(DAY), None, default_s=DAY, longest_s=30 * DAY) == after(3600)
    assert renewed_by_use_from(after(30 * DAY), None, default_s=DAY, longest_s=30 * DAY) == after(29 * DAY + 3600)
