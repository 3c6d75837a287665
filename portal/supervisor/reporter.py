"""The process that makes a report, as the supervisor sees it: no child of its own, yet it ends with the domain.

A worker starts it and may be restarted while it runs (workers/reporting.py). It says in `reporter.json` who it is; the
supervisor's stop reads that, asks it to end, and kills what does not. It looks by itself whether the supervisor is gone.
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
_LOOK_EVERY_S = 0.05


def note(path: Path) -> None:
    """Say that this process makes a report in the data folder `path`."""
    fresh = path / f"{FILE}.{os.getpid()}"
    fresh.write_text(json.dumps(identity_of(os.getpid())) + "\n")
    fresh.replace(path / FILE)


def forget(path: Path) -> None:
    """This process has ended its report."""
    with contextlib.suppress(OSError):
        if _read(path).get("pid") == os.getpid():
            (path / FILE).unlink()


def running(path: Path) -> psutil.Process | None:
    """The process that makes a report now, if there is one."""
    return same_process(_read(path))


def ask_to_stop(path: Path) -> None:
    """Have it give its report back and end; returns at once."""
    process = running(path)
    if process is not None:
        with contextlib.suppress(psutil.Error):
            process.terminate()


def stop(path: Path, within_s: float) -> None:
    """Wait until it has ended; after `within_s` it is killed with all that it started."""
    deadline = time.monotonic() + within_s
    while (process := running(path)) is not None:
        if time.monotonic() > deadline:
            for one in [process, *_below(process)]:
                with contextlib.suppress(psutil.Error):
                    one.send_signal(signal.SIGKILL)
            return
        time.sleep(_LOOK_EVERY_S)


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
