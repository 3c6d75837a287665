"""Leases of periodic tasks in the database: one run at a time is valid, whoever takes it and whatever the clocks show."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from demo.harness.servers import wait_for
from eventing.periodic import services
from eventing.periodic.models import PeriodicTask
from eventing.periodic.rules import LEASE_S, STOP_BELOW_S, TaskStanding
from eventing.periodic.services import (
    DatabaseClock,
    Run,
    Superseded,
    run_left_s,
    run_release,
    run_renew,
    run_require,
    running,
    tasks_register,
    tasks_standing,
    tasks_take,
)
from workers import fencing
from workers.fencing import TaskLeaseKeeper

NAME = "tests.task"
BUSY_S = 30.0  # by which a busy machine may be late
PERIODS_S = {NAME: 5.0}


@pytest.fixture
def registered(transactional_db: None) -> None:
    tasks_register(PERIODS_S)
    tasks_register(PERIODS_S)  # another host


def seen() -> list[TaskStanding]:
    return tasks_standing(PERIODS_S)


def take(found: list[TaskStanding] | None = None, holder: str = "a 1") -> list[Run]:
    return tasks_take(seen() if found is None else found, PERIODS_S, holder)


def move(**seconds: float) -> None:
    """Set times relative to the database's clock."""
    PeriodicTask.objects.update(**{name: DatabaseClock() + value for name, value in seconds.items()})


@pytest.mark.usefixtures("registered")
def test_of_two_that_found_a_task_due_one_takes_it() -> None:
    found = seen()
    assert take(found) == [Run(NAME, 1)]
    assert take(found, "b 2") == []
    row = PeriodicTask.objects.get()
    assert (row.holder, row.fence) == ("a 1", 1)
    (standing,) = seen()
    assert 0 < standing.due_in_s <= 5
    assert 0 < standing.left_s <= LEASE_S


@pytest.mark.usefixtures("registered")
def test_of_many_that_take_at_the_same_time_one_does(registered: None) -> None:
    found, taken, begin = seen(), [], threading.Barrier(8)

    def race() -> None:
        begin.wait(30)
        taken.extend(take(found))
        connection.close()

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert taken == [Run(NAME, 1)]


@pytest.mark.usefixtures("registered")
def test_a_task_is_taken_again_only_when_its_lease_has_ended_and_it_is_due() -> None:
    (first,) = take()
    move(due_at=-1.0)
    assert take() == []
    move(lease_until=0.0, due_at=4.0)
    assert take() == []
    move(due_at=0.0)
    assert take(holder="b 2") == [Run(NAME, 2)]
    with pytest.raises(Superseded):
        run_left_s(first)
    with pytest.raises(Superseded):
        run_renew(first)
    run_release(first)
    assert seen()[0].left_s > 0, "the newest run goes on"


@pytest.mark.usefixtures("registered")
def test_a_late_run_that_nobody_superseded_may_begin() -> None:
    (run,) = take()
    move(lease_until=-1.0)
    assert run_left_s(run) == 0.0
    run_renew(run)
    assert 3 < run_left_s(run) <= LEASE_S
    run_release(run)
    assert run_left_s(run) == 0.0


@pytest.mark.usefixtures("registered")
def test_what_a_killed_holder_began_is_due_when_its_lease_has_ended_whatever_its_period() -> None:
    found, periods_s = seen(), {NAME: 300.0}
    (run,) = tasks_take(found, periods_s, "a 1")
    move(lease_until=-0.1)
    (again,) = tasks_take(seen(), periods_s, "b 2")
    run_release(run, 300.0)  # it ends after all, too late
    assert tasks_take(seen(), periods_s, "a 1") == []
    run_release(again, 300.0)
    assert 290 < seen()[0].due_in_s <= 300
    assert tasks_take(seen(), periods_s, "a 1") == []


@pytest.mark.usefixtures("registered")
def test_a_clock_that_was_set_back_stops_no_task() -> None:
    take()
    move(lease_until=30 + LEASE_S, due_at=30 + 5)  # 30 s
    assert take() == [Run(NAME, 2)]


@pytest.mark.usefixtures("registered")
def test_only_the_newest_run_may_write() -> None:
    (old,) = take()
    with running(old), transaction.atomic():
        run_require()
    move(lease_until=0.0, due_at=0.0)
    with running(old), pytest.raises(Superseded), transaction.atomic():
        run_require()  # its lease has ended
    (new,) = take()
    with running(old), pytest.raises(Superseded), transaction.atomic():
        run_require()
    with running(new), transaction.atomic():
        run_require()
    with transaction.atomic():
        run_require()  # started by hand: there is no run


@pytest.mark.usefixtures("registered")
def test_a_run_that_takes_long_keeps_its_task_and_leaves_it_free() -> None:
    (run,) = take()
    move(lease_until=2.5)  # a busy machine may stand still for as long, less STOP_BELOW_S
    stopped = threading.Event()
    with TaskLeaseKeeper(run, until=time.monotonic() + 2.5, release=False, stop=stopped.set):
        wait_for(lambda: run_left_s(run) > 2.6, about="the lease is renewed")
    assert run_left_s(run) == 0.0
    assert not stopped.is_set()


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("error", [DatabaseError, Superseded])
def test_a_run_that_cannot_renew_is_stopped(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def refused(run: Run) -> None:
        raise error("no")

    monkeypatch.setattr(fencing, "run_renew", refused)
    (run,) = take()
    until = time.monotonic() + STOP_BELOW_S + 1.0
    stopped_at: list[float] = []
    with TaskLeaseKeeper(run, until=until, release=False, stop=lambda: stopped_at.append(time.monotonic())):
        wait_for(lambda: stopped_at, about="the run is stopped")
    assert stopped_at[0] < until + BUSY_S


def test_the_database_keeps_the_time(transactional_db: Callable[..., Any]) -> None:
    with connection.cursor() as cursor:
        sql, _ = getattr(DatabaseClock(), f"as_{connection.vendor}")(None, connection)
        cursor.execute(f"SELECT {sql}")
        assert abs(cursor.fetchone()[0] - time.time()) < 60


@pytest.mark.usefixtures("registered")
def test_a_host_that_is_cut_off_while_it_takes_tasks_blocks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its transaction holds the rows, and PostgreSQL is not told that it will never end."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no other hosts")
    took, over, failed = threading.Event(), threading.Event(), []
    found, plainly = seen(), services._take

    def take_and_fall_silent(*arguments: Any) -> Run | None:
        run = plainly(*arguments)
        took.set()
        over.wait(60)
        return run

    def cut_off() -> None:
        try:
            take(found, "cut 1")
        except DatabaseError as error:
            failed.append(error)
        finally:
            connection.close()

    with monkeypatch.context() as patched:
        patched.setattr(services, "_take", take_and_fall_silent)
        thread = threading.Thread(target=cut_off)
        thread.start()
        assert took.wait(60)
    began = time.monotonic()
    assert take(found, "b 2") == [Run(NAME, 1)]
    assert time.monotonic() - began < services.TAKING_S + BUSY_S
    over.set()
    thread.join(60)
    assert failed, "the one that was cut off has taken nothing"
    assert PeriodicTask.objects.get().holder == "b 2"
