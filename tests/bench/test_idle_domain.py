"""What an idle domain costs is read from /proc, of processes and their children, and judged in the profile small only."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil

from bench.measure import BenchMeasurement
from bench.processes import ServerProcesses, idle_costs
from bench.targets import checks
from demo.harness.servers import wait_for

_CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; held = bytes(30_000_000); time.sleep(60)'])"
_BUSY = "while True: pass"


def test_memory_and_processor_time_of_children_count(tmp_path: Path) -> None:
    with ServerProcesses(tmp_path) as processes:
        processes.start("idle", [sys.executable, "-c", _CHILD])
        processes.start("busy", [sys.executable, "-c", _BUSY])
        wait_for(lambda: len(processes.family()) == 3, about="the child runs")
        costs = idle_costs(processes.family, 1.2)
    assert costs.processes == 3
    assert costs.cpu_ms_per_s > 20  # whatever else runs on the machine
    assert costs.pss_bytes > 6_000_000


def _rests(pid: int) -> bool:
    """Return whether a process is not woken for a moment."""
    before = psutil.Process(pid).num_ctx_switches()
    time.sleep(0.1)
    return psutil.Process(pid).num_ctx_switches() == before


def test_a_process_that_sleeps_costs_nothing(tmp_path: Path) -> None:
    asleep = subprocess.Popen(["sleep", "60"])
    try:
        wait_for(lambda: _rests(asleep.pid), about="it has started")
        costs = idle_costs(lambda: [asleep.pid], 1.2)
    finally:
        asleep.kill()
        asleep.wait()
    assert costs.cpu_ms_per_s == 0
    assert costs.wakeups_per_s < 1


def test_the_targets_are_those_of_the_profile_small() -> None:
    values = {"pss_mib": 151.0, "cpu_ms_per_s": 9.0, "first_publish_ms": 5.0, "start_s": 2.0}
    rows = [
        BenchMeasurement("idle-domain", f"100 RPs, {profile}", "herald", values) for profile in ("small", "standard")
    ]
    found = [check for check in checks(rows) if check.what.startswith("idle domain")]
    assert [(check.what.rpartition(": ")[2], check.passed) for check in found] == [
        ("memory", False),
        ("processor time", True),
        ("first publish", True),
        ("start to ready", True),
    ]
