"""Fixtures that several test folders share: Redis for in-process tests, and whole domains as processes."""

from __future__ import annotations

import functools
import gc
import os
import random
import signal
import ssl
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection, connections, transaction
from django.db.backends.postgresql.creation import DatabaseCreation
from django.test import TransactionTestCase
from whitenoise.middleware import WhiteNoiseMiddleware

from demo.harness.network import DELIVERY_LEASE_S, QUOTA_BYTES, Network, mesh
from demo.harness.servers import Domain, wait_for
from eventing.conf import config
from eventing.core.container import fresh_container
from portal.supervisor import redis_server
from portal.supervisor.parent_watchdog import death_signal
from tests import scheduling
from tests.gateway.server import Prepared, prepare
from tests.store.cluster_process import ClusterProcesses

pytest_plugins = ["tests.planes", "tests.replication.stores", "tests.store.redis_process"]

# A busy machine is not a failure of what is tested. Examples are drawn anew in each run: fifty a run are thousands in a week.
hypothesis.settings.register_profile("tests", deadline=None, max_examples=50)
hypothesis.settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options by which an order of files is repeated, and browsers are slowed down."""
    parser.addoption("--order-seed", type=int, help="seed of the order of files (default: drawn anew)")
    parser.addoption(
        "--slow-pages",
        action="store_true",
        help="browser tests: delay responses and throttle scripts, drawn by the seed",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Draw the seed, unless this is a worker, which has it of the process that hands tests out."""
    gc.disable()  # until all tests are collected, below
    folder = Path(tempfile.gettempdir()) / f"herald-config-{os.getpid()}"
    os.environ["XDG_CONFIG_HOME"] = str(folder)  # not there: no test uses the profiles of the person who runs it
    if config.option.order_seed is None:
        config.option.order_seed = getattr(config, "workerinput", {}).get("order_seed", random.randrange(10**6))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give a worker the seed."""
    node.workerinput["order_seed"] = node.config.option.order_seed


def pytest_report_header(config: pytest.Config) -> str:
    """Name the seed."""
    return f"order of files: --order-seed={config.option.order_seed}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> scheduling.Scheduling:
    """Hand tests out as tests/scheduling.py says."""
    config.option.loadscopereorder = False
    return scheduling.Scheduling(config, log)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Set the marker `sql`."""
    scheduling.mark_sql(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put files into the order of tests/scheduling.py."""
    scheduling.arrange(items, config.option.order_seed)


def pytest_collection_finish() -> None:
    """Leave ten thousand tests and what they imported out of garbage collection: it took a twelfth of a worker's time."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _container() -> Iterator[None]:
    """Each test has a container of its own: no cache, client or counter of the process outlives a test."""
    with fresh_container():
        yield


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An embedded Redis as `make run` starts it, at the place where the code under test looks for it; with
    HERALD_TEST_PLANE=cluster it is the broker, and a cluster of three primaries the data plane."""
    folder = config().data_path
    (folder / "redis").mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        redis_server.command(redis_server.find_server(), config()),
        stdout=subprocess.DEVNULL,
        preexec_fn=death_signal(signal.SIGTERM),
    )
    client = redis_server.connect(config())
    cluster: ClusterProcesses | None = None
    before = settings.HERALD
    try:
        wait_for(lambda: redis_server.is_up(client), about="Redis answers")
        if os.environ.get("HERALD_TEST_PLANE") == "cluster":
            cluster = ClusterProcesses(tmp_path_factory.mktemp("cluster"))
            settings.HERALD = replace(before, redis_url=cluster.url, broker_url=before.effective_redis_url)
        yield config().effective_redis_url
    finally:
        settings.HERALD = before
        if cluster is not None:
            cluster.kill()
        client.close()
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A migrated data folder to copy from."""
    return prepare(tmp_path_factory.mktemp("prepared") / "var")


DELIVERING: dict[str, Any] = {"push": 1, "push_private": 1, "push_ports": "1-65535", "push_retries_s": "0.5,1,2,3,5,8"}
"""Settings of a domain that delivers to endpoints on this machine, and repeats soon."""


@pytest.fixture(scope="session")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    """A running domain, begun from nothing, that tests share: leave it running, use rendezvous points of your own."""
    with scheduling.shared_by("domain") as shared:
        yield shared.enter_context(Domain(tmp_path_factory.mktemp("domain") / "var", **DELIVERING))


@pytest.fixture(scope="session")
def three_domains(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Network]:
    """Three running domains that tests share by the fixture `network`."""
    settings: dict[str, Any] = {"records": 0, "delivery_lease_s": DELIVERY_LEASE_S, "history_quota_bytes": QUOTA_BYTES}
    folder = tmp_path_factory.mktemp("three")
    with scheduling.shared_by("three_domains") as shared:
        yield shared.enter_context(Network(folder, "abc", seed=prepared.migrated, allow_private_issuers=1, **settings))


@pytest.fixture
def network(three_domains: Network, request: pytest.FixtureRequest) -> Iterator[Network]:
    """Domains a, b and c, all running, peered as the test's module says with SHAPE (by default each with each).

    Whatever a test does, the next one finds them whole again. List its file in tests/scheduling.py.
    """
    three_domains.begin(getattr(request.module, "SHAPE", mesh(three_domains.names)))
    yield three_domains
    three_domains.end()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Tests empty their tables, which the audit's triggers refuse: the tests of those put them back (tests/audit/test_audit.py)."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("ALTER TABLE eventing_auditentry DISABLE TRIGGER USER")
        else:
            cursor.execute("DROP TRIGGER audit_entry_delete")


KEPT_TABLES = frozenset({"django_migrations", "django_content_type", "auth_permission", "auth_group"})


def _tables_emptied(case: TransactionTestCase) -> None:
    """Empty the tables after a test that commits, of a hundred those few that it wrote to: PostgreSQL takes 50 ms to truncate all,
    longer than most of these tests. Django would then make all content types, permissions and roles anew, too.
    """
    for alias in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]
        base = connections[alias]
        quoted = base.ops.quote_name
        tables = sorted({model._meta.db_table for model in apps.get_models(include_auto_created=True)} - KEPT_TABLES)
        with transaction.atomic(using=alias), base.cursor() as cursor:  # foreign keys are examined at its end
            cursor.execute(
                " UNION ALL ".join(f"SELECT '{one}' WHERE EXISTS (SELECT 1 FROM {quoted(one)})" for one in tables)
            )
            for (written,) in cursor.fetchall():
                cursor.execute(f"DELETE FROM {quoted(written)}")


TransactionTestCase._fixture_teardown = _tables_emptied  # type: ignore[attr-defined]


def _test_database_dropped(creation: Any, name: str, verbosity: int) -> None:
    """Drop a test database of PostgreSQL, of which pgbouncer still holds connections."""
    creation.connection.close_pool()
    with creation._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE {creation.connection.ops.quote_name(name)} WITH (FORCE)")


DatabaseCreation._destroy_test_db = _test_database_dropped  # type: ignore[attr-defined]  # not in its stubs


@pytest.fixture(scope="session", autouse=True)
def _static_files_found_once() -> None:
    """Each test client would look for all static files anew, which takes longer than most of its requests."""
    find = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, Any] = {}

    def find_once(middleware: WhiteNoiseMiddleware) -> None:
        if not found:
            find(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    WhiteNoiseMiddleware.add_files_from_finders = find_once


@pytest.fixture(scope="session", autouse=True)
def _certificates_read_once() -> Iterator[None]:
    """Each HTTP client would read the authorities of the web anew, which takes longer than most of its requests."""
    make = httpx.create_ssl_context

    @functools.cache
    def made_once(_: str | None, *arguments: Any, **options: Any) -> ssl.SSLContext:
        return make(*arguments, **options)

    def context(*arguments: Any, **options: Any) -> ssl.SSLContext:
        return made_once(os.environ.get("SSL_CERT_FILE"), *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx.create_ssl_context", context)
        patch.setattr("httpx._transports.default.create_ssl_context", context)
        yield


class DomainFactory:
    """Makes domains of a test's own: `new_domain(gateways=2)`; `start=False` leaves the start to the test."""

    def __init__(self, folder: Path, seed: Path) -> None:
        self.made: list[Domain] = []
        self._folder, self._seed = folder, seed

    def __call__(self, *, start: bool = True, **settings: Any) -> Domain:
        domain = Domain(self._folder / f"var{len(self.made)}", seed=self._seed, **settings)
        self.made.append(domain)
        return domain.start() if start else domain


@pytest.fixture
def new_domain(tmp_path: Path, prepared: Prepared) -> Iterator[DomainFactory]:
    """A DomainFactory; what it made is stopped after the test."""
    factory = DomainFactory(tmp_path, prepared.migrated)
    yield factory
    for domain in factory.made:
        try:
            domain.stop()
        finally:
            domain.kill_everything()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End what a group of files shares with its last test."""
    scheduling.tested(item, nextitem)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of the domains that a failed test used; on CI, a browser test that would be skipped has failed."""
    report = yield
    if report.skipped and item.get_closest_marker("browser") and os.environ.get("CI") == "true":
        report.outcome, report.longrepr = "failed", f"skipped, but CI must run it: {report.longreprtext}"
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            used = value.made if isinstance(value, DomainFactory) else [value] if isinstance(value, Domain) else []
            report.sections += [(f"domain in {domain.data_dir}", domain.logs()) for domain in used]
    return report
