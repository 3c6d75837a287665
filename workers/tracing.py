"""Spans of Celery's tasks; only where spans are sent (eventing/telemetry/tracing.py)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from celery import signals

from eventing.conf import config
from eventing.telemetry import tracing

_under_way: dict[str, ExitStack] = {}


def trace_tasks(process: str) -> None:
    """Make spans of the tasks that this process runs, if there is where to send them."""
    if tracing.start(config(), process):
        signals.task_prerun.connect(_begin, weak=False, dispatch_uid="tracing")
        signals.task_postrun.connect(_end, weak=False, dispatch_uid="tracing")
        signals.worker_process_shutdown.connect(_stop, weak=False, dispatch_uid="tracing")


def _begin(task_id: str = "", task: Any = None, **_: Any) -> None:
    stack = _under_way[task_id] = ExitStack()
    name = str(getattr(task, "name", "task")).rpartition(".")[2]
    stack.enter_context(tracing.span(f"task {name}", "consumer", attributes={"herald.task": name}))


def _end(task_id: str = "", state: str | None = None, **_: Any) -> None:
    stack = _under_way.pop(task_id, None)
    if stack is not None:
        tracing.tell(state=str(state))
        stack.close()


def _stop(**_: Any) -> None:
    tracing.stop()
