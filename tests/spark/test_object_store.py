"""A report whose records and tables are in an object store, made by a Spark on this machine without a connector for it."""

from __future__ import annotations

import random
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyarrow import parquet

from spark.locations import Location
from spark.writing import REPORT, current
from tests.records.object_store import CREDENTIALS, object_store
from tests.spark import bruteforce, samples
from tests.spark.conftest import need_java
from tests.spark.test_commands import ROOT, WAIT_S, command

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def test_a_report_is_read_from_a_store_and_written_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_java()
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    chance = random.Random(5)
    made = samples.records(chance, 300, datetime(2027, 1, 15, tzinfo=UTC), 5)
    folder, work = tmp_path / "records", tmp_path / "work"
    paths = samples.write_segments(folder, made, chance)
    with object_store() as store:
        place, output = Location(store.url("records")), Location(store.url("reports"))
        for path in paths:
            place.write(place.path(path.relative_to(folder).as_posix()), path.read_bytes())
        job = command("access", "--input", place.address, "--output", output.address, "--master", "local[1]")
        job += ["--memory", "512m", "--progress", "none", "--work", str(work)]
        done = subprocess.run(job, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert done.returncode == 0, done.stderr
        report = current(output, "access")
        assert report is not None
        assert report["input"]["records"] == len(made)
        run = output.path("access", f"run={report['run']}")
        tables = [entry for entry in output.entries(f"{run}/principals") if entry.name.endswith(".parquet")]
        with output.filesystem.open_input_file(tables[0].path) as stream:
            principals = parquet.read_table(stream).to_pylist()
        assert {row["principal"] for row in principals} == {row["principal"] for row in bruteforce.principals(made)}
        assert output.read(f"{run}/{REPORT}") is not None
    assert not list(work.glob("herald-staging-*")), "the copies are removed"
