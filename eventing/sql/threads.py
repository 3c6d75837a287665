"""SQL from the event loop: selectors and services run on a few dedicated threads, which keep their connections to SQLite.

Django closes a connection after each call where requests are bound to short-lived threads. Here the threads stay, and a
new SQLite connection would cost more than most queries (measured: 1.5 ms of 1.6 for one descriptor). Connections to
PostgreSQL are a pool's (eventing/sql/postgresql): a thread has one for the length of a call.
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

from django.db import InterfaceError, OperationalError, connection, connections

from eventing.core.container import per_process
from eventing.core.errors import Unavailable

P = ParamSpec("P")
R = TypeVar("R")

# At most one connection to SQL each.
THREADS = 4  # bound: concurrent SQL queries of a gateway; further queries wait
IDLE_S = 5.0  # a connection unused for longer is checked before use: the server may have restarted
log = logging.getLogger(__name__)


@per_process
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="database")


class _ThisThread(local):
    """The use of this thread's connection.

    Attributes:
        used_at: monotonic seconds of the last use.
        file: device and inode of the SQLite file that it has open.
    """

    used_at = 0.0
    file: tuple[int, int] | None = None


_this_thread = per_process(_ThisThread)


def in_database(function: Callable[P, R], *, threads: ThreadPoolExecutor | None = None) -> Callable[P, Awaitable[R]]:
    """Make a selector or service awaitable. The result raises Unavailable when the database does not answer.

    Args:
        threads: threads that run it; None for the shared ones.
    """

    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        work = partial(copy_context().run, partial(function, *args, **kwargs))
        try:
            return await asyncio.get_running_loop().run_in_executor(threads or _threads(), _with_connection, work)
        except (OperationalError, InterfaceError) as error:
            log.error("The database does not answer: %s", error)
            raise Unavailable("The database is not responding. Try again in a moment.", retry_after_s=2) from None

    return call


def _with_connection(work: Callable[[], R]) -> R:
    """Run `work` with this thread's connection, dropping a broken one before and after."""
    if connection.connection is not None and _is_dead():
        connection.close()
    try:
        return work()
    finally:
        _this_thread().used_at = time.monotonic()
        if connection.errors_occurred and not connection.in_atomic_block:
            connection.close()
        elif _is_pooled():
            connection_release()
        elif connection.connection is not None and connection.vendor == "sqlite":
            _this_thread().file = _file_of_sqlite()


def connection_release() -> None:
    """Return this thread's connection to the pool, unless a transaction is open: before a wait for anything but the database.

    Connections that are not a pool's are kept.
    """
    if connection.connection is not None and _is_pooled() and not connection.in_atomic_block:
        connection.close()


def connections_end() -> None:
    """Close this thread's connections, and the pool: nothing of this process uses the database any more."""
    connections.close_all()
    if _is_pooled():
        connection.close_pool()  # type: ignore[attr-defined]  # of the engine eventing.sql.postgresql


def _is_pooled() -> bool:
    return bool(connection.settings_dict.get("POOL"))


def _is_dead() -> bool:
    if connection.vendor == "sqlite":  # a file that was moved away or put back would be read on unnoticed
        return _file_of_sqlite() != _this_thread().file
    return time.monotonic() - _this_thread().used_at > IDLE_S and not connection.is_usable()


def _file_of_sqlite() -> tuple[int, int] | None:
    try:
        found = os.stat(connection.settings_dict["NAME"])  # noqa: PTH116 - on every call: no Path is made for it
    except OSError:
        return None
    return found.st_dev, found.st_ino
