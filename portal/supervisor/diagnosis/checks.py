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
from eventing.core.container import per_process
from portal.supervisor.diagnosis import machine, stores
from portal.supervisor.diagnosis.console import console_finding
from portal.supervisor.diagnosis.exposure import security_findings
from portal.supervisor.diagnosis.findings import DiagnosisFinding, fail, warn
from portal.supervisor.diagnosis.keys import key_finding
from portal.supervisor.diagnosis.peers import peer_findings

logger = logging.getLogger(__name__)

CHECKS: tuple[tuple[str, Callable[[], list[DiagnosisFinding]]], ...] = (
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


class _Looks:
    """Checks under way on threads of their own, held under `lock`."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="diagnosis")
        self.under_way: dict[str, Future[list[DiagnosisFinding]]] = {}


_looks = per_process(_Looks)


def all_findings() -> list[DiagnosisFinding]:
    """Every check, in the order of reading."""
    return [finding for _, check in CHECKS for finding in check()]


def findings_within(seconds: float) -> list[DiagnosisFinding]:
    """Run the checks within `seconds`: a check without a result by then is a finding of its own.

    A check that hangs is not begun a second time, and who asks meanwhile is given the same look: however many look at
    the page, each check runs once at a time.
    """
    looks = _looks()
    with looks.lock:
        for name, check in CHECKS:
            if name not in looks.under_way:
                looks.under_way[name] = looks.threads.submit(_checked, name, check)
        asked = dict(looks.under_way)
    wait(asked.values(), timeout=seconds)
    found: list[DiagnosisFinding] = []
    for name, _ in CHECKS:
        if asked[name].done():
            found += asked[name].result()
        else:
            found.append(
                warn(name, f"No result within {seconds:g} s.", "Check again; manage.py doctor waits for the result.")
            )
    with looks.lock:
        for name, look in asked.items():
            if look.done() and looks.under_way.get(name) is look:
                del looks.under_way[name]
    return found


def _checked(name: str, check: Callable[[], list[DiagnosisFinding]]) -> list[DiagnosisFinding]:
    try:
        return check()
    except Exception:
        logger.exception("The check %s failed", name)
        return [fail(name, "The check failed with an error.", "See the gateway's log for the reason.")]
    finally:
        connections.close_all()  # this thread's: it may not be asked again for long
