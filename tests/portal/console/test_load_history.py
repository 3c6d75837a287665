"""Load in ranges of time, from samples in domain.admin's history. portal/web/test/series.test.js keeps the same numbers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from eventing.core.events.cloudevents import Event
from eventing.core.events.history import HistoryBounds
from eventing.core.ids import DOMAIN_ADMIN
from eventing.log import control
from eventing.outbox.administrative_events import LOAD_SAMPLED, PEER_DELIVERY
from portal.console.load_history import RANGES, STEPS, LoadHistories, LoadHistory, PeerBacklogs


def sampled(gateway: str, at: float, interval_s: float = 1.0, **numbers: float) -> dict[str, Any]:
    data = dict.fromkeys(
        ("publishes", "events_in", "bytes_in", "deliveries", "bytes_out", "refused", "sessions", "readings"), 0
    )
    moment = datetime.fromtimestamp(at, UTC).isoformat()
    told: dict[str, Any] = {"gateway": gateway, "at": moment, "interval_s": interval_s, **data, **numbers}
    return {"type": LOAD_SAMPLED, "time": moment, "data": told}


def test_samples_of_several_gateways_add_up_to_the_rate_of_their_step() -> None:
    history = LoadHistory()
    for second in range(1, 11):
        for gateway in ("a", "b"):
            history.add(sampled(gateway, 1000 + second, events_in=5, sessions=3))
    told = history.document()
    assert (told["start"], told["until"]) == (1000, 1010)
    assert told["series"]["events_in"] == [10]
    assert told["series"]["sessions"] == [6]
    assert told["seen"] == {"a": 1010, "b": 1010}


def test_a_sample_of_ten_seconds_is_spread_over_the_steps_that_it_touches() -> None:
    history = LoadHistory()
    history.add(sampled("a", 1014, 10.0, events_in=100))
    told = history.document()
    assert told["start"] == 1000
    assert [round(rate) for rate in told["series"]["events_in"]] == [6, 10], "60 events in 10 s, 40 in 4 s"


def test_two_hours_of_samples_are_one_hour_of_steps_and_silence_is_no_number() -> None:
    history = LoadHistory()
    for second in range(0, 7200, 10):
        if not 5000 < second < 5100:
            history.add(sampled("a", 1_000_000 + second, 10.0, events_in=10))
    told = history.document()
    rates = told["series"]["events_in"]
    assert len(rates) == STEPS
    assert None in rates
    assert {rate for rate in rates if rate is not None} == {1.0}


def test_a_clock_that_was_set_back_begins_the_hour_anew() -> None:
    history = LoadHistory()
    history.add(sampled("a", 1_000_000, events_in=5))
    for second in range(1, 11):
        history.add(sampled("a", 900_000 + second, events_in=7))
    told = history.document()
    assert (told["start"], told["series"]["events_in"]) == (900_000, [7])
    history.add(
        {"type": PEER_DELIVERY, "time": "1970-01-02T00:00:00Z", "data": {"peer": "b", "backlog": 3}}
    )  # told late
    assert history.document()["series"]["events_in"] == [7]


def test_the_backlog_is_that_of_all_peers_together() -> None:
    history = LoadHistory()
    for peer, backlog in (("b.example", 5), ("c.example", 7), ("b.example", 6)):
        moment = datetime.fromtimestamp(1002, UTC).isoformat()
        history.add({"type": PEER_DELIVERY, "time": moment, "data": {"peer": peer, "backlog": backlog}})
    history.add(sampled("a", 1021))
    assert history.document()["series"]["backlog"] == [13, None, 13]


@pytest.mark.usefixtures("redis_url")
def test_what_was_read_is_remembered_and_a_new_numbering_begins_anew() -> None:
    def publish(*events: dict[str, Any]) -> None:
        bodies = [json.dumps({**event, "id": str(number)}).encode() for number, event in enumerate(events)]
        made = [
            Event("/test", f"{event['time']}-{number}", event["type"], body)
            for number, (event, body) in enumerate(zip(events, bodies, strict=True))
        ]
        control.append(DOMAIN_ADMIN, made, HistoryBounds(max_events=100, max_bytes=1024**2, max_age_s=None))

    history = LoadHistories()
    try:
        control.delete_log(DOMAIN_ADMIN)
        assert history.read("1h")["series"] == {}
        publish(sampled("a", 1010, 10.0, events_in=10))
        assert history.read("1h")["series"]["events_in"] == [1]
        publish(sampled("a", 1020, 10.0, events_in=20), {"type": "io.herald.rp.created", "time": "x", "data": {}})
        assert history.read("1h")["series"]["events_in"] == [1, 2]
        assert history.read("1h")["series"]["events_in"] == [1, 2], "nothing is counted twice"
        control.delete_log(DOMAIN_ADMIN)
        publish(sampled("b", 5010, 10.0, events_in=30))
        told = history.read("1h")
        assert (told["series"]["events_in"], told["seen"]) == ([3], {"b": 5010})
    finally:
        control.delete_log(DOMAIN_ADMIN)


def test_longer_ranges_have_longer_steps_of_the_same_samples() -> None:
    short, long = LoadHistory(RANGES["1h"]), LoadHistory(RANGES["6h"])
    for second in range(1, 181):
        for history in (short, long):
            history.add(sampled("a", 6000 + second, events_in=second % 60, cpu_s=0.5, lag_ms=second))
    told = long.document()
    assert (told["start"], told["step_s"], told["steps"]) == (6000, 60, 360)
    assert told["series"]["events_in"] == [29.5] * 3, "60 s of 0 to 59 events"
    assert told["series"]["cpu_s"] == [0.5] * 3
    assert told["series"]["lag_ms"] == [60, 120, 180], "the greatest of the samples in a step"
    assert len(short.document()["series"]["events_in"]) == 18
    assert {name: one.step_s * one.steps for name, one in RANGES.items()} == {
        "15m": 900,
        "1h": 3600,
        "6h": 21_600,
        "24h": 86_400,
        "7d": 604_800,
    }


def test_the_backlog_of_one_peer_holds_from_one_event_to_the_next() -> None:
    backlogs = PeerBacklogs()
    for peer, backlog, at in (
        ("b.example", 9, 100),
        ("b.example", 5, 9_002),
        ("c.example", 7, 9_003),
        ("b.example", 0, 9_021),
    ):
        moment = datetime.fromtimestamp(at, UTC).isoformat()
        backlogs.add({"type": PEER_DELIVERY, "time": moment, "data": {"peer": peer, "backlog": backlog}})
    told = backlogs.document("c.example", RANGES["15m"], 9_039)
    assert (told["start"], told["series"]["backlog"]) == (9_000, [7, 7, 7, 7])
    told = backlogs.document("b.example", RANGES["15m"], 9_039)
    assert (told["start"], len(told["series"]["backlog"])) == (8_140, 90)
    assert told["series"]["backlog"][-5:] == [9, 5, 5, 0, 0]
    assert backlogs.document("d.example", RANGES["7d"], 9_039)["series"] == {}
