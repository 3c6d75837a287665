"""A run's tables, files and targets say what was measured."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench import __main__ as command
from bench import report
from bench.measure import BenchMeasurement, Options
from bench.processes import ServerProcesses
from bench.targets import checks


def fanout(
    server: str, rate: float, deliveries_per_cpu_s: float, p99_ms: float = 20.0, *flaws: str
) -> BenchMeasurement:
    values = {
        "rate_per_s": rate, "published_per_s": rate, "deliveries_per_cpu_s": deliveries_per_cpu_s, "deliveries": 1.0,
        "lost": 0.0, "p50_ms": p99_ms / 2, "p99_ms": p99_ms, "server_cpu_s": 1.0, "generator_cpu_s": 1.0,
    }  # fmt: skip
    return BenchMeasurement("fanout", f"{rate:g} events/s", server, values, flaws)


def test_herald_must_be_ahead_of_both_peers_at_every_rate() -> None:
    found = checks([fanout("herald", 60, 200_000), fanout("nchan", 60, 100_000), fanout("nats", 60, 250_000)])
    verdicts = {check.what: check.passed for check in found}
    assert verdicts["fan-out at 60/s: against nchan"]
    assert not verdicts["fan-out at 60/s: against nats"]


def test_a_lost_event_misses_a_target_however_fast_the_rest_was() -> None:
    *_, last = checks([fanout("herald", 60, 900_000, 20.0, "1 lost")])
    assert not last.passed
    assert "1 lost" in last.measured


def test_p99_may_exceed_nchans_by_the_tick_only() -> None:
    found = checks([fanout("herald", 60, 200_000, 46.0), fanout("nchan", 60, 100_000, 20.0)])
    assert [check.passed for check in found if check.what.startswith("p99")] == [True, False]


def test_a_run_leaves_json_markdown_and_a_plot(tmp_path: Path) -> None:
    measurements = [fanout(server, rate, rate * 1000) for server in ("herald", "nats") for rate in (20, 60)]
    written = report.write(tmp_path / "results", measurements, Options(), 12.3, ["nchan: not installed"])
    assert [path.name for path in written] == ["latest.json", "latest.md", "fanout.png"]
    assert len(json.loads(written[0].read_text())["measurements"]) == 4
    assert "Skipped: nchan: not installed." in written[1].read_text()
    assert written[2].read_bytes().startswith(b"\x89PNG")


def test_an_unknown_server_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--servers", "kafka"])
    assert "herald, nchan, nats, channels" in capsys.readouterr().err


def test_cpu_and_memory_of_a_server_include_its_children(tmp_path: Path) -> None:
    child = (
        "import time\ndata = bytearray(50 * 2**20)\nend = time.process_time() + 0.2\n"
        "while time.process_time() < end: pass\nprint('done', flush=True)\ntime.sleep(60)"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with ServerProcesses(tmp_path) as group:
        group.start("parent", [sys.executable, "-c", parent])
        log = tmp_path / "parent.log"
        deadline = time.monotonic() + 30
        while "done" not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert group.cpu_s() >= 0.2
        assert group.resident_bytes("parent") >= 50 * 2**20
        members = group.pids()
        assert len(members) == 2
    while any(psutil.pid_exists(pid) for pid in members) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(psutil.pid_exists(pid) for pid in members)
