"""The Celery tasks: on time, by name, and end to end with a real worker and schedule."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from demo.harness.servers import wait_for
from eventing.conf import config
from eventing.core.ids import admin_id
from eventing.outbox.models import OutboxEntry
from eventing.rest import idempotency_records
from eventing.rest.idempotency_model import IdempotencyRecord
from eventing.rps.models import RendezvousPoint
from portal.celery import app, broker_in_use
from tests.planes import types_at
from tests.workers.made_tasks import tasks_made
from workers import in_process_scheduler, tasks
from workers.schedule import (
    FORWARD,
    FORWARDERS_PERIODIC,
    LEASED_S,
    ON_DEMAND,
    PERIODS_S,
    TASK_S_HARD,
    TASK_S_SOFT,
    VISIBILITY_TIMEOUT_S,
)

pytestmark = pytest.mark.usefixtures("stores")


def test_every_scheduled_task_exists_and_ends_before_it_is_handed_out_again() -> None:
    app.loader.import_default_modules()
    assert set(PERIODS_S) | ON_DEMAND == {name for name in app.tasks if name.startswith("workers.")}
    assert TASK_S_SOFT < TASK_S_HARD < VISIBILITY_TIMEOUT_S
    for name in PERIODS_S:
        assert app.tasks[name].time_limit == TASK_S_HARD
        assert app.tasks[name].acks_late


def test_the_forwarders_periodic_tasks_wait_for_no_thread_of_its_queue() -> None:
    app.loader.import_default_modules()
    assert not set(FORWARDERS_PERIODIC) & set(LEASED_S)
    assert set(FORWARDERS_PERIODIC) | set(LEASED_S) == set(PERIODS_S)
    assert set(app.conf.task_routes) == {FORWARD}


def test_each_of_them_runs_again_and_again_whatever_the_others_do_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: dict[str, int] = dict.fromkeys(FORWARDERS_PERIODIC, 0)
    hangs, stopped = threading.Event(), threading.Event()

    def run(name: str) -> None:
        ran[name] += 1
        if name == FORWARDERS_PERIODIC[0]:
            hangs.wait(20)
        if name == FORWARDERS_PERIODIC[1]:
            raise RuntimeError("It fails.")

    other = tasks_made(FORWARDERS_PERIODIC, run)
    monkeypatch.setattr(in_process_scheduler, "PERIODS_S", dict.fromkeys(FORWARDERS_PERIODIC, 0.01))
    threads = in_process_scheduler.repeat(other, FORWARDERS_PERIODIC, stopped.is_set)
    wait_for(lambda: all(ran[name] >= 3 for name in FORWARDERS_PERIODIC[1:]), about="the others run", within_s=10)
    assert ran[FORWARDERS_PERIODIC[0]] == 1
    stopped.set()
    hangs.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_the_broker_is_the_domains_redis() -> None:
    assert broker_in_use().url == f"redis+socket://{config().redis_socket}"


@pytest.mark.parametrize("name", sorted(PERIODS_S))
def test_each_task_survives_an_away_redis_and_repeats(name: str, configure: Callable[..., None]) -> None:
    app.loader.import_default_modules()
    app.tasks[name].apply(throw=True)
    app.tasks[name].apply(throw=True)
    OutboxEntry.objects.create(kind="announce", rp="a" * 26, created_at=timezone.now() - timedelta(hours=1))
    configure(redis_url="unix:///nowhere/redis.sock")
    app.tasks[name].apply(throw=True)


def test_a_sweep_removes_more_than_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    app.loader.import_default_modules()
    monkeypatch.setattr(idempotency_records, "PURGE_BATCH", 2)
    then = timezone.now() - timedelta(days=2)
    for number in range(5):  # more come between two sweeps than a batch holds
        IdempotencyRecord.objects.create(
            principal="ann", key=str(number), digest="d", claimed_until=then, expires_at=then
        )
    app.tasks["workers.tasks.sweep"].apply(throw=True)
    assert not IdempotencyRecord.objects.exists()


def test_what_fails_in_a_sweep_keeps_nothing_else_from_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    app.loader.import_default_modules()
    done: list[str] = []

    def broken() -> int:
        raise PermissionError("a file that is not ours")

    def works() -> int:
        done.append("works")
        return 0

    monkeypatch.setattr(tasks, "SWEPT", ((broken, ""), (works, "")))
    with pytest.raises(PermissionError):
        app.tasks["workers.tasks.sweep"].apply(throw=True)
    assert done == ["works"]


@pytest.fixture
def celery(stores: None, tmp_path: Path) -> Iterator[None]:
    """A worker with the schedule, as a process of its own, on this test's database and Redis."""
    places = [str(connection.settings_dict["NAME"]), config().effective_redis_url, str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.workers.celery_process", *places], cwd=settings.BASE_DIR, start_new_session=True
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@pytest.mark.processes
@pytest.mark.usefixtures("celery")
def test_a_worker_reaps_and_relays_by_itself(
    new_rp: Callable[..., RendezvousPoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    rp = new_rp(lease_s=1)
    monkeypatch.setattr(transaction, "on_commit", lambda *_, **__: None)  # as if this process died at commit
    left = new_rp(lease_s=600)
    wait_for(lambda: not RendezvousPoint.objects.filter(id=rp.id).exists(), about="the lease is reaped", within_s=40)
    wait_for(lambda: "rp.deleted" in types_at(admin_id(rp.id)), about="its end is reported", within_s=20)
    wait_for(lambda: "rp.created" in types_at(admin_id(left.id)), about="the outbox is relayed", within_s=30)
