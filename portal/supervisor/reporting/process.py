"""Spark as a separate process: its limits, its progress and its termination."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from portal.supervisor.parent_watchdog import death_signal

BESIDE_HEAP_MB = 1024
"""Memory of a Java process beside its heap: classes, code, buffers, stacks. A guess; small reports run within it."""
LINE_CHARS_MAX = 500
TERM_S = 1.5
"""From asking Spark to end until it is killed; it removes what it has begun to write."""


@dataclass(frozen=True, slots=True)
class JobProgress:
    """Progress of a job: stage, amount done, total (0: unknown)."""

    stage: str
    done: int
    total: int


class SparkProcess:
    """One `python -m spark`; started by the constructor.

    Args: command: its command line; progress is read as JSON lines from standard error. nice: its nice value.
    memory_mb: of the heap; the process may take as much again and BESIDE_HEAP_MB, then its allocations fail.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], *, memory_mb: int, nice: int
    ) -> None:
        self.progress: JobProgress | None = None
        self._said = ""
        bound = (2 * memory_mb + BESIDE_HEAP_MB) * 1024 * 1024
        die_with_us = death_signal(signal.SIGKILL)

        def prepare() -> None:
            die_with_us()
            os.nice(nice)
            resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=prepare,
        )
        assert self._process.stderr is not None  # noqa: S101 - it was asked for
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> str:
        """Return the last line of output that is no progress: the reason of a failure."""
        return self._said

    def wait(self, seconds: float) -> int | None:
        """Return the exit status (negative: the signal that killed it); None if the process still runs after this
        time."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._kill_group()  # a Java that outlived its Python
        self._reader.join(TERM_S)
        return status

    def end(self) -> None:
        """End the process and its children: first by SIGTERM."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        if self.wait(TERM_S) is None:
            self._kill_group()
            self._process.wait()
            self._reader.join(TERM_S)

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _read(self, stream: IO[bytes]) -> None:
        for raw in iter(lambda: stream.readline(64 * 1024), b""):
            line = raw.decode(errors="replace").strip()
            told = _progress(line)
            if told is not None:
                self.progress = told
            elif line and not line.startswith("{"):  # Spark's own log lines are objects as well
                self._said = line[:LINE_CHARS_MAX]


def _progress(line: str) -> JobProgress | None:
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
        return JobProgress(str(found["stage"]), max(0, int(found["done"])), max(0, int(found["total"])))
    except (ValueError, KeyError, TypeError):
        return None
