"""Leases are asked, granted and stated as each dialect says; zero and no end mean opposite things in them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from eventing.subscriptions.push.ws_eventing.dialects import EVENTING_2004, EVENTING_2011, EventingDialect
from eventing.subscriptions.push.ws_eventing.durations import date_time, duration_s
from eventing.subscriptions.push.ws_eventing.faults import FaultRaised
from eventing.subscriptions.push.ws_eventing.leases import LeaseRequest, lease_request
from eventing.subscriptions.push.ws_eventing.requests import Expires

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
LONGEST_S = 3600
BOTH = pytest.mark.parametrize("dialect", [EVENTING_2004, EVENTING_2011], ids=["2004", "2011"])


def asked(dialect: EventingDialect, text: str, *, best_effort: bool = False) -> LeaseRequest:
    return lease_request(dialect, Expires(text, best_effort), now=NOW, longest_s=LONGEST_S)


def refused(dialect: EventingDialect, text: str) -> str:
    with pytest.raises(FaultRaised) as found:
        asked(dialect, text)
    return found.value.kind.name


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT45S", 45),
        ("PT1M0.5S", 60.5),
        ("P1DT1H", 90_000),
        ("P1M", 28 * 86_400),
        ("P1Y", 365 * 86_400),
        ("P1Y1M", (365 + 28) * 86_400),
        ("-PT5S", -5),
        ("PT0S", 0),
        ("P999999999Y", float("inf")),
    ],
)
def test_a_duration_is_counted_from_now(text: str, seconds: float) -> None:
    assert duration_s(text, NOW) == seconds


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "-P", "5", "PT5", "P5S", "PT1.S", "P1YT", "1D", "PT1e3S", "PT" + "9" * 99 + "S"]
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_s(text, NOW) is None


def test_an_instant_without_a_zone_is_in_utc() -> None:
    assert date_time("2026-01-31T12:00:30") == date_time("2026-01-31T13:00:30+01:00") == NOW.replace(second=30)
    assert date_time("2026-02-30T12:00:30Z") is None
    assert date_time("2026-01-31") is None


@BOTH
def test_a_lease_is_stated_in_the_type_that_was_requested(dialect: EventingDialect) -> None:
    assert asked(dialect, "PT1M").stated(60, NOW) == "PT60S"
    instant = asked(dialect, "2026-01-31T12:01:00Z")
    assert (instant.lease_s, instant.stated(60, NOW)) == (60, "2026-01-31T12:01:00Z")
    none = lease_request(dialect, None, now=NOW, longest_s=LONGEST_S)
    assert (none.lease_s, none.stated(600, NOW)) == (None, "PT600S")


def test_zero_is_a_fault_in_2004_and_no_end_in_2011() -> None:
    assert refused(EVENTING_2004, "PT0S") == "InvalidExpirationTime"
    assert refused(EVENTING_2011, "PT0S") == "UnsupportedExpirationValue"
    assert asked(EVENTING_2011, "PT0S", best_effort=True).lease_s == LONGEST_S


def test_less_is_granted_in_2004_freely_and_in_2011_with_best_effort_only() -> None:
    assert asked(EVENTING_2004, "P30D").lease_s == LONGEST_S
    assert refused(EVENTING_2011, "P30D") == "UnsupportedExpirationValue"
    assert asked(EVENTING_2011, "P30D", best_effort=True).lease_s == LONGEST_S
    assert asked(EVENTING_2011, "PT1H").lease_s == LONGEST_S


@BOTH
@pytest.mark.parametrize("text", ["-PT5S", "PT0.5S", "2026-01-31T11:59:59Z", "2026-01-31T12:00:00Z"])
def test_a_lease_that_has_ended_is_refused(dialect: EventingDialect, text: str) -> None:
    assert refused(dialect, text) == "InvalidExpirationTime"


def test_what_is_neither_duration_nor_instant_is_refused() -> None:
    assert refused(EVENTING_2004, "soon") == "InvalidExpirationTime"
    assert refused(EVENTING_2011, "soon") == "UnsupportedExpirationType"
