"""When a child that ended is started again, on real processes; and what the documents state of children."""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path

from demo.harness.servers import ROOT, wait_for
from eventing.core.config import Config
from portal.supervisor import child as children_life
from portal.supervisor import children
from portal.supervisor.child import Child, ChildSpec
from portal.supervisor.parent_watchdog import READY_FD

READY = f"import os, time; os.write(int(os.environ['{READY_FD}']), b'1'); time.sleep(600)"
FAILS = "raise SystemExit(1)"


class Restarted:
    """A child that ends again and again."""

    def __init__(self, folder: Path, program: str) -> None:
        spec = ChildSpec("child", [sys.executable, "-c", program], folder, {}, 1.0)
        self.child = Child(spec, folder)

    def pause_s(self, *, served_s: float | None) -> float:
        """Start it, wait for its end (or kill it when it has been ready for so long), and tell the pause before its next start."""
        self.child.start()
        if served_s is not None:
            wait_for(self.child.read_ready)
            assert self.child.ready_at is not None
            self.child.ready_at = time.monotonic() - served_s
            self.child.send(signal.SIGKILL)
        wait_for(self.child.ended)
        self.child.close_pipes()
        return self.child.plan_restart()


def test_a_child_that_served_for_seconds_is_started_at_once_however_often_it_is_killed(tmp_path: Path) -> None:
    restarted = Restarted(tmp_path, READY)
    assert [restarted.pause_s(served_s=children_life.SERVED_AFTER_S) for _ in range(8)] == [0.2] * 8


def test_a_child_that_is_killed_as_soon_as_it_is_ready_waits_two_seconds_at_most(tmp_path: Path) -> None:
    restarted = Restarted(tmp_path, READY)
    pauses_s = [restarted.pause_s(served_s=0.0) for _ in range(7)]
    assert pauses_s == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]


def test_only_a_child_that_fails_at_its_start_waits_for_half_a_minute(tmp_path: Path) -> None:
    restarted = Restarted(tmp_path, FAILS)
    pauses_s = [restarted.pause_s(served_s=None) for _ in range(10)]
    assert pauses_s[:4] == [0.2, 0.4, 0.8, 1.6]
    assert pauses_s[-1] == children_life.RESTART_PAUSE_S_MAX == 30.0


def test_the_documents_state_within_what_children_stop() -> None:
    rows = re.findall(
        r"^\| (\w+)[^|]* \|[^|]*\|[^|]*\| ([\d.]+) s \|$", (ROOT / "docs/architecture.md").read_text(), re.M
    )
    config = Config()
    specs = [children.redis([], lambda: True), *children.gateways(config, 3)]
    specs += children.workers(config)
    assert {name: float(seconds) for name, seconds in rows} == {spec.name: spec.stop_within_s for spec in specs}
