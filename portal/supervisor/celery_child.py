"""A Celery worker or beat as a child of the supervisor: `python -m portal.supervisor.celery_child worker|forwarder|beat`.

Beside what `celery worker` does: it says when it is ready, its pool processes die with it however it ends, and it
keeps no file outside the data folder.
"""

# ruff: noqa: E402 - it must have joined the metrics' folder before our modules are imported

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from typing import Any

from portal.measured import measure_as

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
measure_as(sys.argv[1] if len(sys.argv) > 1 else "worker")

from celery import signals

from eventing.conf import config
from eventing.federation.runs import waking
from eventing.telemetry.folder import process_name
from eventing.telemetry.process import measure_in_background
from portal.celery import app
from portal.log_lines import catch_the_rest
from portal.supervisor.leash import say_ready, set_death_signal
from portal.supervisor.presence import Presence
from workers.schedule import FORWARD_QUEUE
from workers.tracing import trace_tasks


@signals.worker_ready.connect
@signals.beat_init.connect
def _ready(**_: Any) -> None:
    gc.collect()
    gc.freeze()  # what the start has made is there to stay: walking it for each thousand runs that are forwarded costs
    say_ready()


@signals.worker_process_init.connect
def _on_leash(**_: Any) -> None:
    set_death_signal(signal.SIGKILL)
    measure_in_background(name=f"{process_name()}-pool")
    trace_tasks(process_name())


def worker() -> None:
    """Run the worker until SIGTERM; a running task is finished first, or handed out again after the next start."""
    Presence("worker")
    if config().log_level != "debug":  # two lines for every task every other second would bury the rest
        for name in ("celery.worker.strategy", "celery.app.trace"):
            logging.getLogger(name).setLevel(logging.WARNING)
    measure_in_background()
    app.worker_main(
        [
            *quietly(),
            "worker",
            f"--concurrency={config().workers}",
            f"--loglevel={config().log_level}",
            f"--hostname={config().domain}@%h",
            "--without-gossip",
            "--without-mingle",
        ]
    )


def forwarder() -> None:
    """Run the worker that forwards to peers until SIGTERM: threads, because it mostly waits for them."""
    from eventing.federation.measures import copy_in_flight  # models: after Django is set up
    from eventing.federation.runs.sweeping import begin_anew

    if config().log_level != "debug":
        for name in ("celery.worker.strategy", "celery.app.trace"):
            logging.getLogger(name).setLevel(logging.WARNING)
    begin_anew()
    Presence("forwarder")
    measure_in_background(copy_in_flight)
    trace_tasks(process_name())
    signals.worker_shutting_down.connect(_stop_forwarding)
    signals.worker_ready.connect(_repeat_beside)
    app.worker_main(
        [
            *quietly(),
            "worker",
            "--pool=threads",
            f"--concurrency={config().forwarders}",
            f"--queues={FORWARD_QUEUE}",
            f"--loglevel={config().log_level}",
            f"--hostname=forwarder-{config().domain}@%h",
            "--without-gossip",
            "--without-mingle",
        ]
    )


def quietly() -> list[str]:
    """What Celery prints of itself when it starts and stops is no log line: keep it from that where lines are JSON."""
    if config().log_format != "json":
        return []
    from celery.apps import worker

    from portal.json_lines import said

    said_by: Any = worker  # its stubs do not know the function
    said_by.safe_say = said
    return ["--quiet"]


def _stop_forwarding(**_: Any) -> None:
    waking.stop()


def _repeat_beside(**_: Any) -> None:
    from workers.beside import repeat  # models: after Django is set up

    repeat(app, waking.stopping)


def beat() -> None:
    """Run beat until SIGTERM. Its memory of what it sent when is in the data folder."""
    Presence("beat")
    measure_in_background()
    app.start(
        [
            *quietly(),
            "beat",
            f"--loglevel={config().log_level}",
            f"--schedule={config().data_path / 'beat-schedule'}",
            "--pidfile=",
        ]
    )


if __name__ == "__main__":
    catch_the_rest(config().log_format)
    {"worker": worker, "forwarder": forwarder, "beat": beat}[sys.argv[1]]()
