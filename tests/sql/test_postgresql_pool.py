"""The pool of connections to PostgreSQL: bounded, quick to fail while the server is away, and healed by the first request after it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg_pool import PoolTimeout

from demo.harness.servers import ROOT, wait_for
from eventing.sql.postgresql.pool import BoundedPool
from tests.sql.postgres_server import OWNER, PostgresServer

MOST = 3
WAIT_S, AT_ONCE_S = 60.0, 30.0
"""A wait for a connection, and a refusal on a busy machine."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


@pytest.fixture
def pool(server: PostgresServer) -> Iterator[BoundedPool]:
    place = {"host": str(server.folder), "user": OWNER, "dbname": "postgres", "autocommit": True}
    made = BoundedPool(max_size=MOST, kwargs={**place, "application_name": "pool"}, configure=None)
    made.open()
    yield made
    made.close()


def asked(pool: BoundedPool) -> Any:
    """Borrow a connection for one query."""
    connection = pool.getconn(WAIT_S)
    try:
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        return row[0] if row else None
    finally:
        pool.putconn(connection)


def test_two_hundred_requests_at_once_share_the_most_connections(server: PostgresServer, pool: BoundedPool) -> None:
    most = 0

    def request(_: int) -> Any:
        nonlocal most
        connection = pool.getconn(WAIT_S)
        try:
            connection.execute("SELECT pg_sleep(0.005)")
            most = max(most, server.clients("pool"))
        finally:
            pool.putconn(connection)

    with ThreadPoolExecutor(200) as threads:
        list(threads.map(request, range(200)))
    assert 1 <= most <= MOST


def test_a_request_for_which_no_connection_becomes_free_fails_in_time(pool: BoundedPool) -> None:
    taken = [pool.getconn() for _ in range(MOST)]
    began = time.monotonic()
    with pytest.raises(PoolTimeout, match="none of at most 3 connections"):
        pool.getconn(0.3)
    assert time.monotonic() - began >= 0.3
    for one in taken:
        pool.putconn(one)
    assert asked(pool)


def test_requests_fail_at_once_while_the_server_is_away_and_the_first_one_afterwards_is_served(
    server: PostgresServer, pool: BoundedPool
) -> None:
    with ThreadPoolExecutor(MOST) as threads:  # idle connections, which the server will have closed
        before = set(threads.map(lambda _: asked(pool), range(20)))
    server.stop()
    try:
        for _ in range(3):
            began = time.monotonic()
            with pytest.raises(psycopg.OperationalError, match="refuses connections"):
                asked(pool)
            assert time.monotonic() - began < AT_ONCE_S
    finally:
        server.start()
    time.sleep(0.3)  # the pool leaves a server alone for REFUSED_S after a refusal
    with ThreadPoolExecutor(50) as threads:
        after = set(threads.map(lambda _: asked(pool), range(50)))
    assert after
    assert not after & before


def test_connections_that_were_idle_over_a_restart_are_not_lent(server: PostgresServer, pool: BoundedPool) -> None:
    taken = [pool.getconn() for _ in range(MOST)]
    for one in taken:
        pool.putconn(one)
    server.restart()
    assert all(asked(pool) for _ in range(10))


def test_a_connection_is_returned_when_its_thread_ends(server: PostgresServer, pool: BoundedPool) -> None:
    for _ in range(3 * MOST):
        thread = threading.Thread(target=pool.getconn)
        thread.start()
        thread.join()
    assert asked(pool)
    wait_for(lambda: server.clients("pool") <= MOST, about="the connections are few")


BEGUN = """
import os, sys
from django.conf import settings
from eventing.sql.postgresql.base import DatabaseWrapper
place = {"ENGINE": "eventing.sql.postgresql", "NAME": "postgres", "USER": sys.argv[2], "HOST": sys.argv[1], "POOL": {"max_size": 2}, "ABANDONED_S": 0.5}
settings.configure(DATABASES={"default": place}, USE_TZ=True)
import django; django.setup()
from django.db import connection
"""
FORK = (
    BEGUN
    + """
def pid():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]
before = pid()
child = os.fork()
if child == 0:
    own = [pid(), pid()]
    os._exit(0 if own[0] == own[1] != before else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, "the child used the parent's connection"
assert pid() == before, "the child ended the parent's connection"
"""
)
ABANDONED = (
    BEGUN
    + """
import time
from django.db import OperationalError, transaction
def lock():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(1)")
try:
    with transaction.atomic():
        lock()
        time.sleep(3)  # as a host that was cut off
        lock()
    sys.exit("the transaction was not ended")
except OperationalError:
    connection.close()
with transaction.atomic():
    lock()
"""
)


def run(server: PostgresServer, script: Path, text: str) -> None:
    """Run a program that uses the engine in a process of its own."""
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, script, server.folder, OWNER],
        env={"PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_server_ends_a_transaction_in_which_nothing_is_sent(server: PostgresServer, tmp_path: Path) -> None:
    run(server, tmp_path / "abandoned.py", ABANDONED)


def test_a_forked_child_has_connections_of_its_own_and_leaves_the_parents_alone(
    server: PostgresServer, tmp_path: Path
) -> None:
    run(server, tmp_path / "fork.py", FORK)
