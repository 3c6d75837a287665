"""Runs of periodic tasks on threads of the forwarder: measured like Celery's, begun without leases where one process runs all."""

from __future__ import annotations

import logging
import threading
from collections import Counter

import pytest
from django.db import connection

from demo.harness.servers import wait_for
from eventing.periodic.models import PeriodicTask
from eventing.telemetry.metrics import REGISTRY
from tests.workers.made_tasks import tasks_made
from workers import in_process_scheduler, measuring
from workers.fencing import run_of_task
from workers.periodic import periodic_start
from workers.schedule import PERIODS_S
from workers.task_runs import task_run

pytestmark = pytest.mark.usefixtures("stores")


def counted(name: str, outcome: str) -> float:
    return REGISTRY.get_sample_value("herald_tasks_total", {"task": name, "outcome": outcome}) or 0.0


def test_a_run_is_measured_and_has_no_lease() -> None:
    assert measuring  # it is connected to Celery's signals
    runs: list[object] = []
    app = tasks_made(["tests.measured"], lambda _: runs.append(run_of_task()))
    before = counted("measured", "ok")
    connection.ensure_connection()
    open_ = connection.connection
    task_run(app.tasks["tests.measured"])
    assert runs == [None]
    assert counted("measured", "ok") == before + 1
    assert connection.connection is open_, "the connection to SQL stays for the next run"


def test_a_run_that_fails_is_logged_and_counted_and_not_raised(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: str) -> None:
        raise RuntimeError("It fails.")

    app = tasks_made(["tests.failing"], fail)
    before = counted("failing", "failed")
    with caplog.at_level(logging.ERROR):
        task_run(app.tasks["tests.failing"])
    assert counted("failing", "failed") == before + 1
    assert "made.tests.failing failed" in caplog.text
    assert "It fails." in caplog.text


def test_without_workers_on_sqlite_the_forwarder_runs_every_task_and_writes_no_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("several hosts may share other databases")
    monkeypatch.setattr(in_process_scheduler, "POLL_S", 0.05)
    ran: Counter[str] = Counter()
    looked, stopped = threading.Event(), threading.Event()
    app = tasks_made(PERIODS_S, lambda name: ran.update([name]))
    looks = periodic_start(app, has_workers=False, waiting=lambda: 0, stopping=stopped.is_set, looked=looked.set)
    begun = [thread for thread in threading.enumerate() if thread.name in PERIODS_S]
    try:
        wait_for(lambda: set(ran) == set(PERIODS_S), about="every task ran", within_s=20)
        first = looks()
        wait_for(lambda: looks() > first, about="the schedule goes on", within_s=20)
        assert looked.is_set()
        assert not PeriodicTask.objects.exists()
    finally:
        stopped.set()
        for thread in begun:
            thread.join(20)
    assert not any(thread.is_alive() for thread in begun)
