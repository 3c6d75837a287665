"""Fixtures that several test folders share: Redis for in-process tests, and whole domains as processes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from eventing.conf import config
from eventing.identity.revocations import revocations
from eventing.identity.verifier import fresh_verifier
from portal.supervisor import redis_server
from portal.supervisor.leash import death_signal
from tests.servers import Domain, wait_for


@pytest.fixture(autouse=True)
def _fresh_verifier() -> Iterator[None]:
    """Each test has keys of its own: what the verifier in this process knows of others is forgotten."""
    revocations().forget()
    with fresh_verifier():
        yield


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """An embedded Redis as `make run` starts it, at the place where the code under test looks for it."""
    folder = config().data_path
    (folder / "redis").mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        redis_server.command(redis_server.find_server(), config()),
        stdout=subprocess.DEVNULL,
        preexec_fn=death_signal(signal.SIGTERM),
    )
    client = redis_server.connect(config())
    try:
        wait_for(lambda: redis_server.is_up(client), about="Redis answers")
        yield config().effective_redis_url
    finally:
        client.close()
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="session")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    """A running domain that tests share: leave it running, use rendezvous points of your own."""
    with Domain(tmp_path_factory.mktemp("domain") / "var") as running:
        yield running


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Tests empty their tables, which the audit's triggers refuse: the tests of those put them back (control/test_audit.py)."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("ALTER TABLE eventing_auditentry DISABLE TRIGGER USER")
        else:
            cursor.execute("DROP TRIGGER audit_entry_delete")


class DomainFactory:
    """Makes domains of a test's own: `new_domain(gateways=2)`; `start=False` leaves the start to the test."""

    def __init__(self, folder: Path) -> None:
        self.made: list[Domain] = []
        self._folder = folder

    def __call__(self, *, start: bool = True, **settings: Any) -> Domain:
        domain = Domain(self._folder / f"var{len(self.made)}", **settings)
        self.made.append(domain)
        return domain.start() if start else domain


@pytest.fixture
def new_domain(tmp_path: Path) -> Iterator[DomainFactory]:
    """A DomainFactory; what it made is stopped after the test."""
    factory = DomainFactory(tmp_path)
    yield factory
    for domain in factory.made:
        try:
            domain.stop()
        finally:
            domain.kill_everything()


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
