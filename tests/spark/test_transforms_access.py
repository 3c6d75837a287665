"""The access report: sums of who used what, and what stands out in them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest

from spark.transforms import access
from tests.spark.frames import AT, Frames, Row, distinct, ordered
from tests.spark.samples import HOME, utc

pytestmark = [pytest.mark.long, pytest.mark.processes]

THERE = "there.example"
HOUR, DAY, TICK = timedelta(hours=1), timedelta(days=1), timedelta(microseconds=1)


def test_usage_sums_what_agrees_in_everything_but_time(frames: Frames) -> None:
    given = frames.records(
        access.USAGE_COLUMNS,
        {"time": AT + HOUR, "events": 2, "bytes_in": 3, "bytes_out": 4},
        {"time": AT, "events": 20, "bytes_in": 30, "bytes_out": 40, "count": 7},
        {"outcome": "refused", "reason": "forbidden"},
        {"outcome": "refused", "reason": "rate-limited"},
        {"client": "herald.v1"},
        {"principal": "", "issuer": "", "peer": THERE, "operation": "federation.exchange", "rp": ""},
    )
    assert distinct(access.usage(given), of="access.usage") == {
        ("p1", HOME, "", "http", "publish", "rp1", "ok", "", 8, 22, 33, 44, AT, AT + HOUR),
        ("p1", HOME, "", "http", "publish", "rp1", "refused", "forbidden", 1, 0, 0, 0, AT, AT),
        ("p1", HOME, "", "http", "publish", "rp1", "refused", "rate-limited", 1, 0, 0, 0, AT, AT),
        ("p1", HOME, "", "herald.v1", "publish", "rp1", "ok", "", 1, 0, 0, 0, AT, AT),
        ("", "", THERE, "http", "federation.exchange", "", "ok", "", 1, 0, 0, 0, AT, AT),
    }


def test_deliveries_to_endpoints_are_counted_for_the_owner_apart_from_those_to_sessions(frames: Frames) -> None:
    push = {"operation": "deliver", "client": "push", "bytes_out": 4}
    usage = access.usage(
        frames.records(
            access.USAGE_COLUMNS,
            {**push, "events": 2},
            {**push, "events": 20, "time": AT + HOUR},
            {**push, "events": 5, "principal": "p2"},
            {"operation": "deliver", "client": "herald.v1", "events": 3},
        )
    )
    found = access.operations(usage).select("operation", "client", "events", "bytes_out").collect()
    assert {tuple(row) for row in found} == {("deliver", "push", 27, 12), ("deliver", "herald.v1", 3, 0)}
    assert {(row["principal"], row["events"]) for row in access.principals(usage).collect()} == {("p1", 25), ("p2", 5)}


def test_activity_is_by_hour_and_who_and_hours_are_by_operation(frames: Frames) -> None:
    midnight = utc(2027, 3, 27, 23)  # in Berlin, of the day that has 23 hours
    rows = (
        {"time": midnight - TICK, "events": 1, "bytes_in": 2, "bytes_out": 3, "count": 4},
        {"time": midnight, "outcome": "refused", "count": 5},
        {"time": midnight + HOUR - TICK, "outcome": "failed", "operation": "history"},
        {"time": midnight + HOUR - TICK, "peer": THERE, "principal": "", "issuer": ""},
    )
    before, day = date(2027, 3, 27), date(2027, 3, 28)
    active = access.activity(frames.records(access.ACTIVITY_COLUMNS, *rows), "Europe/Berlin")
    assert distinct(active, of="access.activity") == {
        (midnight - HOUR, before, "p1", HOME, "", 4, 0, 0, 1, 2, 3),
        (midnight, day, "p1", HOME, "", 6, 5, 1, 0, 0, 0),
        (midnight, day, "", "", THERE, 1, 0, 0, 0, 0, 0),
    }
    hours = access.hours(frames.records(access.HOURS_COLUMNS, *rows), "Europe/Berlin")
    assert distinct(hours, of="access.hours") == {
        (midnight - HOUR, before, "publish", 4, 0, 0, 1, 2, 3),
        (midnight, day, "publish", 6, 5, 0, 0, 0, 0),
        (midnight, day, "history", 1, 0, 1, 0, 0, 0),
    }


def test_the_other_tables_are_sums_of_usage(frames: Frames) -> None:
    def used(principal: str, issuer: str, operations: int, first: int, last: int, **more: Any) -> dict[str, Any]:
        seen = {"first_seen": AT + first * HOUR, "last_seen": AT + last * HOUR}
        names = {"principal": principal, "issuer": issuer, "operations": operations}
        return {"client": "http", "operation": "publish", "rp": "rp1", "outcome": "ok"} | seen | names | more

    def seen(first: int, last: int) -> tuple[datetime, datetime]:
        return AT + first * HOUR, AT + last * HOUR

    strange = {"outcome": "refused", "reason": "unauthorized"}
    usage = frames.table(
        "access",
        "usage",
        used("p1", HOME, 10, 2, 5, events=1, bytes_in=2, bytes_out=3),
        used("p1", HOME, 20, 1, 3, rp="rp2", events=10, bytes_in=20, bytes_out=30),
        used("p1", HOME, 3, 4, 4, outcome="failed", reason="internal"),
        used("p1", HOME, 2, 0, 9, operation="rp.list", rp=""),
        used(f"{THERE}#q", THERE, 4, 6, 6, client="herald.v1"),
        used("", "", 5, 7, 7, **strange),
        used("", "", 6, 8, 8, **strange),
        used("", "", 7, 1, 2, peer=THERE, client="domain", operation="federation.exchange", rp=""),
    )
    assert distinct(access.principals(usage), of="access.principals") == {
        ("p1", HOME, 35, 0, 3, 11, 22, 33, 2, *seen(0, 9)),
        (f"{THERE}#q", THERE, 4, 0, 0, 0, 0, 0, 1, *seen(6, 6)),
        ("", "", 18, 11, 0, 0, 0, 0, 1, *seen(1, 8)),
    }
    assert distinct(access.issuers(usage, HOME), of="access.issuers") == {
        (HOME, False, 1, 35, 0, 3, 11, 22, 33, *seen(0, 9)),
        (THERE, True, 1, 4, 0, 0, 0, 0, 0, *seen(6, 6)),
        ("", False, 1, 18, 11, 0, 0, 0, 0, *seen(1, 8)),
    }
    assert distinct(access.peers(usage), of="access.peers") == {(THERE, 7, 0, 0, 0, 0, 0, *seen(1, 2))}
    assert distinct(access.operations(usage), of="access.operations") == {
        ("publish", "http", 44, 11, 3, 11, 22, 33, *seen(1, 8)),
        ("publish", "herald.v1", 4, 0, 0, 0, 0, 0, *seen(6, 6)),
        ("rp.list", "http", 2, 0, 0, 0, 0, 0, *seen(0, 9)),
        ("federation.exchange", "domain", 7, 0, 0, 0, 0, 0, *seen(1, 2)),
    }
    assert distinct(access.rps(usage), of="access.rps") == {
        ("rp1", 3, 28, 11, 3, 1, 2, 3, *seen(2, 8)),
        ("rp2", 1, 20, 0, 0, 10, 20, 30, *seen(1, 3)),
        ("", 2, 9, 0, 0, 0, 0, 0, *seen(0, 9)),
    }
    assert distinct(access.refusals(usage), of="access.refusals") == {
        ("refused", "unauthorized", "publish", "", "", "", 11, *seen(7, 8)),
        ("failed", "internal", "publish", "p1", HOME, "", 3, *seen(4, 4)),
    }


def test_last_seen_is_the_last_hour_of_each(frames: Frames) -> None:
    given = frames.records(
        access.SEEN_COLUMNS,
        *({"time": at} for at in (AT, AT + 2 * HOUR - TICK, AT - DAY)),
        {"peer": THERE},
    )
    found = access.last_seen(given)
    assert distinct(found, "principal", "issuer", "peer", "last") == {
        ("p1", HOME, "", AT + HOUR),
        ("p1", HOME, THERE, AT),
    }


SEEN = {"principal": "string", "issuer": "string", "peer": "string", "last": "timestamp"}


def active(after: timedelta, principal: str = "p1", issuer: str = HOME, **more: Any) -> dict[str, Any]:
    """One hour of somebody, so long after AT."""
    return {"hour": AT + after, "principal": principal, "issuer": issuer, "operations": 1} | more


def anomalies(frames: Frames, rows: list[dict[str, Any]], before: list[dict[str, Any]] | None = None) -> list[Row]:
    seen = None if before is None else frames.of(SEEN, *before)
    found = access.anomalies(frames.table("access", "activity", *rows), seen, HOME)
    return ordered(found, of="access.anomalies")


def test_without_a_look_back_what_comes_a_day_after_the_first_record_is_new(frames: Frames) -> None:
    rows = [
        active(timedelta(0)),
        active(DAY - HOUR, "q", "early.example"),
        active(DAY, "q", "late.example", operations=3),
        active(DAY + HOUR, "r", "late.example", operations=4),
        active(DAY, "", "", peer=THERE, operations=5),
        active(DAY, "q", "also.example"),
        active(2 * DAY, "p2", HOME),
        active(2 * DAY, "", ""),
    ]
    expected = [
        ("new-foreign-issuer", "also.example", "also.example", AT + DAY, 1.0, None),
        ("new-foreign-issuer", "late.example", "late.example", AT + DAY, 7.0, None),
        ("new-peer", THERE, "", AT + DAY, 5.0, None),
    ]
    assert anomalies(frames, rows) == expected
    assert anomalies(frames, rows, []) == expected, "an empty look-back is none"


def test_with_a_look_back_what_it_does_not_hold_is_new(frames: Frames) -> None:
    rows = [
        active(timedelta(0), "q", "new.example"),
        active(DAY, "q", "known.example"),
        active(HOUR, "", "", peer="new.example"),
        active(DAY, "", "", peer="known.example"),
    ]
    before = [
        {"principal": "other", "issuer": "known.example", "last": AT - DAY},
        {"peer": "known.example", "last": AT - DAY},
    ]
    assert anomalies(frames, rows, before) == [
        ("new-peer", "new.example", "", AT + HOUR, 1.0, None),
        ("new-foreign-issuer", "new.example", "new.example", AT, 1.0, None),
    ]


def test_a_burst_is_a_hundred_refusals_and_ten_times_the_usual(frames: Frames) -> None:
    def refused(after: timedelta, who: str, number: int, peer: str = "") -> dict[str, Any]:
        return active(after, who, refused=number, operations=number, peer=peer)

    rows = [
        refused(timedelta(0), "at the bound", 100),
        refused(timedelta(0), "below it", 99),
        refused(timedelta(0), "in parts", 60),
        refused(timedelta(0), "in parts", 40, "peer.example"),
        refused(HOUR, "ten times", 99),
        refused(2 * HOUR, "ten times", 99),
        refused(3 * HOUR, "ten times", 42),
        refused(25 * HOUR, "ten times", 100),  # of 240 in 24 hours
        refused(HOUR, "less", 99),
        refused(2 * HOUR, "less", 99),
        refused(3 * HOUR, "less", 43),
        refused(25 * HOUR, "less", 100),
        refused(0 * HOUR, "long ago", 99),
        refused(25 * HOUR, "long ago", 100),
    ]
    known = [{"peer": "peer.example", "last": AT}]
    assert anomalies(frames, rows, known) == [
        ("refusal-burst", "long ago", HOME, AT + 25 * HOUR, 100.0, 0.0),
        ("refusal-burst", "ten times", HOME, AT + 25 * HOUR, 100.0, 10.0),
        ("refusal-burst", "at the bound", HOME, AT, 100.0, 0.0),
        ("refusal-burst", "in parts", HOME, AT, 100.0, 0.0),
    ]


def test_who_was_silent_for_fourteen_days_is_awake_again(frames: Frames) -> None:
    fortnight = 14 * DAY
    rows = [
        active(timedelta(0), "in the period"),
        active(fortnight, "in the period"),
        active(fortnight, "in the period", peer="known.example"),
        active(timedelta(0), "an hour less"),
        active(fortnight - HOUR, "an hour less"),
        active(timedelta(0), "", ""),
        active(fortnight, "", ""),
        active(HOUR, "in the look-back"),
        active(HOUR, "never seen"),
    ]
    before = [
        {"principal": "in the look-back", "issuer": HOME, "last": AT + HOUR - fortnight - DAY},
        {"principal": "in the look-back", "issuer": HOME, "peer": "known.example", "last": AT + HOUR - fortnight},
    ]
    assert anomalies(frames, rows, before) == [
        ("dormant-awake", "in the period", HOME, AT + fortnight, 14.0, None),
        ("dormant-awake", "in the look-back", HOME, AT + HOUR, 14.0, None),
    ]


def test_no_records_make_empty_tables(frames: Frames) -> None:
    assert ordered(access.usage(frames.records(access.USAGE_COLUMNS)), of="access.usage") == []
    usage = frames.table("access", "usage")
    for name in ("principals", "peers", "operations", "rps", "refusals"):
        assert ordered(getattr(access, name)(usage), of=f"access.{name}") == []
    assert ordered(access.issuers(usage, HOME), of="access.issuers") == []
    assert ordered(access.hours(frames.records(access.HOURS_COLUMNS), "UTC"), of="access.hours") == []
    nobody = access.activity(frames.records(access.ACTIVITY_COLUMNS), "UTC")
    assert ordered(nobody, of="access.activity") == []
    assert ordered(access.last_seen(frames.records(access.SEEN_COLUMNS))) == []
    assert anomalies(frames, [], None) == anomalies(frames, [], []) == []
