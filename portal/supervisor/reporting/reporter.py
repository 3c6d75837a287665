"""The process that makes a report, as the supervisor handles it: not a child, but ended with the domain.

A worker starts it and may be restarted while it runs (workers/reporting.py). It writes its identity to `reporter.json`;
when the supervisor stops, it asks this process to end and kills it if it does not. The process itself detects the end
of the supervisor.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import psutil

from portal.supervisor.data_folder import identity_of, read_table, same_process

FILE = "reporter.json"
_POLL_S = 0.05


def note(path: Path) -> None:
    """Say that this process makes a report in the data folder `path`."""
    fresh = path / f"{FILE}.{os.getpid()}"
    fresh.write_text(json.dumps(identity_of(os.getpid())) + "\n")
    fresh.replace(path / FILE)


def forget(path: Path) -> None:
    """Remove the registration when the report has ended."""
    with contextlib.suppress(OSError):
        if _read(path).get("pid") == os.getpid():
            (path / FILE).unlink()


def running(path: Path) -> psutil.Process | None:
    """The process that makes a report now, if there is one."""
    return same_process(_read(path))


def ask_to_stop(path: Path) -> None:
    """Ask the process to release its run and end; returns at once."""
    process = running(path)
    if process is not None:
        with contextlib.suppress(psutil.Error):
            process.terminate()


def stop(path: Path, within_s: float) -> None:
    """Wait until the process has ended; after `within_s` kill it with its children."""
    deadline = time.monotonic() + within_s
    while (process := running(path)) is not None:
        if time.monotonic() > deadline:
            for one in [process, *_below(process)]:
                with contextlib.suppress(psutil.Error):
                    one.send_signal(signal.SIGKILL)
            return
        time.sleep(_POLL_S)


def supervisor_of(path: Path) -> psutil.Process | None:
    """The supervisor that runs the domain in `path` and does not stop; None if there is none."""
    table = read_table(path)
    return None if table.get("state") == "stopping" else same_process(table.get("supervisor"))


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.Error:
        return []


def _read(path: Path) -> dict[str, float]:
    try:
        found = json.loads((path / FILE).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
