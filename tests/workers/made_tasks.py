"""Celery's tasks of a test's own, found by the names of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

from celery import Celery


def tasks_made(names: Iterable[str], run: Callable[[str], object]) -> Celery:
    """Return what stands for an application with tasks of these names, each of which calls `run` with its name."""
    app = Celery("made", set_as_current=False)
    return cast(Celery, SimpleNamespace(tasks={name: _task_made(app, name, run) for name in names}))


def _task_made(app: Celery, name: str, run: Callable[[str], object]) -> Any:
    @app.task(name=f"made.{name}", shared=False)  # every application has ours by their own names
    def task() -> None:
        run(name)

    return task
