"""The federation report: what peers asked, their silences, and what came after those."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from spark.transforms import federation
from tests.spark.frames import AT, Frames, distinct, ordered

pytestmark = [pytest.mark.long, pytest.mark.processes]

END = AT + timedelta(hours=3)


def asked(second: float, peer: str = "there.example", **more: Any) -> dict[str, Any]:
    """A peer's request so many seconds after AT."""
    known = {"operation": "federation.exchange", "principal": "", "issuer": "", "rp": ""}
    return known | {"peer": peer, "time": AT + timedelta(seconds=second)} | more


def micros(at: Any) -> int:
    return round(at.timestamp() * 1_000_000)


def test_requests_are_of_peers_and_of_federation(frames: Frames) -> None:
    given = frames.records(
        federation.COLUMNS, asked(0), asked(1, peer=""), asked(2, operation="publish"), asked(3, outcome="refused")
    )
    found = federation.requests(given)
    assert found.columns == list(federation.COLUMNS)
    assert distinct(found, "number") == {(0,), (3,)}


def test_a_peer_is_silent_from_a_minute_on_and_its_backlog_lasts_as_long(frames: Frames) -> None:
    given = frames.records(
        federation.COLUMNS,
        asked(0, bytes_in=1, latency_us=4),
        asked(59.999999, bytes_in=2, latency_us=4),  # no silence yet
        asked(119.999999, bytes_in=10, latency_us=4),  # one of exactly a minute
        asked(119.999999, bytes_in=20, latency_us=4),  # at the same time
        asked(150, bytes_in=1_000, outcome="failed", reason="internal", latency_us=9),  # brings nothing, ends nothing
        asked(179.999998, bytes_in=40, bytes_out=7, latency_us=40),  # the last microsecond of the minute after it
        asked(179.999999, bytes_in=80),  # too late to have waited, and without a latency
        asked(400, bytes_in=5, latency_us=4),
        asked(60, "once.example", count=3, events=2, bytes_in=6),
        asked(0, "bad.example", outcome="refused", reason="forbidden", count=2),
        asked(10, "bad.example", outcome="failed", reason="internal"),
    )
    assert ordered(federation.peers(given, micros(END)), of="federation.peers") == [
        ("bad.example", 3, 2, 1, 0, 0, 0, None, None, 0, 0, None, None, AT, AT + timedelta(seconds=10)),
        ("once.example", 3, 0, 0, 2, 6, 0, None, 3 * 3600 - 60.0, 0, 0, None, None, *[AT + timedelta(minutes=1)] * 2),
        (
            *("there.example", 8, 0, 1, 0, 1_158, 7, 220.000001, 3 * 3600 - 400.0, 2, 70, 4.0, 41.5),
            *(AT, AT + timedelta(seconds=400)),
        ),
    ]


def test_without_an_end_silence_lasts_to_the_last_request_of_all(frames: Frames) -> None:
    given = frames.records(
        federation.COLUMNS, asked(0), asked(90, "yonder.example", outcome="refused"), asked(30, "yonder.example")
    )
    found = federation.peers(given, None)
    assert ordered(found, "peer", "silent_s") == [("there.example", 90.0), ("yonder.example", 60.0)]


def test_peers_are_counted_by_the_hour(frames: Frames) -> None:
    given = frames.records(
        federation.COLUMNS,
        asked(3599.999999, count=2, events=3, bytes_in=4, bytes_out=5),
        asked(3600, outcome="refused"),
        asked(3600, outcome="failed", count=3),
        asked(3600, "yonder.example"),
    )
    later = AT + timedelta(hours=1)
    assert distinct(federation.peer_hours(given), of="federation.peer_hours") == {
        ("there.example", AT, 2, 0, 0, 3, 4, 5),
        ("there.example", later, 4, 1, 3, 0, 0, 0),
        ("yonder.example", later, 1, 0, 0, 0, 0, 0),
    }


def test_failures_come_by_number_then_by_name(frames: Frames) -> None:
    refused = {"outcome": "refused", "reason": "forbidden"}
    given = frames.records(
        federation.COLUMNS,
        asked(0),
        asked(1, "b.example", **refused),
        asked(2, "a.example", **refused),
        asked(3, "a.example", outcome="failed", reason="internal", count=4),
        asked(4, "a.example", operation="federation.greet", **refused),
        asked(9, "a.example", **refused | {"reason": "bounds"}),
        asked(8, "a.example", outcome="failed", reason="internal"),
    )
    at = [AT + timedelta(seconds=second) for second in range(10)]
    assert ordered(federation.failures(given), of="federation.failures") == [
        ("a.example", "federation.exchange", "failed", "internal", 5, at[3], at[8]),
        ("a.example", "federation.exchange", "refused", "bounds", 1, at[9], at[9]),
        ("a.example", "federation.exchange", "refused", "forbidden", 1, at[2], at[2]),
        ("a.example", "federation.greet", "refused", "forbidden", 1, at[4], at[4]),
        ("b.example", "federation.exchange", "refused", "forbidden", 1, at[1], at[1]),
    ]


def test_no_requests_make_empty_tables(frames: Frames) -> None:
    nothing = federation.requests(frames.records(federation.COLUMNS))
    for end in (None, micros(END)):
        assert ordered(federation.peers(nothing, end), of="federation.peers") == []
    assert ordered(federation.peer_hours(nothing), of="federation.peer_hours") == []
    assert ordered(federation.failures(nothing), of="federation.failures") == []
