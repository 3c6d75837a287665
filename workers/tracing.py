"""Spans of Celery's tasks, if spans are exported (eventing/telemetry/tracing.py)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from celery import signals

from eventing.conf import config
from eventing.core.container import per_process
from eventing.telemetry import tracing


@per_process
def _under_way() -> dict[str, ExitStack]:
    """Return the open spans of running tasks, by id."""
    return {}


def trace_tasks(process: str) -> None:
    """Make spans of the tasks that this process runs, if an exporter is configured."""
    if tracing.start(config(), process):
        signals.task_prerun.connect(_begin, weak=False, dispatch_uid="tracing")
        signals.task_postrun.connect(_end, weak=False, dispatch_uid="tracing")
        signals.worker_process_shutdown.connect(_stop, weak=False, dispatch_uid="tracing")


def _begin(task_id: str = "", task: Any = None, **_: Any) -> None:
    stack = _under_way()[task_id] = ExitStack()
    name = str(getattr(task, "name", "task")).rpartition(".")[2]
    stack.enter_context(tracing.span(f"task {name}", "consumer", attributes={"herald.task": name}))


def _end(task_id: str = "", state: str | None = None, **_: Any) -> None:
    stack = _under_way().pop(task_id, None)
    if stack is not None:
        tracing.attributes_set(state=str(state))
        stack.close()


def _stop(**_: Any) -> None:
    tracing.stop()
