"""A domain on PostgreSQL: its connections are bounded, it outlives restarts of the server, and pgbouncer may stand in front."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from demo.harness.servers import Domain, manage, wait_for
from tests.sql.postgres_server import PostgresServer, pgbouncer

pytestmark = [pytest.mark.long, pytest.mark.processes]

GATEWAYS, MOST = 2, 5
HOST_MOST = GATEWAYS * MOST + 3 + (2 + 8 + 8)
"""Connections of a host: gateways, worker, forwarder (docs/operating.md)."""
SETTINGS: dict[str, Any] = {"gateways": GATEWAYS, "database_connections": MOST, "rate_window_s": 60}
BACK_S = 2.0
BUSY_S = 5.0
"""By which a machine that is busy with other tests may be late."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


@pytest.fixture(scope="module")
def domain(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    with Domain(tmp_path_factory.mktemp("postgresql") / "var", database_url=server.url, **SETTINGS) as running:
        yield running


def client_of(domain: Domain) -> httpx.Client:
    """A client with an administrator's token, of the server's own command: tests read keys of SQLite only."""
    token = manage("token_create", "--admin", env=domain.env, timeout_s=200).stdout.strip()
    limits = httpx.Limits(max_connections=200)
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=domain.url, headers=headers, timeout=60.0, trust_env=False, limits=limits)


def used(client: httpx.Client, name: str) -> None:
    """Create an RP, publish to it and read."""
    rp = client.post("/api/v1/rps", json={"name": name, "lease_s": 3600}).raise_for_status().json()["id"]
    client.post(f"/api/v1/rps/{rp}/events", json={"n": 1}).raise_for_status()
    found = client.get(f"/api/v1/rps/{rp}/events", params={"after": "earliest"}).raise_for_status().json()
    assert [event["data"]["n"] for event in found["events"]] == [1]


class Watched:
    """The most connections that the server has had at once, while the block runs."""

    def __init__(self, server: PostgresServer) -> None:
        self._server, self._over = server, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.most = 0

    def _run(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, self._server.clients())

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)


def test_two_hundred_requests_at_once_use_at_most_the_connections_that_the_settings_permit(
    server: PostgresServer, domain: Domain
) -> None:
    with client_of(domain) as client, Watched(server) as watched, ThreadPoolExecutor(200) as threads:
        answers: list[int] = []
        for _ in range(3):
            answers += threads.map(lambda _: client.get("/api/v1/rps").status_code, range(200))
        assert set(answers) <= {200, 503}
        assert answers.count(200) >= 100  # a busy machine refuses some after 5 s
    assert 1 <= watched.most <= HOST_MOST


def test_after_a_restart_of_the_server_requests_succeed_within_two_seconds(
    server: PostgresServer, domain: Domain
) -> None:
    """Others are refused as unavailable, none hangs or fails otherwise."""
    begun: list[tuple[float, int]] = []
    over = threading.Event()

    def ask(client: httpx.Client) -> None:
        while not over.is_set():
            at = time.monotonic()
            begun.append((at, client.get("/api/v1/rps").status_code))
            over.wait(0.02)

    with client_of(domain) as client, ThreadPoolExecutor(4) as threads:
        asking = [threads.submit(ask, client) for _ in range(4)]
        time.sleep(1.0)  # before the fault
        server.stop()
        time.sleep(3.0)  # the fault: so long nothing answers
        server.start()
        back = time.monotonic()
        settled = back + BACK_S + BUSY_S
        wait_for(lambda: sum(at > settled for at, _ in list(begun)) >= 100, about="requests after it")
        over.set()
        for one in asking:
            one.result(60)
        later = [status for at, status in begun if at > settled]
        assert {status for _, status in begun} <= {200, 503}
        assert 503 in {status for _, status in begun}
        assert later.count(200) >= 0.99 * len(later)
        used(client, "after-the-restart")


def test_a_domain_runs_through_pgbouncer_in_transaction_mode(server: PostgresServer, tmp_path: Path) -> None:
    with server.connect() as connection:
        connection.execute("CREATE DATABASE pooled")
    direct = server.url.replace("/postgres?", "/pooled?")
    with pgbouncer(server) as url:
        settings: dict[str, Any] = {
            "database_url": url.replace("/postgres?", "/pooled?"),
            "migration_database_url": direct,
        }
        with Domain(tmp_path / "var", **settings) as domain, client_of(domain) as client:
            for number in range(20):
                used(client, f"pooled-{number}")


def test_of_two_hosts_that_start_at_once_one_migrates(server: PostgresServer, tmp_path: Path) -> None:
    with server.connect() as connection:
        connection.execute("CREATE DATABASE shared")
    url = server.url.replace("/postgres?", "/shared?")
    hosts = [Domain(tmp_path / f"host{number}" / "var", database_url=url, secret_key="s" * 40) for number in (1, 2)]
    try:
        for host in hosts:
            host.spawn()
        for host in hosts:
            host.wait_up()
        applied = sum(host.output.count("migrations applied") for host in hosts)
        assert applied == 1, [host.output for host in hosts]
        with psycopg.connect(host=str(server.folder), user="postgres", dbname="shared") as connection:
            rows = connection.execute("SELECT app, name FROM django_migrations").fetchall()
        assert len(rows) == len(set(rows)) > 30
    finally:
        for host in hosts:
            host.stop()
            host.kill_everything()
