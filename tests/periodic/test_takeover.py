"""Three hosts, of which the one at work is killed, then stopped: another takes over, and never are two runs valid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from django.conf import settings
from django.db import connection

from demo.harness.servers import wait_for
from eventing.conf import config
from portal.supervisor.parent_watchdog import death_signal

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.usefixtures("stores")]

TAKEN_OVER_WITHIN_S = 5.0
BUSY_S = 30.0  # by which a busy machine may be late


class Noted(NamedTuple):
    """A row that a run has written."""

    fence: int
    pid: int
    what: str


@pytest.fixture
def hosts(stores: None, tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    with connection.cursor() as cursor:
        serial = "serial" if connection.vendor == "postgresql" else "integer"
        cursor.execute("DROP TABLE IF EXISTS run_log")
        cursor.execute(f"CREATE TABLE run_log (at {serial} PRIMARY KEY, fence bigint, pid integer, what text)")
    places = [str(connection.settings_dict["NAME"]), config().effective_redis_url, str(tmp_path)]
    made = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.periodic.holder", *places],
            cwd=settings.BASE_DIR,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=death_signal(signal.SIGKILL),
        )
        for _ in range(3)
    ]
    for one in made:
        assert one.stdout is not None
        assert one.stdout.readline() == "up\n"
    yield made
    for one in made:
        one.kill()
        one.wait()
        assert one.stdout is not None
        one.stdout.close()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE run_log")


def noted() -> list[Noted]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT fence, pid, what FROM run_log ORDER BY at")
        return [Noted(*row) for row in cursor.fetchall()]


def newest(what: str) -> Noted | None:
    return next((one for one in reversed(noted()) if one.what == what), None)


def test_a_host_that_is_killed_or_stopped_is_taken_over_and_its_late_writes_are_refused(
    hosts: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    wait_for(lambda: newest("end"), about="a run ends")
    for order in ("kill", "stop"):
        alive = {one.pid for one in hosts if one.poll() is None}
        for pid in alive:
            (tmp_path / str(pid)).write_text(order)
        gone = wait_for(partial(_obeyed, tmp_path, alive), about=f"one obeys: {order}")
        for pid in alive - {gone}:
            (tmp_path / str(pid)).unlink(missing_ok=True)
        began, fence = time.monotonic(), max(one.fence for one in noted() if one.pid == gone)
        wait_for(partial(_begun_after, fence), about="another host takes over")
        took_s = time.monotonic() - began
        print(f"{order}: taken over within {took_s:.1f} s")
        assert took_s <= TAKEN_OVER_WITHIN_S + BUSY_S
    os.kill(gone, signal.SIGCONT)
    wait_for(lambda: Noted(fence, gone, "refused") in noted(), about="the late write is refused")
    rows = [one for one in noted() if one.what != "refused"]
    assert rows == sorted(rows, key=lambda one: one.fence), (
        "nothing was written under a number once a higher one had begun"
    )
    assert len(rows) == len(set(rows)), "nothing was written twice"
    assert {one.pid for one in rows} <= {one.pid for one in hosts}


def _begun_after(fence: int) -> bool:
    """Return whether a run with a higher number has written."""
    return any(one.fence > fence for one in noted())


def _obeyed(folder: Path, pids: set[int]) -> int:
    """Return the host that has obeyed its order, 0 while none has."""
    return next((pid for pid in pids if not (folder / str(pid)).exists()), 0)
