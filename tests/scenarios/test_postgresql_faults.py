"""A domain whose PostgreSQL, behind pgbouncer, is stopped, takes no writes, or has no connections left: what says so, and that all goes on by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from demo.harness.servers import Domain, wait_for
from tests.gateway.server import STRUCTURED, event
from tests.scenarios.test_postgresql import client_of
from tests.sql.postgres_server import PostgresServer, pgbouncer
from workers.schedule import LEASED_S

pytestmark = [pytest.mark.long, pytest.mark.processes]

BACK_S = 60.0  # on a machine that does other things
SOON = {name for name, period_s in LEASED_S.items() if period_s <= 5}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        with running.connect() as connection:
            connection.execute("CREATE ROLE herald LOGIN CREATEDB")
            connection.execute("CREATE DATABASE herald OWNER herald")
        yield running


@pytest.fixture(scope="module", params=[pytest.param("direct", marks=pytest.mark.soak), "pgbouncer"])
def domain(
    request: pytest.FixtureRequest, server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Domain]:
    """With workers, so that periodic tasks run by their leases."""
    direct = f"postgres://herald@/herald?host={server.folder}"
    with ExitStack() as stack:
        settings: dict[str, Any] = {"database_url": direct}
        if request.param == "pgbouncer":
            url = stack.enter_context(pgbouncer(server, "herald", query_wait_timeout=5))
            settings = {"database_url": url.replace("/postgres?", "/herald?"), "migration_database_url": direct}
        yield stack.enter_context(Domain(tmp_path_factory.mktemp(request.param) / "var", **settings))


@pytest.fixture(scope="module")
def client(domain: Domain) -> Iterator[httpx.Client]:
    """An administrator's client."""
    with client_of(domain) as made:
        yield made


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    server.stop()
    yield
    server.start()


@contextmanager
def read_only(server: PostgresServer) -> Iterator[None]:
    """As after a failover that leaves the address with a standby."""
    with server.connect() as connection:
        connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        connection.execute("SELECT pg_reload_conf()")
    yield
    with server.connect() as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
        connection.execute("SELECT pg_reload_conf()")


@contextmanager
def without_connections(server: PostgresServer) -> Iterator[None]:
    """The server refuses connections as too many, and the present ones have ended."""
    with server.connect() as connection:
        connection.execute("ALTER ROLE herald CONNECTION LIMIT 0")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'herald'")
    yield
    with server.connect() as connection:
        connection.execute("ALTER ROLE herald CONNECTION LIMIT -1")


def readiness(domain: Domain) -> dict[str, str]:
    try:
        return dict(httpx.get(f"{domain.url}/readyz", timeout=10, trust_env=False).json()["checks"])
    except httpx.HTTPError:
        return {}


def fences(server: PostgresServer) -> dict[str, int]:
    """The number of the newest run of each periodic task."""
    with server.connect("herald") as connection:
        return dict(connection.execute("SELECT name, fence FROM eventing_periodictask").fetchall())


@pytest.mark.parametrize(
    ("fault", "says"),
    [(stopped, "does not answer"), (read_only, "takes no writes"), (without_connections, "does not answer")],
)
def test_a_fault_of_the_database_is_stated_loses_nothing_and_ends_by_itself(
    server: PostgresServer,
    domain: Domain,
    client: httpx.Client,
    fault: Callable[[PostgresServer], AbstractContextManager[None]],
    says: str,
) -> None:
    rp = client.post("/api/v1/rps", json={"lease_s": 3600}).raise_for_status().json()["id"]

    def published(number: int) -> bool:
        answer = client.post(f"/api/v1/rps/{rp}/events", json=event(str(number)), headers=STRUCTURED)
        assert answer.status_code in (201, 503), answer.text
        return answer.status_code == 201

    assert published(0)
    acknowledged = [0]
    with fault(server):
        wait_for(lambda: says in readiness(domain).get("database", ""), BACK_S, about="/readyz says what is wrong")
        acknowledged += [number for number in range(1, 20) if published(number)]
        refused = client.post("/api/v1/rps", json={"lease_s": 3600})
        assert refused.status_code == 503, refused.text
        assert domain.is_running
    wait_for(domain.is_ready, BACK_S, about="the domain is ready again")
    began = fences(server)
    wait_for(
        lambda: all(fence > began[name] for name, fence in fences(server).items() if name in SOON),
        BACK_S,
        about="periodic tasks run again",
    )
    wait_for(lambda: client.post("/api/v1/rps", json={"lease_s": 60}).status_code == 201, BACK_S)
    page = client.get(f"/api/v1/rps/{rp}/events", params={"after": "earliest"}).raise_for_status().json()
    assert [int(one["id"]) for one in page["events"]] == acknowledged, "nothing that was acknowledged is lost"
