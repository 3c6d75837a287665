"""Which worker of `make test` runs which tests, and when: pytest-xdist by files, with two differences.

Files whose tests use the same running domains go to one worker together, so that those are started once (TOGETHER), and
stopped when the last of them is over: a domain that nobody uses still takes a tenth of a core. And LONG comes first, as it is
listed, so that no worker is left with a long file when the others are done. All other files are in an order drawn at
random, so that no test can rely on those before it; the head of the report names the seed, and `ARGS=--order-seed=N`
repeats the order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = {
    "three_domains": (
        "tests/scenarios/test_acquaintances.py",
        "tests/scenarios/test_rollover.py",
        "tests/scenarios/test_home_moves.py",
        "tests/scenarios/test_joining.py",
        "tests/scenarios/test_lies.py",
        "tests/scenarios/test_network.py",
        "tests/scenarios/test_outages.py",
        "tests/scenarios/test_overlay.py",
        "tests/scenarios/test_overlay_lies.py",
        "tests/scenarios/test_paths.py",
        "tests/scenarios/test_reader_moves.py",
        "tests/scenarios/test_replica_lies.py",
        "tests/scenarios/test_placement.py",
        "tests/scenarios/test_shared_subscriptions.py",
        "tests/portal/console/test_browser_federation.py",
        "tests/portal/console/test_browser_overlay.py",
        "tests/portal/console/test_browser_placement.py",
    ),
    "domain": (
        "tests/client/test_against_server.py",
        "tests/client/test_policy_command.py",
        "tests/client/test_worker.py",
        "tests/replication/test_proofs.py",
        "tests/portal/console/test_browser.py",
        "tests/portal/console/test_browser_lists.py",
        "tests/portal/console/test_browser_alarms.py",
        "tests/portal/console/test_browser_bulk.py",
        "tests/portal/console/test_browser_deliveries.py",
        "tests/portal/console/test_browser_documentation.py",
        "tests/portal/console/test_browser_keyboard.py",
        "tests/portal/console/test_browser_meanwhile.py",
        "tests/portal/console/test_browser_policy.py",
        "tests/portal/console/test_browser_overview.py",
        "tests/portal/console/test_browser_rps.py",
        "tests/portal/console/test_browser_self_administration.py",
        "tests/portal/console/test_browser_tables.py",
        "tests/portal/console/test_browser_timescale.py",
        "tests/portal/console/test_browser_tools.py",
        "tests/portal/test_security.py",
        "tests/portal/supervisor/test_doctor.py",
    ),
    "examples_domain": (
        "tests/examples/test_examples.py",
        "tests/examples/test_cookbook.py",
        "tests/examples/test_guides.py",
    ),
    "console_domain": (
        "tests/portal/console/test_accounts.py",
        "tests/portal/console/test_device_login.py",
        "tests/portal/console/test_websocket.py",
        "tests/portal/console/test_oidc.py",
    ),
    "pushing": (
        "tests/subscriptions/push/test_push_delivery.py",
        "tests/subscriptions/push/test_cloudevents_delivery.py",
        "tests/subscriptions/push/test_documented_receivers.py",
        "tests/subscriptions/push/websub/test_bridge.py",
        "tests/subscriptions/push/websub/test_hub.py",
    ),
    "engine": (
        "tests/spark/test_reports.py",
        "tests/spark/test_transforms_access.py",
        "tests/spark/test_transforms_federation.py",
        "tests/spark/test_transforms_latency.py",
        "tests/spark/test_transforms_load.py",
        "tests/spark/test_transforms_overlap.py",
        "tests/spark/test_transforms_placement.py",
        "tests/spark/test_transforms_records.py",
    ),
}
"""Files by the session's fixture that they share. `arrange` refuses others that use it."""

LONG = (
    "domain",
    "three_domains",
    "engine",
    "tests/sim/test_scenario.py",
    "tests/examples/test_tutorials.py",
    "tests/sim/test_trials.py",
    "tests/subscriptions/push/test_shared_push.py",
    "tests/scenarios/test_postgresql.py",
    "examples_domain",
    "tests/demo/test_demo.py",
    "tests/portal/supervisor/test_supervisor.py",
    "tests/rest/test_openapi_fuzz.py",
)
"""Scopes that take longest, the longest first."""

_SCOPES = {path: name for name, paths in TOGETHER.items() for path in paths}
PROCESSES = frozenset(
    {
        "domain",
        "new_domain",
        "console_domain",
        "examples_domain",
        "live_gateway",
        "new_live_gateway",
        "shared_live_gateway",
        "network",
        "prepared",
        "pushing",
        "browser",
    }
)
"""Fixtures that start processes."""


def scope(nodeid: str) -> str:
    """What is run by one worker, in order: a file, or the files that share a fixture."""
    path = nodeid.partition("::")[0]
    return _SCOPES.get(path, path)


_SHARED: dict[str, ExitStack] = {}


@contextmanager
def shared_by(name: str) -> Iterator[ExitStack]:
    """What is entered here ends with the group `name` of TOGETHER, or with the block."""
    with ExitStack() as stack:
        _SHARED[name] = stack
        yield stack


def tested(item: pytest.Item, following: pytest.Item | None) -> None:
    """A test is over: if it was the last of its group, so is what the group shares."""
    name = scope(item.nodeid)
    if name in _SHARED and (following is None or scope(following.nodeid) != name):
        _SHARED.pop(name).close()


class Scheduling(LoadScopeScheduling):
    """Hands out scopes in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)


def arrange(items: list[pytest.Item], seed: int) -> None:
    """Sort files by the head of this module; within a file, tests stay in order. Raises pytest.UsageError."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        path = item.nodeid.partition("::")[0]
        for name, paths in TOGETHER.items():
            if path not in paths and name in fixtures and _is_shared(item, name):
                raise pytest.UsageError(f"{path} uses the fixture `{name}`: add it to TOGETHER (tests/scheduling.py).")
    files = sorted({item.nodeid.partition("::")[0] for item in items})
    random.Random(seed).shuffle(files)
    place = {name: number for number, name in enumerate(dict.fromkeys((*LONG, *map(scope, files))))}
    within = {name: number for number, name in enumerate(files)}
    items.sort(key=lambda item: (place[scope(item.nodeid)], within[item.nodeid.partition("::")[0]]))


def mark_sql(item: pytest.Item) -> None:
    """Mark a test whose own process keeps something in SQL, so that it can be run on another database (.ci/run)."""
    uses_sql = {"db", "transactional_db"} & set(getattr(item, "fixturenames", ())) or item.get_closest_marker(
        "django_db"
    )
    if uses_sql and not _starts_processes(item):
        item.add_marker("sql")


def _starts_processes(item: pytest.Item) -> bool:
    fixtures = PROCESSES.intersection(getattr(item, "fixturenames", ()))
    return bool(fixtures) or item.get_closest_marker("processes") is not None


def _is_shared(item: pytest.Item, name: str) -> bool:
    """Whether the fixture of that name is the session's; some files have one of their own under it."""
    found = item.session._fixturemanager.getfixturedefs(name, item)
    return found is not None and found[-1].scope == "session"
