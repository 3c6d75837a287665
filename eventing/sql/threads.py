"""SQL from the event loop: selectors and services run on a few threads of their own, which keep their connections.

Django closes a connection after each call where requests come and go with their threads. Here the threads stay, and a
new SQLite connection would cost more than most questions put to it (measured: 1.5 ms of 1.6 for one descriptor).
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from threading import local
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection

from eventing.core.errors import Unavailable

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 4  # of one gateway process, each with at most one connection
IDLE_S = 5.0  # a connection unused for longer is asked whether it still works: the server may have restarted
log = logging.getLogger(__name__)
_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="database")
_this_thread = local()


def in_database(function: Callable[P, R], *, threads: ThreadPoolExecutor | None = None) -> Callable[P, Awaitable[R]]:
    """Make a selector or service awaitable. The result raises Unavailable when the database does not answer.

    Args:
        threads: where it runs; None for those that all share.
    """

    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        work = partial(copy_context().run, partial(function, *args, **kwargs))
        try:
            return await asyncio.get_running_loop().run_in_executor(threads or _threads, _with_connection, work)
        except (OperationalError, InterfaceError) as error:
            log.error("The database does not answer: %s", error)
            raise Unavailable("The database does not answer. Try again in a moment.", retry_after_s=2) from None

    return call


def _with_connection(work: Callable[[], R]) -> R:
    """Run `work` with this thread's connection, dropping one that is broken before it and after it."""
    if connection.connection is not None and _is_dead():
        connection.close()
    try:
        return work()
    finally:
        _this_thread.used_at = time.monotonic()
        if connection.errors_occurred and not connection.in_atomic_block:
            connection.close()
        elif connection.connection is not None and connection.vendor == "sqlite":
            _this_thread.file = _file_of_sqlite()


def _is_dead() -> bool:
    if connection.vendor == "sqlite":  # a file that was moved away or put back would be read on unnoticed
        return _file_of_sqlite() != getattr(_this_thread, "file", None)
    return time.monotonic() - getattr(_this_thread, "used_at", 0.0) > IDLE_S and not connection.is_usable()


def _file_of_sqlite() -> tuple[int, int] | None:
    try:
        found = os.stat(connection.settings_dict["NAME"])  # noqa: PTH116 - on every call: no Path is made for it
    except OSError:
        return None
    return found.st_dev, found.st_ino
