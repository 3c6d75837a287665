"""Queries whose answers are remembered while SQL does not change: for what is read each second, or for each request, and changes seldom.

A query by the ORM costs 0.4 ms of processor time, mostly its own; SQLite states in a few microseconds whether anybody has committed since
(changes.py). So an answer is as fresh as one that is read. Other databases state nothing as cheap: with them each call queries, as it
does in a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from django.db import connection

from eventing.core.container import per_process
from eventing.sql.changes import sql_changes

P = ParamSpec("P")
R = TypeVar("R")
ANSWERS_MAX = 1024  # bound: answers that a process remembers; all are forgotten then
# Answers about more are large, and asked for in ever other compositions.
FEW = 16  # bound: members of an argument; an answer about more is not remembered


class _Answers:
    """The answers of this process, and whether they still hold."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._changes = sql_changes()
        self._present: dict[Hashable, Any] = {}

    def present(self) -> dict[Hashable, Any] | None:
        """Return what was read in the present state of SQL; None where that cannot be determined. A call that reads meanwhile, and finds another state,
        gets another dictionary.
        """
        if self._changes is None:
            return None
        with self._lock:
            if self._changes.changed():
                self._present = {}
            return self._present


_answers = per_process(_Answers)


def remembers() -> bool:
    """Return whether answers are remembered here and now: then more may be read at once than one caller needs."""
    return not connection.in_atomic_block and _answers().present() is not None


def remembered(query: Callable[P, R]) -> Callable[P, R]:
    """Make a query remember its answers, by its arguments, which are hashable. An answer depends on them and on SQL alone: not on
    the time, not on settings. Callers, on all threads, share it, and must not change it.
    """

    @wraps(query)
    def answered(*args: P.args, **kwargs: P.kwargs) -> R:
        many = any(isinstance(one, tuple) and len(one) > FEW for one in args)
        answers = None if many or connection.in_atomic_block else _answers().present()
        if answers is None:
            return query(*args, **kwargs)
        key = (query, args, *kwargs.items())
        if key in answers:
            known: R = answers[key]
            return known
        found = query(*args, **kwargs)
        if len(answers) >= ANSWERS_MAX:
            answers.clear()
        answers[key] = found
        return found

    return answered
