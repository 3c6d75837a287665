"""`python -m spark` as its operator meets it: killed midway, on a cluster, on a full disk, without Java."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from demo.harness.servers import wait_for
from spark.locations import Location
from spark.writing import JobRun, current
from tests.spark import bruteforce, samples
from tests.spark.conftest import need_java
from tests.spark.samples import HOME, utc

pytestmark = [pytest.mark.long, pytest.mark.processes, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
HOUR = utc(2027, 1, 15, 8)
WAIT_S = 240


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "spark", *arguments]


@pytest.fixture
def made(folder: Path) -> list[dict[str, Any]]:
    chance = random.Random(1)
    records = samples.records(chance, 500, HOUR, 3)
    samples.write_segments(folder, records, chance)
    return records


@contextmanager
def running(arguments: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(arguments, cwd=ROOT, text=True, start_new_session=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


@pytest.mark.soak
def test_a_cluster_makes_the_same_report_and_a_killed_job_leaves_it(
    folder: Path, tmp_path: Path, made: list[dict[str, Any]]
) -> None:
    """One master and two workers, all of the PySpark installation, on loopback."""
    need_java()
    with ExitStack() as stack:
        master = _cluster(stack, tmp_path)
        output = tmp_path / "reports"
        job = command(
            "federation", "--input", str(folder), "--output", str(output), "--domain", HOME, "--master", master
        )
        job += ["--memory", "512m", "--progress", "json"]
        done = subprocess.run(job, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        assert any(line["stage"] == "peers" and line["done"] == line["total"] > 0 for line in lines)
        report = current(Location(str(output)), "federation")
        assert report is not None
        expected = bruteforce.federation_peers(made, max(r["time"] for r in made if r["peer"]))
        assert report["headline"]["operations"]["value"] == sum(row["operations"] for row in expected)
        assert report["headline"]["backlog_bytes_max"]["value"] == max(row["backlog_bytes_max"] for row in expected)
        assert all((tmp_path / f"worker{n}").glob("app-*") for n in range(2))

        with running(job, stderr=subprocess.PIPE) as killed:
            assert killed.stderr is not None
            for line in killed.stderr:
                if json.loads(line)["stage"] == "peer_hours":
                    break
            killed.kill()
            killed.wait(10)
        assert current(Location(str(output)), "federation") == report, "the earlier report is still in place"
        abandoned = [path for path in (output / "federation").glob("run=*") if not (path / "report.json").exists()]
        assert len(abandoned) == 1, "it was killed midway"


def test_a_job_that_is_told_to_end_takes_away_what_it_wrote(
    folder: Path, tmp_path: Path, made: list[dict[str, Any]]
) -> None:
    need_java()
    output = tmp_path / "reports"
    job = command("load", "--input", str(folder), "--output", str(output), "--master", "local[1]", "--progress", "json")
    with running(job, stderr=subprocess.PIPE) as told:
        assert told.stderr is not None
        begun = None
        for line in told.stderr:
            if json.loads(line)["stage"] == "rp_histogram":  # the table before it is written
                begun = list((output / "load").glob("run=*/rp_hours/*.parquet"))
                told.terminate()
                break
        assert begun, "it had written a table"
        said = told.stderr.read()
        assert told.wait(WAIT_S) == 128 + signal.SIGTERM
    *progress, last = said.splitlines()
    assert [line for line in progress if not line.startswith("{")] == [], (
        "beside progress nothing is said but the last line"
    )
    assert last == "The job was ended by SIGTERM; earlier output is still in place."
    assert not list((output / "load").glob("**/*.*")), "no file of its is left"
    assert not list((output / "load").glob("run=*"))


@pytest.mark.parametrize("how", ["killed", pytest.param("out of memory", marks=pytest.mark.soak)])
def test_when_java_dies_that_is_said_and_the_report_of_before_stays(
    folder: Path, tmp_path: Path, made: list[dict[str, Any]], how: str
) -> None:
    need_java()
    output = Location(str(tmp_path / "reports"))
    before = JobRun.begin(output, "federation")
    before.commit({"report": "of before"})
    if how == "out of memory":  # one name of 200 MiB; it is copied as Spark reads and groups it
        long = made[0] | {"peer": "x" * (200 << 20), "operation": "federation.exchange", "gateway": "gw-long"}
        samples.write_segment(folder, made[0]["time"].replace(minute=0, second=0, microsecond=0), "long", [long])
    job = command("federation", "--input", str(folder), "--output", output.address, "--master", "local[1]")
    with running([*job, "--memory", "512m", "--progress", "json"], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        if how == "killed":
            for line in process.stderr:
                if json.loads(line)["stage"] == "peers":
                    break
            os.kill(_java_of(process.pid), signal.SIGKILL)
        *_, said = process.stderr.read().splitlines()
        assert process.wait(WAIT_S) == 1
    assert ("Java was killed by SIGKILL" if how == "killed" else "ran out of memory") in said
    assert said.endswith("the earlier report is still in place.")
    assert current(output, "federation") == {"report": "of before"}
    assert [path.name for path in (tmp_path / "reports" / "federation").glob("run=*")] == [f"run={before.name}"]


def _java_of(python: int) -> int:
    """The process of Java that a Python process has started."""
    children = Path(f"/proc/{python}/task/{python}/children").read_text().split()
    return next(int(child) for child in children if "java" in Path(f"/proc/{child}/cmdline").read_text())


def _cluster(stack: ExitStack, folder: Path) -> str:
    """Start a master and two workers; the master's address."""
    import pyspark

    launcher = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOG_DIR": str(folder),
    }
    environment["SPARK_DAEMON_JAVA_OPTS"] = "-XX:TieredStopAtLevel=1"
    port = _free_port()
    log = folder / "master.log"
    quiet = {"stdout": subprocess.DEVNULL, "env": environment, "stdin": subprocess.DEVNULL}
    start = [
        str(launcher),
        "org.apache.spark.deploy.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--webui-port",
        "0",
    ]
    stack.enter_context(running(start, stderr=log.open("w"), **quiet))
    wait_for(lambda: _answers(port), about="the master listens", within_s=WAIT_S)
    for number in range(2):
        start = [
            str(launcher),
            "org.apache.spark.deploy.worker.Worker",
            "--host",
            "127.0.0.1",
            "--webui-port",
            "0",
            "--cores",
            "1",
        ]
        start += ["--memory", "2g", "--work-dir", str(folder / f"worker{number}"), f"spark://127.0.0.1:{port}"]
        stack.enter_context(running(start, stderr=subprocess.DEVNULL, **quiet))
    wait_for(lambda: len(re.findall("Registering worker", log.read_text())) == 2, about="two workers", within_s=WAIT_S)
    return f"spark://127.0.0.1:{port}"


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    ("java", "said"),
    [
        (None, "there is no `java`"),
        ("echo 'openjdk version \"11.0.2\"' >&2", "this is Java 11"),
        ("echo 'java version \"1.8.0_292\"' >&2", "this is Java 8"),
        ("exit 1", "does not run"),
    ],
    ids=["none", "eleven", "eight", "broken"],
)
def test_without_a_java_that_will_do_there_is_one_sentence(
    folder: Path, tmp_path: Path, java: str | None, said: str
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    if java is not None:
        (tools / "java").write_text(f"#!/bin/sh\n{java}\n")
        (tools / "java").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tools)}
    job = command("load", "--input", str(folder), "--output", str(tmp_path / "out"), "--progress", "none")
    done = subprocess.run(job, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert "17 or newer" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_said_in_a_sentence(tmp_path: Path) -> None:
    """A filesystem of 64 KiB for the output. What Spark itself says of one is in test_segments.py."""
    small = tmp_path / "small"
    small.mkdir()
    inside = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        f'mount -t tmpfs -o size=64k tmpfs {small} && exec "$@"',
        "sh",
    ]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no small filesystem can be mounted here")
    job = command("generate", "--records", "50000", "--output", str(small), "--progress", "none")
    done = subprocess.run([*inside, *job], cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "disk is full" in done.stderr
