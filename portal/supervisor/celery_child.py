"""A Celery worker as a child of the supervisor: `python -m portal.supervisor.celery_child worker|forwarder`.

Differences from `celery worker`: the child reports when it is ready, its pool processes always end with it, and it
keeps no file outside the data folder. Imports for Celery's command line and Django's check of URLs, which only the
gateway serves, are left out: a quarter of the processor time of a start.
"""

# ruff: noqa: E402 - it must have joined the metrics' folder before our modules are imported

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from typing import Any

from portal.measured import loaded, measure_as

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
os.environ.setdefault(
    "CELERY_SKIP_CHECKS", "1"
)  # the supervisor has begun with the same code: Django checks itself there
measure_as(sys.argv[1] if len(sys.argv) > 1 else "worker")

from celery import bootsteps, signals
from celery.utils.nodenames import host_format
from celery.worker import state

from eventing.conf import config
from eventing.replication.forwarding import wakeups
from eventing.telemetry.folder import process_name
from eventing.telemetry.process import measure_in_background
from portal.celery import app
from portal.logs.log_lines import catch_the_rest
from portal.queues import waiting
from portal.supervisor.liveness import WorkProgress, WorkWatch, prove_in_background
from portal.supervisor.newer_schema import refuse_newer_schema
from portal.supervisor.parent_watchdog import report_ready, set_death_signal
from portal.supervisor.presence import Presence, present_while_attached
from workers.schedule import FORWARD_QUEUE, TASK_S_HARD
from workers.tracing import trace_tasks

END_S = 1.0
"""Seconds that a forwarder which ends by itself waits for its turns."""
END_STATUS = os.EX_SOFTWARE


@signals.worker_ready.connect
def _ready(**_: Any) -> None:
    loaded()
    report_ready()


@signals.worker_process_init.connect
def _on_parent_watchdog(**_: Any) -> None:
    set_death_signal(signal.SIGKILL)
    loaded()  # forked before the worker was ready
    measure_in_background(name=f"{process_name()}-pool")
    trace_tasks(process_name())


def worker() -> None:
    """Run the worker until SIGTERM; a running task is finished first, or handed out again after the next start."""
    app.steps["consumer"].add(present_while_attached("worker"))
    if config().log_level != "debug":  # two lines for every task every other second would bury the rest
        for name in ("celery.worker.strategy", "celery.app.trace"):
            logging.getLogger(name).setLevel(logging.WARNING)
    measure_in_background()
    signals.worker_ready.connect(_prove_work)  # the pool has been forked then
    run_worker(config().domain, concurrency=config().workers)


def forwarder() -> None:
    """Run the worker that forwards to peers until SIGTERM: threads, because it mostly waits for them."""
    from eventing.replication.forwarding.measures import copy_in_flight  # models: after Django is set up
    from eventing.replication.forwarding.sweeping import begin_anew

    if config().log_level != "debug":
        for name in ("celery.worker.strategy", "celery.app.trace"):
            logging.getLogger(name).setLevel(logging.WARNING)
    begin_anew()
    app.conf.worker_cancel_long_running_tasks_on_connection_loss = False  # threads cannot be; turns end by themselves
    app.steps["worker"].add(EndPromptly)
    app.steps["consumer"].add(present_while_attached("forwarder"))
    measure_in_background(copy_in_flight)
    trace_tasks(process_name())
    signals.worker_shutting_down.connect(_stop_forwarding)
    signals.worker_ready.connect(_start_periodic_work)
    run_worker(
        f"forwarder-{config().domain}",
        pool_cls="celery.concurrency.thread:TaskPool",
        concurrency=config().forwarders,
        queues=FORWARD_QUEUE,
    )


def run_worker(name: str, **options: Any) -> None:
    """Run a Celery worker until SIGTERM, and exit with its status."""
    made = app.Worker(
        hostname=host_format(f"{name}@%h"),
        loglevel=log_level(),
        quiet=quiet(),
        without_gossip=True,
        without_heartbeat=True,  # events that nobody reads; presence.py has what is needed of it
        without_mingle=True,
        **options,
    )
    made.start()
    sys.exit(made.exitcode)


def log_level() -> int:
    """Return the log level in Celery's form."""
    return logging.getLevelNamesMapping()[config().log_level.upper()]


def quiet() -> bool:
    """Keep Celery from printing its banner, which is no log line, where lines are JSON."""
    if config().log_format != "json":
        return False
    from celery.apps import worker

    from portal.logs.json_lines import said

    said_by: Any = worker  # its stubs do not know the function
    said_by.safe_say = said
    return True


class EndPromptly(bootsteps.StartStopStep):
    """Ends turns after their current step when the forwarder ends. A forwarder that ends by itself, because of an error
    that Celery cannot recover from, waits for them no longer than END_S: the supervisor starts it again, and whatever a
    turn was at is found by the sweep.
    """

    requires = ("celery.worker.components:Pool",)  # stopped before the pool, which waits for its threads

    def stop(self, _worker: Any) -> None:
        """Stop turns; `waking.stopping` is set when the stop was requested, which the supervisor supervises."""
        if not wakeups.stopping():
            wakeups.stop()
            timer = threading.Timer(END_S, os._exit, (END_STATUS,))
            timer.daemon = True
            timer.start()


def _stop_forwarding(**_: Any) -> None:
    wakeups.stop()


def _start_periodic_work(**_: Any) -> None:
    from workers.periodic import periodic_start  # models: after Django is set up

    schedule = Presence("beat")
    looks = periodic_start(
        app,
        has_workers=config().workers > 0,
        waiting=lambda: waiting(app.conf.task_default_queue),
        stopping=wakeups.stopping,
        looked=schedule.sign,
    )
    schedules = WorkWatch(lambda: WorkProgress(looks(), False), lambda: 1, busy_s=0.0)
    prove_in_background(_watch(FORWARD_QUEUE).goes_on, schedules.goes_on)


def _prove_work(**_: Any) -> None:
    prove_in_background(_watch(app.conf.task_default_queue).goes_on)


def _watch(queue: str) -> WorkWatch:
    """Watch what this worker does with a queue."""

    def progress() -> WorkProgress:
        begun, under_way = sum(state.total_count.values()), len(state.active_requests)
        return WorkProgress((begun, under_way), under_way > 0)

    return WorkWatch(progress, lambda: waiting(queue), busy_s=TASK_S_HARD)


if __name__ == "__main__":
    catch_the_rest(config().log_format)
    refuse_newer_schema()
    {"worker": worker, "forwarder": forwarder}[sys.argv[1]]()
