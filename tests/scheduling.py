"""Which worker of `make test` runs which tests, and when: pytest-xdist by files, with two differences.

Files whose tests use the same running domains go to one worker together, so that those are started once (TOGETHER), and
stopped when the last of them is over: a domain that nobody uses still takes a tenth of a core. And
what takes long comes first, so that no worker is left with a long file when the others are done: first LONG as it is
listed, then all else that starts processes, then the rest, which is short.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = {
    "three_domains": (
        "tests/client/test_rollover.py",
        "tests/federation/test_joining.py",
        "tests/federation/test_scenarios_lies.py",
        "tests/federation/test_scenarios_network.py",
        "tests/federation/test_scenarios_outages.py",
        "tests/federation/test_shared_subscriptions.py",
        "tests/portal/test_browser_federation.py",
    ),
    "domain": (
        "tests/client/test_against_server.py",
        "tests/client/test_policy_command.py",
        "tests/federation/test_proofs.py",
        "tests/portal/test_browser.py",
        "tests/portal/test_browser_lists.py",
        "tests/portal/test_browser_alarms.py",
        "tests/portal/test_browser_overview.py",
        "tests/portal/test_browser_rps.py",
        "tests/portal/test_browser_tables.py",
        "tests/portal/test_browser_timescale.py",
        "tests/portal/test_security.py",
        "tests/run/test_doctor.py",
    ),
    "console_domain": (
        "tests/portal/test_accounts.py",
        "tests/portal/test_oidc.py",
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
    "tests/run/test_demo.py",
    "tests/run/test_supervisor.py",
    "tests/api/test_openapi_fuzz.py",
)
"""Scopes that take longest, the longest first."""

_SCOPES = {path: name for name, paths in TOGETHER.items() for path in paths}
PROCESSES = frozenset(
    {"domain", "new_domain", "console_domain", "edge", "new_edge", "shared_edge", "network", "prepared", "browser"}
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


def arrange(items: list[pytest.Item]) -> None:
    """Sort tests by the head of this module; within a scope they stay in order. Raises pytest.UsageError."""
    slow: dict[str, int] = {}
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        path = item.nodeid.partition("::")[0]
        for name, paths in TOGETHER.items():
            if path not in paths and name in fixtures and _is_shared(item, name):
                raise pytest.UsageError(f"{path} uses the fixture `{name}`: add it to TOGETHER (tests/scheduling.py).")
        starts = bool(fixtures & PROCESSES) or item.get_closest_marker("processes") is not None
        slow[scope(item.nodeid)] = slow.get(scope(item.nodeid), 0) + starts
    first = {name: place for place, name in enumerate(_order(slow))}
    items.sort(key=lambda item: first[scope(item.nodeid)])


def _is_shared(item: pytest.Item, name: str) -> bool:
    """Whether the fixture of that name is the session's; some files have one of their own under it."""
    found = item.session._fixturemanager.getfixturedefs(name, item)
    return found is not None and found[-1].scope == "session"


def _order(slow: dict[str, int]) -> Iterable[str]:
    """The scopes, the long ones first, then those with the most tests that start processes."""
    place = {name: number for number, name in enumerate(LONG)}
    return sorted(slow, key=lambda name: (place.get(name, len(LONG)), -slow[name]))
