"""The folder of the processes' metrics: what ended processes leave is added up once, whatever happens to their files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector

from eventing.telemetry import folder

GONE = 4_190_000  # process ids that no process has: beyond what the kernel gives


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    folder.join(tmp_path, "test", {})
    return tmp_path / folder.FOLDER


def write(metrics: Path, kind: str, whose: str, values: dict[str, float]) -> None:
    """A process's file, as the process itself would write it."""
    made: Any = MmapedDict(str(metrics / f"{kind}_{whose}.db"))
    for name, value in values.items():
        made.write_value(mmap_key(name, f"{name}_total", [], [], "About."), value, 0.0)
    made.close()


def told(metrics: Path) -> dict[str, float]:
    """The values of all processes joined, by series."""
    with folder.files(metrics) as files:
        joined = MultiProcessCollector.merge(files)
        return {sample.name: sample.value for metric in joined for sample in metric.samples}


def test_many_ended_processes_become_one_file_and_keep_their_sum(metrics: Path) -> None:
    write(metrics, "counter", folder.identity(), {"events": 1.0})
    for number in range(folder.DEAD_FILES_MAX + 1):
        write(metrics, "counter", f"{GONE + number}-1", {"events": 2.0, "gaps": 1.0})
    expected = {"events_total": 1.0 + 2.0 * (folder.DEAD_FILES_MAX + 1), "gaps_total": folder.DEAD_FILES_MAX + 1.0}
    assert told(metrics) == expected
    assert {file.name for file in metrics.glob("*.db")} == {"counter_0-0.db", f"counter_{folder.identity()}.db"}
    assert told(metrics) == expected, "what was added up is not added up again"
    for number in range(folder.DEAD_FILES_MAX + 1):
        write(metrics, "counter", f"{GONE + number}-2", {"events": 1.0})
    assert told(metrics)["events_total"] == expected["events_total"] + folder.DEAD_FILES_MAX + 1


def test_few_ended_processes_keep_their_files_and_only_their_gauges_go(metrics: Path) -> None:
    write(metrics, "counter", f"{GONE}-1", {"events": 3.0})
    write(metrics, "gauge_livesum", f"{GONE}-1", {"sessions": 4.0})
    write(metrics, "gauge_livesum", folder.identity(), {"sessions": 5.0})
    assert told(metrics) == {"events_total": 3.0, "sessions_total": 5.0}


def test_a_process_id_that_was_given_again_is_another_process(metrics: Path) -> None:
    write(metrics, "gauge_livesum", f"{os.getpid()}-1", {"sessions": 4.0})
    assert told(metrics) == {}


def test_a_start_begins_at_nothing(metrics: Path) -> None:
    write(metrics, "counter", f"{GONE}-1", {"events": 3.0})
    folder.clear(metrics.parent)
    assert told(metrics) == {}


def test_where_nothing_can_be_written_a_process_tells_of_itself_alone(tmp_path: Path) -> None:
    environment: dict[str, str] = {}
    folder.join(tmp_path / "missing", "gateway", environment)
    assert environment == {"HERALD_PROCESS": "gateway"}
