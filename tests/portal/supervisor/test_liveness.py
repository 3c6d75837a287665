"""Liveness by work done: what counts as work (pure), and what the supervisor does with a child that does none (real processes)."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.harness.servers import ROOT
from portal.queues import BrokerAway
from portal.supervisor.child import Child, ChildSpec
from portal.supervisor.liveness import WorkProgress, WorkWatch
from portal.supervisor.process_group import ProcessGroup
from portal.supervisor.terminal import Terminal

BUSY_S = 60.0


class Work:
    """Work of which a test decides everything."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turns = 0
        self.under_way = False
        self.waits: int | Exception = 1
        self.watch = WorkWatch(
            lambda: WorkProgress(self.turns, self.under_way), self._waiting, busy_s=BUSY_S, now=lambda: self.now
        )
        self.watch.goes_on()  # the first look has nothing to compare with

    def _waiting(self) -> int:
        if isinstance(self.waits, Exception):
            raise self.waits
        return self.waits

    def after(self, seconds: float, turns: int = 0) -> bool:
        self.now += seconds
        self.turns += turns
        return self.watch.goes_on()


def test_work_goes_on_while_turns_end() -> None:
    work = Work()
    assert [work.after(5, turns=1) for _ in range(4)] == [True] * 4
    assert not work.after(5)
    assert work.after(5, turns=1)


def test_nothing_to_do_is_no_fault_and_neither_is_a_broker_that_is_away() -> None:
    work = Work()
    work.waits = 0
    assert work.after(1000)
    work.waits = BrokerAway("away")
    assert work.after(1000)
    work.waits = 1
    assert not work.after(5)


def test_a_piece_of_work_may_take_its_time_and_no_longer() -> None:
    work = Work()
    work.under_way = True
    assert work.after(5, turns=1)
    assert work.after(BUSY_S)
    assert not work.after(1)


# Proves its work as often as the test's file says, then never again.
WORKS = """
import os, sys, time
from portal.supervisor.parent_watchdog import prove_work, report_ready
report_ready("well")
while os.path.exists(sys.argv[1]):
    prove_work()
    time.sleep(0.05)
time.sleep(600)
"""


@contextmanager
def watched(folder: Path) -> Iterator[tuple[ProcessGroup, Child, Path]]:
    """A group with a child that must prove its work, and the file without which it proves none."""
    working = folder / "working"
    working.touch()
    command = [sys.executable, "-c", WORKS, str(working)]
    spec = ChildSpec("slow", command, ROOT, {}, 1.0, dead_after_s=6.0)  # longer than a machine stands still
    group = ProcessGroup(folder, Terminal(), lambda: None)
    child = group.add(spec)
    try:
        assert group.wait_until(lambda: child.ready, 60)
        assert child.ready_text == "well"
        group.restarts = True
        yield group, child, working
    finally:
        group.stop([child])
        group.close()


@pytest.mark.long
@pytest.mark.processes
def test_a_child_that_proves_no_work_any_more_is_killed_and_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with watched(tmp_path) as (group, child, working):
        pid = child.pid
        assert not group.wait_until(lambda: child.pid != pid, 7.0), "it works"
        working.unlink()
        assert group.wait_until(lambda: child.pid not in (pid, None), 60)
    assert "has done no work for 6 s and is killed" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.processes
def test_a_machine_that_stood_still_is_no_reason_to_kill_a_child(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with watched(tmp_path) as (group, child, _):
        pid = child.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        time.sleep(7.0)  # so long the supervisor does not run either
        assert not group.wait_until(lambda: child.pid != pid, 1.0), "the supervisor is the first to go on"
        os.kill(pid, signal.SIGCONT)
        assert not group.wait_until(lambda: child.pid != pid, 7.0)
    assert "is killed" not in capsys.readouterr().out
