"""The last hour of load, from samples in domain.admin's history. portal/web/test/series.test.js keeps the same numbers."""

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
from portal.console.load_history import STEPS, LoadHistory


def sampled(gateway: str, at: float, interval_s: float = 1.0, **numbers: int) -> dict[str, Any]:
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

    history = LoadHistory()
    try:
        control.delete_log(DOMAIN_ADMIN)
        assert history.read()["series"] == {}
        publish(sampled("a", 1010, 10.0, events_in=10))
        assert history.read()["series"]["events_in"] == [1]
        publish(sampled("a", 1020, 10.0, events_in=20), {"type": "io.herald.rp.created", "time": "x", "data": {}})
        assert history.read()["series"]["events_in"] == [1, 2]
        assert history.read()["series"]["events_in"] == [1, 2], "nothing is counted twice"
        control.delete_log(DOMAIN_ADMIN)
        publish(sampled("b", 5010, 10.0, events_in=30))
        told = history.read()
        assert (told["series"]["events_in"], told["seen"]) == ([3], {"b": 5010})
    finally:
        control.delete_log(DOMAIN_ADMIN)
