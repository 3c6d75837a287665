"""A small domain's schedule: the periods hold while SQL changes, otherwise tasks run rarely, and leases are never late."""

from __future__ import annotations

import pytest

from workers.quiet_schedule import ACTIVE_S, ALONE_S, LEASES, OF_FEDERATION, QUIET_S, QuietSchedule
from workers.schedule import PERIODS_S

REAP, GREET, RELAY = "workers.tasks.reap_leases", "workers.tasks.greet_peers", "workers.tasks.relay_outbox"


def settled(*, alone: bool, lease_at: float | None = None) -> tuple[QuietSchedule, float]:
    """Return a schedule whose tasks have just run once after the last change, and the time."""
    schedule = QuietSchedule(PERIODS_S, 0.0)
    schedule.changed(0.0, alone=alone, lease_at=lease_at)
    for name in PERIODS_S:
        schedule.began(name, ACTIVE_S)
    return schedule, ACTIVE_S


def test_every_task_of_the_schedule_is_due_at_the_start() -> None:
    assert QuietSchedule(PERIODS_S, 5.0).due(5.0) == list(PERIODS_S)


def test_the_tasks_of_leases_and_federation_are_tasks_of_the_schedule() -> None:
    assert set(PERIODS_S) >= LEASES | OF_FEDERATION


def test_while_sql_changes_a_task_keeps_its_period() -> None:
    schedule, now = settled(alone=True)
    schedule.changed(now, alone=True, lease_at=None)
    assert schedule.due_at(RELAY, now) == now + PERIODS_S[RELAY]


def test_while_nothing_changes_a_task_with_a_short_period_waits_longer() -> None:
    schedule, now = settled(alone=True)
    assert schedule.due_at(RELAY, now) == now + QUIET_S
    assert schedule.due(now + QUIET_S - 0.1) == []


@pytest.mark.parametrize("name", [name for name, period_s in PERIODS_S.items() if period_s > ALONE_S])
def test_a_task_with_a_long_period_keeps_it(name: str) -> None:
    schedule, now = settled(alone=True)
    assert schedule.due_at(name, now) == now + PERIODS_S[name]


def test_an_expiring_lease_is_reaped_when_it_expires_not_when_the_quiet_period_ends() -> None:
    schedule, now = settled(alone=True, lease_at=ACTIVE_S + 7.0)
    assert schedule.next_at(now) == ACTIVE_S + 7.0
    assert set(schedule.due(ACTIVE_S + 7.0)) == LEASES


def test_a_lease_that_cannot_be_reaped_is_tried_again_at_the_usual_period() -> None:
    schedule, now = settled(alone=True, lease_at=ACTIVE_S - 1.0)
    assert schedule.due_at(REAP, now) == now + PERIODS_S[REAP]


def test_a_domain_with_others_exchanges_at_the_usual_periods_though_sql_is_unchanged() -> None:
    schedule, now = settled(alone=False)
    assert {name: schedule.due_at(name, now) - now for name in OF_FEDERATION} == {
        name: PERIODS_S[name] for name in OF_FEDERATION
    }


def test_a_domain_alone_does_not_exchange_however_much_changes() -> None:
    schedule, now = settled(alone=True)
    schedule.changed(now, alone=True, lease_at=None)
    assert all(schedule.due_at(name, now) == now + ALONE_S for name in OF_FEDERATION)


def test_the_first_other_domain_makes_all_exchanges_due_at_once() -> None:
    schedule, now = settled(alone=True)
    schedule.changed(now + 1, alone=False, lease_at=None)
    assert set(schedule.due(now + 1)) == OF_FEDERATION
