"""Delays before trying again: full jitter within a bound that doubles, and what the server asked for on top."""

from __future__ import annotations

import random

import pytest
from herald.backoff import CAP_S, INITIAL_S, STABLE_S, Backoff
from herald.errors import RETRY_AFTER_S_MAX, is_terminal, parse_retry_after


class Highest(random.Random):
    def uniform(self, a: float, b: float) -> float:
        return b


def test_the_bound_doubles_up_to_the_cap() -> None:
    backoff = Backoff(Highest())
    delays = [backoff.next() for _ in range(200)]
    assert delays[:3] == [INITIAL_S, 2 * INITIAL_S, 4 * INITIAL_S]
    assert delays[-1] == CAP_S


def test_delays_are_spread_over_the_whole_range() -> None:
    delays = [Backoff(random.Random(seed)).next() for seed in range(1000)]
    assert min(delays) < 0.05 * INITIAL_S
    assert max(delays) > 0.95 * INITIAL_S


def test_only_a_connection_that_lived_makes_the_next_delay_short_again() -> None:
    backoff = Backoff(Highest())
    for _ in range(5):
        backoff.next()
    backoff.lived(STABLE_S - 1)
    assert backoff.next() > INITIAL_S
    backoff.lived(STABLE_S)
    assert backoff.next() == INITIAL_S


def test_the_server_is_never_asked_earlier_than_it_wanted() -> None:
    assert Backoff(random.Random(1)).next(retry_after_s=3.0) >= 3.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("12", 12.0), (5, 5.0), ("1e9", RETRY_AFTER_S_MAX), ("-1", None), ("nan", None), ("soon", None),
     (None, None)],
)  # fmt: skip
def test_retry_after_is_read_and_clamped(text: object, seconds: float | None) -> None:
    assert parse_retry_after(text) == seconds


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Sat, 21 Nov 2026 12:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2099 12:00:30 GMT", RETRY_AFTER_S_MAX),
        ("Sat, 99 Nov 2026 12:00:30 GMT", None),
    ],
)
def test_a_date_of_a_proxy_is_seconds_from_now(date: str, seconds: float | None) -> None:
    noon = 1_795_262_400.0  # 21 Nov 2026 12:00:00 UTC
    assert parse_retry_after(date, lambda: noon) == seconds


@pytest.mark.parametrize("code", [1000, 1001, 1006, 1011, 1012, 1013, 4000, 4001, 4099])
def test_reconnect_codes_are_not_terminal(code: int) -> None:
    assert not is_terminal(code)


@pytest.mark.parametrize("code", [1002, 1003, 1007, 1008, 1009, 4100, 4101, 4102, 4103, 4104, 4199])
def test_terminal_codes_are_terminal(code: int) -> None:
    assert is_terminal(code)
