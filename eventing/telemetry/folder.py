"""Folder of the metrics of a domain's processes, so that a scrape of any one of them returns the sum of all.

Each process has files of its own in `metrics/` of the data folder, mapped into memory, so that a write is a store and
the counts of a killed process remain (prometheus_client's multiprocess mode). A file's name contains the process id and
the time at which the process began, because ids are reused.

Life of such files: the supervisor empties the folder when a domain starts -> each process makes its own files -> the
process ends: the next scrape removes gauges of ended processes, counters stay -> when many have gathered, because a
process crashes repeatedly, those of ended processes are added up into one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import psutil

from eventing.core.container import per_process

FOLDER = "metrics"
DEAD_FILES_MAX = 32  # bound: files of ended processes; the files are added up into one
"""Files of counters and histograms of ended processes above which they are added up: each is read at every scrape."""

_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_PROCESS = "HERALD_PROCESS"
_LOCK = ".lock"


_FOLDED = "0-0"  # stands for the ended processes; no process has this id


def process_name(environment: Mapping[str, str] = os.environ) -> str:
    """Name of this process in the domain: gateway-1, worker, forwarder. The supervisor passes it to its children."""
    return environment.get(_PROCESS, "") or "manage"


def join(data_path: Path, name: str, environment: MutableMapping[str, str] = os.environ) -> None:
    """Make this process, and its forks, write metrics into the domain's folder.

    Call it before anything imports `eventing.telemetry.metrics`. If the folder is not writable, the process exposes
    only its own metrics: metrics are no reason not to serve.

    Args:
        name: name of the process, if the supervisor has not named it.
    """
    environment.setdefault(_PROCESS, name)
    folder = data_path / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / _LOCK).touch(mode=0o600)
    except OSError:
        return
    environment[_VARIABLE] = str(folder)


def folder_in_use() -> Path | None:
    """Return the folder that this process has joined; None if it exposes only its own metrics."""
    path = os.environ.get(_VARIABLE)
    return Path(path) if path else None


@per_process
def identity() -> str:
    """Identity of this process in file names; another one after a fork."""
    return _identity_of(os.getpid())


def clear(data_path: Path) -> None:
    """Remove the files of an earlier run of the domain; only while none of its processes runs."""
    for file in (data_path / FOLDER).glob("*.db"):
        file.unlink(missing_ok=True)


@contextlib.contextmanager
def files(folder: Path) -> Iterator[list[str]]:
    """Tidy up, and list the files to join; they stay unchanged within the block."""
    with (folder / _LOCK).open("rb") as lock:
        if _wants_tidying(folder):
            fcntl.flock(lock, fcntl.LOCK_EX)
            _tidy(folder)
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield [str(file) for file in sorted(folder.glob("*.db"))]


def _wants_tidying(folder: Path) -> bool:
    dead = _dead(folder)
    return any(file.name.startswith("gauge_") for file in dead) or len(dead) > DEAD_FILES_MAX


def _tidy(folder: Path) -> None:
    """Remove the gauges of ended processes, and add up their counters where there are many files of them."""
    dead = _dead(folder)
    for file in dead:
        if file.name.startswith("gauge_"):
            file.unlink(missing_ok=True)
    counted = [file for file in dead if not file.name.startswith("gauge_")]
    if len(counted) > DEAD_FILES_MAX:
        for kind in ("counter", "histogram"):
            ended = [file for file in counted if file.name.startswith(f"{kind}_")]
            if ended:
                _fold(folder, kind, ended)


def _fold(folder: Path, kind: str, ended: list[Path]) -> None:
    """Add `ended` to the one file of processes that ended before, atomically."""
    from prometheus_client import mmap_dict

    values: Any = mmap_dict.MmapedDict  # untyped
    target = folder / f"{kind}_{_FOLDED}.db"
    sums: dict[str, float] = {}
    for file in [target, *ended]:
        if file.exists():
            for key, value, _, _ in values.read_all_values_from_file(str(file)):
                sums[key] = sums.get(key, 0.0) + value
    fresh = folder / f"{kind}_{_FOLDED}.new"
    fresh.unlink(missing_ok=True)
    written = values(str(fresh))
    for key, value in sums.items():
        written.write_value(key, value, 0.0)
    written.close()
    fresh.replace(target)
    for file in ended:
        file.unlink(missing_ok=True)


def _dead(folder: Path) -> list[Path]:
    alive: dict[str, bool] = {_FOLDED: True}
    found = []
    for file in folder.glob("*.db"):
        whose = file.stem.rpartition("_")[2]
        if whose not in alive:
            alive[whose] = _is_alive(whose)
        if not alive[whose]:
            found.append(file)
    return found


def _is_alive(whose: str) -> bool:
    pid = whose.partition("-")[0]
    return pid.isdigit() and _identity_of(int(pid)) == whose


def _identity_of(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            return f"{pid}-{round(process.create_time() * 100)}"
    except psutil.Error:
        pass
    return f"{pid}-0"
