"""Data folder of a domain: its lock, and the processes that run on it.

`herald.lock` is held with flock(2) for as long as a supervisor lives; the kernel releases it however the supervisor ends.
`processes.json` names what runs: `doctor` and the tests read it, and the next start reads it to stop what a killed
supervisor left behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from portal.supervisor.errors import StartError

LOCK_FILE = "herald.lock"
PROCESSES_FILE = "processes.json"
RESTORE_MARK = "restore-unfinished"
"""Present while a backup is being restored into the folder (portal/supervisor/backup)."""
LEFTOVER_STOP_S = 3.0
"""A left-over process gets this long after SIGTERM before SIGKILL."""


def prepare(path: Path) -> None:
    """Make the folder (mode 0700 when new) and its subfolders. Raises StartError when it cannot be written."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        (path / "logs").mkdir(exist_ok=True)
        (path / "redis").mkdir(exist_ok=True, mode=0o700)
        for folder in (path, path / "logs", path / "redis"):
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        raise StartError(unwritable(path, error)) from error


def unwritable(path: Path, error: OSError) -> str:
    """One sentence on a data folder that cannot be used."""
    if error.errno == errno.ENOSPC:
        return f"The disk of the data folder {path} is full; free some space, or set HERALD_DATA_DIR to another folder."
    reason = (error.strerror or str(error)).lower()
    return f"The data folder {path} cannot be written ({reason}); make it writable, or set HERALD_DATA_DIR to a folder of yours."


def require_whole(path: Path) -> None:
    """Raise StartError where a restore into the folder was begun and not finished: what is there is a part of a domain."""
    if (path / RESTORE_MARK).exists():
        raise StartError(
            f"A restore into the data folder {path} was not finished, so the domain in it is not whole; run herald restore again."
        )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the folder for this process. Raises StartError when another domain runs on it."""
    try:
        descriptor = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartError(unwritable(path, error)) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError(_already_running(path)) from None
        except OSError as error:
            raise StartError(
                f"The data folder {path} cannot be locked ({error.strerror}); set HERALD_DATA_DIR to a folder on a local disk."
            ) from error
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Return whether a supervisor runs on the folder."""
    try:
        descriptor = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def write_table(path: Path, state: str, url: str, processes: Mapping[str, int]) -> None:
    """Replace processes.json as one step. `state`: starting, running or stopping; `processes`: pid by name."""
    table = {
        "state": state,
        "url": url,
        "supervisor": identity_of(os.getpid()),
        "processes": {name: identity_of(pid) for name, pid in processes.items()},
    }
    fresh = path / f"{PROCESSES_FILE}.new"
    with contextlib.suppress(OSError):  # a full disk must not stop what runs; the table is then older than the truth
        fresh.write_text(json.dumps(table, indent=2) + "\n")
        fresh.replace(path / PROCESSES_FILE)


def read_table(path: Path) -> dict[str, Any]:
    """Return processes.json, or an empty table when it is missing or invalid."""
    try:
        table = json.loads((path / PROCESSES_FILE).read_text())
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}


def remove_table(path: Path) -> None:
    """Nothing runs any more."""
    with contextlib.suppress(OSError):
        (path / PROCESSES_FILE).unlink()


def stop_leftovers(path: Path) -> list[str]:
    """End processes left by an earlier supervisor; call with the folder locked. Returns their names and pids."""
    found: list[tuple[str, psutil.Process]] = []
    for name, identity in (read_table(path).get("processes") or {}).items():
        process = same_process(identity)
        if process is not None:
            found.append((name, process))
    for _, process in found:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs([process for _, process in found], timeout=LEFTOVER_STOP_S)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=LEFTOVER_STOP_S)
    remove_table(path)
    return [f"{name} (pid {process.pid})" for name, process in found]


def identity_of(pid: int) -> dict[str, Any]:
    """Return a process's identity: pid and start time, because pids are reused."""
    try:
        return {"pid": pid, "started": psutil.Process(pid).create_time()}
    except psutil.Error:
        return {"pid": pid, "started": 0}


def same_process(identity: Any) -> psutil.Process | None:
    """Return the process with this identity, if it still runs."""
    try:
        process = psutil.Process(int(identity["pid"]))
        same = (
            abs(process.create_time() - float(identity["started"])) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
        )
    except (psutil.Error, KeyError, TypeError, ValueError):
        return None
    return process if same else None


def _already_running(path: Path) -> str:
    table = read_table(path)
    pid = (table.get("supervisor") or {}).get("pid")
    where = f" at {table['url']}" if table.get("url") else ""
    who = f" (pid {pid})" if pid else ""
    return (
        f"Herald already runs on the data folder {path}{where}{who}; stop it first, or give this domain another "
        "HERALD_DATA_DIR and HERALD_PORT."
    )
