"""Reports over a running gateway, without a worker: the test says when the schedule's turn is.

with Reporting(folder, prepared) as made:
    run = made.ask("access")
    made.turn()                       # what Celery does every three seconds
    made.wait(run, "done")
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from demo.harness.servers import ROOT, Domain, manage, wait_for
from portal.supervisor.parent_watchdog import death_signal
from portal.supervisor.reporting import reporter
from tests.gateway.server import LiveGateway, Prepared

WITHIN_S = 240.0
"""Spark takes ten seconds of two cores; on a machine that is shared by many tests minutes."""
TURN = "import django; django.setup()\nfrom workers import reporting\nprint(reporting.reports_start())"
RECOVER = (
    "import django; django.setup()\nfrom datetime import timedelta\nfrom django.utils import timezone\n"
    "from eventing.reports.services.reports import reports_recover\nprint(reports_recover(now=timezone.now() + timedelta(hours=1)))"
)


class Reporting(LiveGateway):
    """An edge whose runs of reports are real ones, with one core and little memory."""

    def __init__(self, folder: Path, prepared: Prepared) -> None:
        super().__init__(
            folder,
            prepared,
            records_flush_s=1,
            records_segment_s=1,
            spark_master="local[1]",
            report_memory_mb=512,
            report_nice=0,
        )

    @property
    def env(self) -> dict[str, str]:
        return self._env

    @property
    def domain(self) -> Domain:
        """As the console's tests take it."""
        return _Site(self)  # type: ignore[return-value]

    def ask(self, job: str, **stated: str) -> str:
        """Queue a run; its id."""
        answer = self.admin.post("/api/v1/reports", json={"job": job, **stated})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def turn(self, *, at_once: int = 1, **settings: Any) -> list[int]:
        """So many schedulers look at once whether there is something to start. How many each started."""
        processes = [self._python(TURN, **settings) for _ in range(at_once)]
        return [_number(process) for process in processes]

    @contextmanager
    def turning(self, **settings: Any) -> Iterator[None]:
        """One scheduler looks while the block runs, and starts one run."""
        process = self._python(TURN, **settings)
        yield
        assert _number(process) == 1

    def recover(self) -> int:
        """What the schedule does an hour later about runners that fell silent."""
        return _number(self._python(RECOVER))

    def run(self, run: str) -> dict[str, Any]:
        answer = self.admin.get(f"/api/v1/reports/{run}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def wait(self, run: str, *states: str) -> dict[str, Any]:
        """The run once it is in one of these states."""
        wait_for(
            lambda: self.run(run)["state"] in states, WITHIN_S, every_s=0.2, about=f"run {run} is {states}\n{self.said}"
        )
        return self.run(run)

    def runner(self) -> psutil.Process:
        """The process that makes a report now."""
        return wait_for(lambda: reporter.running(self.data_dir), WITHIN_S, about="a runner works")  # type: ignore[return-value]

    @property
    def said(self) -> str:
        """What runners have logged."""
        path = self.data_dir / "logs" / "reports.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def records(self) -> list[Path]:
        """The segments there are."""
        return sorted((self.data_dir / "records").glob("date=*/hour=*/*.parquet"))

    def stop(self) -> None:
        for process in [reporter.running(self.data_dir)]:
            if process is not None:
                reporter.ask_to_stop(self.data_dir)
                reporter.stop(self.data_dir, 5)
        super().stop()

    def _python(self, script: str, **settings: Any) -> subprocess.Popen[str]:
        stated = {f"HERALD_{name.upper()}": str(value) for name, value in settings.items()}
        return subprocess.Popen(
            [sys.executable, "-c", script],
            env={**self._env, **stated, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "client")])},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=death_signal(9),  # type: ignore[arg-type]
        )


def _number(process: subprocess.Popen[str]) -> int:
    said, _ = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, said
    return int(said.split()[-1])


class _Site:
    """What Console needs of a domain."""

    def __init__(self, live_gateway: Reporting) -> None:
        self._live_gateway = live_gateway
        self.url, self.data_dir = live_gateway.url(), live_gateway.data_dir

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return manage(*arguments, env=self._live_gateway.env)


def hours_around() -> dict[str, str]:
    """From an hour ago to a minute from now."""
    now = datetime.now(UTC).replace(microsecond=0)
    return {"from": (now - timedelta(hours=1)).isoformat(), "to": (now + timedelta(minutes=1)).isoformat()}


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]
