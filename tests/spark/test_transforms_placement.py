"""The placement report: what readers from elsewhere take, and what a replica would have taken."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from spark.transforms import placement
from tests.spark.frames import AT, Frames, distinct, ordered
from tests.spark.samples import HOME

pytestmark = [pytest.mark.long, pytest.mark.processes]

THERE = "there.example"
READINGS = {
    **{"rp": "string", "domain": "string", "minute": "bigint", "principal": "string", "client": "string"},
    **{"deliveries": "bigint", "bytes_now": "bigint", "once": "bigint"},
}
MINUTE = round(AT.timestamp()) // 60


def read(**more: Any) -> dict[str, Any]:
    return {"operation": "deliver", "issuer": THERE, "principal": f"{THERE}#q"} | more


def reading(rp: str, bytes_now: int, once: int, principal: str = "q", minute: int = 0, **more: Any) -> dict[str, Any]:
    known = {"rp": rp, "bytes_now": bytes_now, "once": once, "principal": principal, "minute": minute}
    return known | {"domain": THERE, "deliveries": 1} | more


def test_readings_are_of_good_deliveries_to_principals_from_elsewhere(frames: Frames) -> None:
    given = frames.records(
        placement.COLUMNS,
        read(events=10, bytes_out=100, sessions=3),  # 33 and a third for each session
        read(events=1, bytes_out=7, time=AT + timedelta(seconds=59, microseconds=999_999), operation="history"),
        read(events=2, bytes_out=8, sessions=2, time=AT + timedelta(minutes=1)),
        read(events=3, bytes_out=9, sessions=1, client="herald.v1"),
        *(read(bytes_out=50) | other for other in ({"issuer": ""}, {"issuer": HOME}, {"rp": ""})),
        *(read(bytes_out=50) | other for other in ({"outcome": "failed"}, {"operation": "publish"})),
    )
    assert distinct(placement.readings(given, HOME), *READINGS) == {
        ("rp1", THERE, MINUTE, f"{THERE}#q", "http", 11, 107, 34 + 7),
        ("rp1", THERE, MINUTE + 1, f"{THERE}#q", "http", 2, 8, 4),
        ("rp1", THERE, MINUTE, f"{THERE}#q", "herald.v1", 3, 9, 9),
    }


def test_of_each_minute_a_replica_takes_what_the_greatest_reader_took(frames: Frames) -> None:
    given = frames.of(
        READINGS,
        reading("rp1", 30, 10),
        reading("rp1", 20, 20, client="herald.v1"),
        reading("rp1", 5, 5, "r"),
        reading("rp1", 7, 7, minute=1),
        reading("rp1", 9, 9, domain="yonder.example"),
    )
    assert ordered(placement.advice(given), of="placement.advice") == [
        ("rp1", THERE, 2, 4, 62, 20 + 7, 35, False),
        ("rp1", "yonder.example", 1, 1, 9, 9, 0, False),
    ]


def test_a_replica_is_advised_from_its_bounds_on(frames: Frames) -> None:
    least = placement.SAVING_BYTES_MIN
    given = frames.of(
        READINGS,
        *(reading("at every bound", least, least, who) for who in "qr"),
        *(reading("too few bytes", least - 1, least - 1, who) for who in "qr"),
        reading("less than half", least + 1, least + 1, "q"),
        reading("less than half", least, 0, "r"),
        reading("one reader", 2 * least, least),
        reading("a tie by name", 2 * least, least),
    )
    assert ordered(placement.advice(given), "rp", "saved_bytes", "recommended") == [
        ("a tie by name", least, False),
        ("at every bound", least, True),
        ("less than half", least, False),
        ("one reader", least, False),
        ("too few bytes", least - 1, False),
    ]


def test_domains_sum_what_is_advised(frames: Frames) -> None:
    advised = [
        {"rp": "rp1", "domain": THERE, "bytes_now": 10, "saved_bytes": 6, "recommended": True},
        {"rp": "rp2", "domain": THERE, "bytes_now": 20, "saved_bytes": 15, "recommended": True},
        {"rp": "rp3", "domain": THERE, "bytes_now": 40, "saved_bytes": 9},
        {"rp": "rp1", "domain": "b.example", "bytes_now": 8, "saved_bytes": 8},
        {"rp": "rp1", "domain": "a.example", "bytes_now": 1},
    ]
    found = placement.domains(frames.table("placement", "advice", *advised))
    assert ordered(found, of="placement.domains") == [
        (THERE, 3, 2, 70, 21),
        ("a.example", 1, 0, 1, 0),
        ("b.example", 1, 0, 8, 0),
    ]


def test_no_readings_make_empty_tables(frames: Frames) -> None:
    nothing = placement.readings(frames.records(placement.COLUMNS), HOME)
    assert ordered(placement.advice(nothing), of="placement.advice") == []
    assert ordered(placement.domains(frames.table("placement", "advice")), of="placement.domains") == []
