"""The graph of report runs, what is due when, and which segments are late."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.errors import Conflict, InvalidRequest
from eventing.reports.rules import runs as reports
from eventing.reports.rules.runs import (
    GRAPH,
    Extent,
    ReportPeriod,
    ReportRunState,
    RunTransition,
    acted,
    after_failure,
    due,
    period_asked,
)

NOW = datetime(2027, 1, 15, 8, 30, tzinfo=UTC)


def test_every_run_can_end_and_what_has_ended_is_never_begun_again() -> None:
    for state in ReportRunState:
        reached, fresh = {state}, {state}
        while fresh:
            fresh = {after for (before, _), after in GRAPH.items() if before in fresh} - reached
            reached |= fresh
        assert reached & {ReportRunState.DONE, ReportRunState.FAILED, ReportRunState.SUPERSEDED}
        if state not in reports.OPEN:
            assert not reached & reports.OPEN


def test_what_makes_no_sense_is_refused_and_says_how_it_is() -> None:
    assert acted(ReportRunState.QUEUED, RunTransition.CLAIM) is ReportRunState.RUNNING
    for state in (ReportRunState.DONE, ReportRunState.FAILED, ReportRunState.SUPERSEDED):
        with pytest.raises(Conflict, match=f"is {state}"):
            acted(state, RunTransition.CANCEL)


def test_a_failure_is_tried_again_with_growing_waits_and_then_stays() -> None:
    found = [after_failure(number, True) for number in (1, 2, 3)]
    assert [act for act, _ in found] == [RunTransition.RETRY, RunTransition.RETRY, RunTransition.FAIL]
    assert timedelta(0) < found[0][1] < found[1][1]
    assert after_failure(1, False)[0] is RunTransition.FAIL


@given(st.datetimes(datetime(2027, 1, 1), datetime(2028, 1, 1)))
def test_each_finished_hour_and_day_is_due_once_and_nothing_before_its_grace(at: datetime) -> None:
    now = at.replace(tzinfo=UTC)
    found = list(due(now))
    assert max(Counter((one.job, one.period.begin, one.period.end) for one in found).values()) == 1
    assert all(one.period.end + reports.GRACE <= now for one in found)
    hours = {one.period.begin for one in found if one.cadence == "hourly"}
    assert len(hours) in (reports.HOURS_BACK, reports.HOURS_BACK - 1)
    assert {one.job for one in found if one.cadence == "daily"} == set(reports.JOBS)
    assert {one.job for one in found if one.cadence == "hourly"} == {"access", "load"}


def test_an_hour_is_due_ten_minutes_after_its_end() -> None:
    eight = ReportPeriod(NOW.replace(hour=7, minute=0), NOW.replace(hour=8, minute=0))
    assert eight not in [one.period for one in due(NOW.replace(minute=9, second=59))]
    assert eight in [one.period for one in due(NOW.replace(minute=10))]


def test_segments_are_late_when_more_or_newer_ones_are_there_and_never_after_compaction() -> None:
    known = Extent(60, 1000.0)
    assert Extent(61, 900.0).later_than(known)  # copied from elsewhere with its old time
    assert Extent(1, 1000.5).later_than(known)  # after compaction took the others
    assert not Extent(0, 0.0).later_than(known)
    assert not known.later_than(known)


def test_periods_that_are_asked_for() -> None:
    assert period_asked(None, None, NOW) == ReportPeriod(NOW - timedelta(days=1), NOW)
    assert period_asked(NOW - timedelta(hours=1), None, NOW).begin == NOW - timedelta(hours=1)
    for begin, end in (
        (NOW, NOW),
        (NOW, NOW - timedelta(days=1)),
        (NOW - timedelta(days=3661), NOW),
        (None, NOW + timedelta(days=2)),
        (None, datetime(1, 1, 1, 12, tzinfo=UTC)),
    ):
        with pytest.raises(InvalidRequest):
            period_asked(begin, end, NOW)
