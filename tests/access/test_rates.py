"""Rates: a bucket never admits more than it says, whoever waits what it says is admitted, and nobody gets a bucket
refilled by having it forgotten."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.access.rules.limits import LINE_S_MAX, Limits
from eventing.access.rules.rates import EXAMINED_MAX, Bucket, Rate, Table
from eventing.core.client_address import address_key, client_address, parse_networks
from eventing.core.config import Config
from eventing.core.errors import ConfigError, RateLimited, Unavailable

RATES = st.builds(Rate, st.floats(0.1, 1e6, allow_nan=False), st.sampled_from([0.5, 1.0, 2.0, 10.0, 3600.0]))
BEGIN = st.sampled_from([0.0, 1.0, 123_456.789, 3e7])  # a steady clock's first reading: a machine up for a year
STEPS = st.lists(
    st.tuples(
        st.one_of(st.floats(0, 3), st.floats(-5, 0), st.just(0.0), st.sampled_from([1e-9, 86_400.0, 1e6])),
        st.one_of(st.integers(1, 5), st.integers(1, 5_000_000)),
        st.booleans(),
    ),
    max_size=60,
)


@given(RATES, BEGIN, STEPS)
def test_never_more_than_the_rate_and_one_burst(rate: Rate, begin: float, steps: list[tuple[float, int, bool]]) -> None:
    """Over every stretch of time, with time that stands, jumps far ahead or goes backwards, and with refunds."""
    bucket, now = Bucket(rate), begin
    admitted: list[tuple[float, float]] = []
    latest = float("-inf")
    for step_s, amount, used in steps:
        now += step_s
        latest = max(latest, now)
        if bucket.take(amount, now):
            if used:
                admitted.append((latest, amount))
            else:
                bucket.refund(amount)
    largest = max((amount for _, amount in admitted), default=0)
    most_at_once = max(rate.per_s * rate.window_s, largest)
    for first, last in itertools.combinations_with_replacement(range(len(admitted)), 2):
        took = sum(amount for _, amount in admitted[first : last + 1])
        seconds = admitted[last][0] - admitted[first][0]
        assert took <= (rate.per_s * seconds + most_at_once) * (1 + 1e-9) + rate.per_s * 1e-6


@given(RATES, BEGIN, STEPS, st.integers(1, 1_000_000))
def test_whoever_waits_as_told_is_admitted(
    rate: Rate, begin: float, steps: list[tuple[float, int, bool]], wanted: int
) -> None:
    bucket, now = Bucket(rate), begin
    for step_s, amount, _ in steps:
        now += step_s
        bucket.take(amount, now)
    wait_s = bucket.wait_s(wanted, now)
    assert wait_s >= 0
    assert bucket.take(wanted, now + wait_s)


@given(RATES, BEGIN, STEPS, st.integers(1, 1_000_000))
def test_nothing_is_to_be_waited_for_exactly_when_it_would_be_admitted(
    rate: Rate, begin: float, steps: list[tuple[float, int, bool]], wanted: int
) -> None:
    bucket, now = Bucket(rate), begin
    for step_s, amount, _ in steps:
        now += step_s
        bucket.take(amount, now)
    free = bucket.wait_s(wanted, now) == 0
    remaining, _ = bucket.left(now)
    assert bucket.take(wanted, now) is free
    if remaining >= wanted:
        assert free or remaining == wanted  # at the edge rounding may go either way


def test_what_is_refunded_can_be_taken_again_and_never_more() -> None:
    bucket = Bucket(Rate(10, 1))
    assert bucket.take(10, 100.0)
    assert not bucket.take(1, 100.0)
    bucket.refund(4)
    assert bucket.take(4, 100.0)
    assert not bucket.take(1, 100.0)
    bucket.refund(10)
    assert bucket.take(10, 200.0)  # long full: the refund did not make it fuller
    assert not bucket.take(1, 200.0)


def test_a_huge_pause_gives_one_burst_and_time_going_backwards_gives_nothing() -> None:
    bucket = Bucket(Rate(10, 2))
    assert bucket.take(20, 0.0)
    assert bucket.take(20, 1e9)
    assert not bucket.take(1, 1e9)
    assert not bucket.take(1, 5.0)
    assert bucket.take(10, 1e9 + 1)


def test_an_amount_above_the_burst_waits_for_a_full_bucket_and_is_paid_off() -> None:
    bucket = Bucket(Rate(10, 1))
    assert bucket.take(1, 0.0)
    assert not bucket.take(50, 0.0)
    assert bucket.wait_s(50, 0.0) == pytest.approx(0.1, abs=1e-4)
    assert bucket.take(50, 0.2)
    assert bucket.wait_s(1, 0.2) == pytest.approx(4.1, abs=1e-4)
    assert not bucket.take(1, 4.2)
    assert bucket.take(1, 4.4)


def test_no_limit_is_none() -> None:
    bucket = Bucket(Rate(0, 1))
    assert all(bucket.take(10**12, now) for now in (5.0, 5.0, 1.0, 0.0))
    assert bucket.wait_s(10**12, 0.0) == 0


def test_debt_is_bounded() -> None:
    bucket = Bucket(Rate(1, 10))
    for _ in range(1000):
        bucket.charge(1, 0.0, debt_s_max=5.0)
    assert bucket.wait_s(1, 0.0) == pytest.approx(6.0, abs=0.01)


@given(st.lists(st.tuples(st.integers(0, 30), st.floats(0, 0.5), st.integers(1, 3)), max_size=200))
def test_inventing_names_never_gets_a_bucket_refilled(asked: list[tuple[int, float, int]]) -> None:
    """Against a table that never forgets: whatever the small table admits for a name, the unbounded one admits too."""
    rate = Rate(2, 2)
    small = Table(lambda _: Bucket(rate), 4)
    never_forgets: dict[int, Bucket] = {}
    now = 0.0
    for name, step_s, amount in asked:
        now += step_s
        kept = small.get(str(name), now)
        true = never_forgets.setdefault(name, Bucket(rate))
        if kept is small._crowd:  # shares with all who found no room, and may get less
            continue
        if kept.take(amount, now):
            assert true.take(amount, now)
        assert len(small) <= 4


def test_a_full_table_gives_way_only_where_nothing_is_owed() -> None:
    table = Table(lambda _: Bucket(Rate(1, 1)), EXAMINED_MAX)
    for number in range(EXAMINED_MAX):
        assert table.get(str(number), 0.0).take(1, 0.0)
    assert table.get("late", 0.5) is table.get("later", 0.5)
    assert table.peek("0") is not None
    table.get("new", 2.0)
    assert table.peek("new") is not None
    assert len(table) == EXAMINED_MAX


# Limits: what is made of the buckets


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_publish_is_counted_by_all_limits_or_by_none() -> None:
    clock = Clock()
    limits = Limits(Config(publish_events_per_s=10, rp_events_per_s=4, rate_window_s=1), clock)
    ann, ben = limits.principal("ann"), limits.principal("ben")
    limits.publish(ann, "x", 4, 400)
    with pytest.raises(RateLimited) as caught:
        limits.publish(ann, "x", 2, 200)
    assert caught.value.extra["limit"] == "rp-publish-events"
    limits.publish(ann, "y", 4, 400)  # ann's own six were given back
    limits.publish(ann, "z", 2, 200)
    with pytest.raises(RateLimited) as caught:
        limits.publish(ann, "w", 1, 100)
    assert caught.value.extra["limit"] == "publish-events"
    limits.publish(ben, "w", 4, 100)  # nobody else pays for it


def test_what_is_to_be_waited_is_the_longest_of_all() -> None:
    clock = Clock()
    settings = Config(publish_events_per_s=100, publish_bytes_per_s=100, rp_events_per_s=1, rate_window_s=1)
    limits = Limits(settings, clock)
    ann = limits.principal("ann")
    limits.publish(ann, "x", 7, 100)
    clock.now += 0.25
    with pytest.raises(RateLimited) as caught:
        limits.publish(ann, "x", 1, 80)
    assert caught.value.extra["limit"] == "rp-publish-events"
    assert caught.value.retry_after_s == 7
    clock.now += 7
    limits.publish(ann, "x", 1, 80)


def test_rates_and_connections_are_shared_out_among_gateways() -> None:
    limits = Limits(Config(gateways=4, publish_events_per_s=8, sessions_per_principal=10, rate_window_s=1), Clock())
    ann = limits.principal("ann")
    limits.publish(ann, "x", 2, 1)
    with pytest.raises(RateLimited):
        limits.publish(ann, "x", 1, 1)
    for _ in range(3):
        limits.session_opened(ann)
    with pytest.raises(RateLimited):
        limits.session_opened(ann)
    limits.session_closed(ann)
    limits.session_opened(ann)


def test_shares_follow_the_number_of_gateways_that_live() -> None:
    clock = Clock()
    settings = Config(publish_events_per_s=16, rp_events_per_s=16, sessions_per_principal=6, rate_window_s=1)
    limits = Limits(settings, clock)
    ann = limits.principal("ann")

    def admitted() -> int:
        count = 0
        with suppress(RateLimited):
            while True:
                limits.publish(ann, "x", 1, 1)
                count += 1
        return count

    assert admitted() == 16
    limits.share(4)
    clock.now += 1
    assert admitted() == 4
    assert limits.of_account(ann)[1].limit == 4
    assert b'"publish-events";q=4;w=1' in limits.policy_field(True)
    limits.share(1)  # the others have gone: what is owed is owed for the same time
    clock.now += 0.5
    assert admitted() == 8
    limits.share(2)
    for _ in range(3):
        limits.session_opened(ann)
    with pytest.raises(RateLimited):
        limits.session_opened(ann)
    limits.share(1)
    limits.session_opened(ann)


def test_those_who_are_put_off_at_the_door_are_told_times_of_their_own() -> None:
    limits = Limits(Config(accepts_per_s=10), Clock())
    told = []
    for number in range(1000):
        try:
            limits.accept()
        except Unavailable as error:
            told.append(error.retry_after_s or 0)
        else:
            assert number < 10
    assert told == sorted(told)
    assert (told[0], told[-1]) == (1, LINE_S_MAX)
    assert max(told.count(second) for second in range(1, int(LINE_S_MAX))) == 10  # what is taken in that second


def test_an_account_with_connections_is_never_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventing.access.rules.limits.ACCOUNTS_MAX", 4)
    clock = Clock()
    limits = Limits(Config(), clock)
    ann = limits.principal("ann")
    limits.session_opened(ann)
    for number in range(50):
        clock.now += 10
        limits.principal(str(number))
    assert limits.principal("ann") is ann


# The client's address


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),  # a stranger who writes the header is not believed
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["6.6.6.6, 198.51.100.1"], "198.51.100.1"),  # what the client wrote stands left of what we saw
        ("10.0.0.1", ["6.6.6.6", "198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        ("10.0.0.1", ["10.2.2.2, 10.3.3.3"], "10.2.2.2"),
        ("10.0.0.1", ["198.51.100.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", ["2001:0db8::0001"], "2001:db8::1"),
        ("10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("fd00::1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1, " + "10.1.1.1, " * 500 + "10.1.1.1"], "10.1.1.1"),  # no more hops than are looked at
        ("10.0.0.1", ["x" * 100_000], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("", ["198.51.100.1"], ""),
    ],
)
def test_only_our_own_proxies_are_believed(peer: str, forwarded: list[str], address: str) -> None:
    assert client_address(peer, forwarded, parse_networks("10.0.0.0/8, fd00::/8")) == address
    assert client_address(peer, forwarded, ()) == peer


def test_a_household_of_ipv6_addresses_counts_as_one() -> None:
    assert address_key("2001:db8:1:2:aaaa::1") == address_key("2001:db8:1:2:bbbb::9") == "2001:db8:1:2::/64"
    assert address_key("2001:db8:1:3::1") != address_key("2001:db8:1:2::1")
    assert address_key("::ffff:198.51.100.1") == address_key("198.51.100.1") == "198.51.100.1"
    assert address_key("") == ""


@pytest.mark.parametrize("networks", ["10.0.0.0/33", "everybody", "10.0.0.1/8", ", ".join(["10.0.0.1"] * 65)])
def test_networks_that_are_none_refuse_the_start(networks: str) -> None:
    with pytest.raises(ConfigError, match="HERALD_TRUSTED_PROXIES"):
        Config.from_env({"HERALD_TRUSTED_PROXIES": networks})
