"""When a periodic task is due, and for how long a run holds it. Pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.periodic.rules import (
    EARLY_S,
    LEASE_S,
    LOOK_S,
    TaskStanding,
    is_due,
    is_ended_by_word,
    lease_s,
    next_due_in_s,
)
from workers.schedule import LEASED_S

PERIODS = st.sampled_from(sorted({period_s for period_s in LEASED_S.values() if not is_ended_by_word(period_s)}))


@pytest.mark.parametrize(
    ("due_in_s", "left_s", "due"),
    [
        (0.0, 0.0, True),
        (-100.0, -100.0, True),
        (EARLY_S, 0.0, True),
        (EARLY_S + 0.1, 0.0, False),
        (-1.0, 0.1, False),  # it runs
        (-1.0, LEASE_S, False),
        (-1.0, LEASE_S + 0.1, True),  # the clock was set back
        (5.6, 0.0, True),
        (5.4, 0.0, False),
    ],
)
def test_a_task_is_due_at_its_time_unless_it_runs(due_in_s: float, left_s: float, due: bool) -> None:
    assert is_due(TaskStanding("t", 1, due_in_s, left_s), 5.0) is due


@given(PERIODS, st.floats(-1e9, EARLY_S))
def test_the_next_time_is_within_a_period_and_not_at_once(period_s: float, due_in_s: float) -> None:
    assert EARLY_S < next_due_in_s(due_in_s, period_s) <= period_s + EARLY_S


@given(PERIODS, st.lists(st.floats(0, 0.4), min_size=50, max_size=50))
def test_looks_that_are_late_keep_the_period(period_s: float, late_s: list[float]) -> None:
    """Of 50 looks none is so late that a run is left out, and none is early."""
    due_at, runs, until = 0.0, 0, 0.0
    for number, late in enumerate(late_s):
        now = number * LOOK_S + late
        if is_due(TaskStanding("t", runs, due_at - now, until - now), period_s):
            until = now + lease_s(period_s)
            due_at = now + next_due_in_s(due_at - now, period_s)
            runs += 1
    assert runs == int((len(late_s) - 1) / period_s) + 1


def test_a_task_whose_end_states_when_it_is_due_stays_due_until_then() -> None:
    assert next_due_in_s(-3.0, 300.0) == 0.0


@given(PERIODS)
def test_a_short_run_leaves_its_task_free_when_it_is_due_again(period_s: float) -> None:
    assert lease_s(period_s) <= min(LEASE_S, period_s - EARLY_S)
