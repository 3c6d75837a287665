"""Start of servers on one core, and their cost: CPU seconds and resident bytes, from /proc.

A server's cost is the user and system time of all its processes, children and threads included, living or dead.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SERVER_CORE = 0
LOAD_CORE = 1
PORTS = range(18_000, 32_000)
FILES_WANTED = 20_000  # per process: 10,000 sessions and room
PSS_READINGS = 12
REST_S = 0.5  # without CPU use: a server has started
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class IdleCosts:
    """Cost of idle processes.

    Attributes:
        processes: their number at the end.
        pss_bytes: their proportional set sizes, the median of some readings.
        cpu_ms_per_s: processor time, user and system, of a core.
        wakeups_per_s: voluntary context switches of all threads.
    """

    processes: int
    pss_bytes: float
    cpu_ms_per_s: float
    wakeups_per_s: float


class CannotStart(Exception):
    """A server did not start; the message states which, and ends with its last output."""


def pin(core: int) -> Callable[[], None]:
    """Return a `preexec_fn` that puts the process on `core`, or leaves it where it is on a machine without that core."""

    def apply() -> None:
        if core in os.sched_getaffinity(0):
            os.sched_setaffinity(0, {core})

    return apply


def raise_file_limit() -> int:
    """Raise this process's limit of open files (inherited by child processes) as far as allowed; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def free_port() -> int:
    """Return a free TCP port of 127.0.0.1, below the range of clients' ports.

    It is random, so that two benchmarks on one machine do not choose the same.
    """
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise CannotStart(f"no free port between {PORTS.start} and {PORTS.stop}")


class ServerProcesses:
    """The processes of one server. Use as a context manager: leaving stops them all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> ServerProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        all_cores: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start `command` on the servers' core, or on all, its output in `folder`/NAME.log."""
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(env or {})},
                pass_fds=pass_fds,
                preexec_fn=None if all_cores else pin(SERVER_CORE),
                start_new_session=True,
            )
        self._running.append((name, process))
        return process

    def await_port(self, port: int) -> None:
        """Wait until `port` accepts and start-up is over. Raises CannotStart when a process ends first or it takes too long."""

        def accepts() -> bool:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                return False
            return True

        self.await_condition(accepts, f"port {port}")
        used, since = self.cpu_s(), time.monotonic()

        def rests() -> bool:
            nonlocal used, since
            if self.cpu_s() > used + 1 / _TICKS_PER_S:  # loading in the background is no part of the measured cost
                used, since = self.cpu_s(), time.monotonic()
            return time.monotonic() - since > REST_S

        self.await_condition(rests, "rest")

    def await_condition(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until `holds()`. Raises CannotStart when a process ends first or it takes too long."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not holds():
            for name, process in self._running:
                if process.poll() is not None:
                    raise CannotStart(f"{name} ended with {process.returncode}: {self.tail(name)}")
            if time.monotonic() > deadline:
                raise CannotStart(f"{what} was not ready in {START_TIMEOUT_S:.0f} s: {self.tail(self._running[-1][0])}")
            time.sleep(0.02)

    def tail(self, name: str) -> str:
        """Return the last output of the process started under `name`."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-1500:].strip()

    def pids(self, *names: str) -> list[int]:
        """Return the processes started under `names` (all, if none is given) and their children."""
        return [pid for name, process in self._running if not names or name in names for pid in _family(process.pid)]

    def cpu_s(self) -> float:
        """Return the CPU seconds, user and system, of all processes since their start."""
        return self.cpu_of(self.pids())

    def family(self) -> list[int]:
        """Return every process that was started here, and those below it."""
        return [pid for _, process in self._running for pid in _family(process.pid)]

    @staticmethod
    def cpu_of(pids: Sequence[int]) -> float:
        """Return the CPU seconds of these processes, and of their ended children."""
        return sum(map(_cpu_ticks, pids)) / _TICKS_PER_S

    def resident_bytes(self, *names: str) -> int:
        """Return the resident memory of `pids(*names)`."""
        return sum(map(resident_of, self.pids(*names)))

    def stop(self) -> None:
        """Ask every process to end, the youngest first; kill those that do not, and children left behind."""
        while self._running:
            _, process = self._running.pop()
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_TIMEOUT_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it leads its own group, which holds its children
            process.wait()


def idle_costs(family: Callable[[], Sequence[int]], seconds: float) -> IdleCosts:
    """Measure processes that are left alone for some seconds.

    Args:
        family: the processes; asked again for each reading, because short-lived ones are memory, too.
    """
    began, cpu_s, wakeups = time.monotonic(), ServerProcesses.cpu_of(family()), sum(map(_wakeups, family()))
    readings = []
    for _ in range(PSS_READINGS):
        time.sleep(seconds / PSS_READINGS)
        readings.append(sum(map(pss_of, family())))
    elapsed_s = time.monotonic() - began
    found = family()
    return IdleCosts(
        len(found),
        median(readings),
        (ServerProcesses.cpu_of(found) - cpu_s) * 1000 / elapsed_s,
        (sum(map(_wakeups, found)) - wakeups) / elapsed_s,
    )


def pss_of(pid: int) -> int:
    """Return the proportional set size of one process, in bytes; 0 if it has ended."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:")), 0)


def _wakeups(pid: int) -> int:
    found = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(OSError):  # a thread that ended
            lines = status.read_text().splitlines()
            found += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return found


def _family(pid: int) -> list[int]:
    """Return a process and those below it, whichever of its threads started them."""
    family = [pid]
    for member in family:
        for _ in range(2):  # one that ends while they are listed may hide others (proc(5))
            for children in Path(f"/proc/{member}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    family += [child for child in map(int, children.read_text().split()) if child not in family]
    return family


def _cpu_ticks(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    fields = stat.rpartition(")")[2].split()  # the command's name may hold spaces; fields[0] is the third, state
    return sum(int(number) for number in fields[11:15])  # utime, stime, and those of waited-for children


def resident_of(pid: int) -> int:
    """Return the resident memory of one process, in bytes; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0
