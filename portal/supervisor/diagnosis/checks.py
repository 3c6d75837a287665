"""Every check of doctor, in the order of reading: one after the other for a command, or bounded in time for a page."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock

from django.conf import settings
from django.db import connections

from eventing.conf import config
from portal.supervisor.diagnosis import machine, stores
from portal.supervisor.diagnosis.console import console_finding
from portal.supervisor.diagnosis.exposure import security_findings
from portal.supervisor.diagnosis.findings import Finding, fail, warn
from portal.supervisor.diagnosis.keys import key_finding
from portal.supervisor.diagnosis.peers import peer_findings

logger = logging.getLogger(__name__)

CHECKS: tuple[tuple[str, Callable[[], list[Finding]]], ...] = (
    ("settings", lambda: machine.settings_findings(os.environ)),
    ("python", lambda: machine.python_findings(settings.BASE_DIR / "requirements" / "run.txt")),
    ("data folder", lambda: [machine.data_folder_finding(config())]),
    ("security", lambda: security_findings(config())),
    ("redis", lambda: stores.redis_findings(config())),
    ("database", lambda: [stores.database_finding(config())]),
    ("keys", lambda: [key_finding()]),
    ("peers", peer_findings),
    ("console", lambda: [console_finding()]),
    ("gateway", lambda: [machine.gateway_finding(config())]),
    ("reports", lambda: [machine.reports_finding(config())]),
    ("open files", lambda: [machine.file_limit_finding(config())]),
    ("clock", lambda: [machine.clock_finding()]),
)
"""Name and check; none changes anything."""

THREADS = 4
"""Of their own, so that a check that hangs takes none from requests."""

_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="diagnosis")
_under_way: dict[str, Future[list[Finding]]] = {}
_lock = Lock()


def all_findings() -> list[Finding]:
    """Every check, in the order of reading."""
    return [finding for _, check in CHECKS for finding in check()]


def findings_within(seconds: float) -> list[Finding]:
    """The same within `seconds`: who has not answered by then is a finding of its own.

    A check that hangs is not begun a second time, and who asks meanwhile is given the same look: however many look at
    the page, each check runs once at a time.
    """
    with _lock:
        for name, check in CHECKS:
            if name not in _under_way:
                _under_way[name] = _threads.submit(_looked, name, check)
        asked = dict(_under_way)
    wait(asked.values(), timeout=seconds)
    found: list[Finding] = []
    for name, _ in CHECKS:
        if asked[name].done():
            found += asked[name].result()
        else:
            found.append(
                warn(name, f"Not answered within {seconds:g} s.", "Look again; manage.py doctor waits for it.")
            )
    with _lock:
        for name, look in asked.items():
            if look.done() and _under_way.get(name) is look:
                del _under_way[name]
    return found


def _looked(name: str, check: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return check()
    except Exception:
        logger.exception("The check %s failed", name)
        return [fail(name, "This cannot be checked.", "The gateway's log says why.")]
    finally:
        connections.close_all()  # this thread's: it may not be asked again for long
