"""One child process: its start, output and end.

States: `starting` (running, not yet ready) → `ready` → `gone` → `starting` again after a pause. The pause is
RESTART_PAUSE_S for a child that was ready for SERVED_AFTER_S, however often it ended before. It doubles with each
earlier end: to RESTART_PAUSE_READY_S_MAX where the child became ready, to RESTART_PAUSE_S_MAX where it failed at its
start.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from portal.supervisor.output import LineBuffer, TurningLog
from portal.supervisor.parent_watchdog import READY_FD, death_signal

RESTART_PAUSE_S = 0.2
RESTART_PAUSE_READY_S_MAX = 2.0
"""Seconds at most for a child that becomes ready: most of the time it serves, whatever ends it again and again."""
RESTART_PAUSE_S_MAX = 30.0
"""Seconds at most for a child that fails at its start: something has to be repaired first."""
SERVED_AFTER_S = 5.0
"""Seconds that a child has to be ready for, so that its end is no reason for a longer pause."""

_READY_BYTES = 4096
_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """Specification of a child. `probe` detects readiness from outside; a child without one reports it
    (parent_watchdog.report_ready).

    Attributes:
        stop_signal: ends it at once, once it is ready.
        drain_s: seconds that it takes longer to end by SIGTERM or SIGHUP, because it closes its sessions over time.
        dead_after_s: seconds without a proof of work (liveness.py) after which it is killed; None: it gives none.
        is_exchanged_beside: a new process can serve beside the present one, which SIGHUP then ends; else it is stopped first.
    """

    name: str
    command: Sequence[str]
    working_folder: Path
    environment: Mapping[str, str]
    stop_within_s: float
    pass_fds: Sequence[int] = ()
    stop_signal: signal.Signals = signal.SIGTERM
    drain_s: float = 0.0
    dead_after_s: float | None = None
    is_exchanged_beside: bool = False
    death_signal: signal.Signals = signal.SIGKILL
    probe: Callable[[], bool] | None = None
    is_warning: Callable[[str], bool] = field(default=lambda line: False)


class Child:
    """A child and its log file. Only the supervisor's loop calls it.

    Args:
        log: the log file that it shares with the process that it replaces; None: a file of its own in `log_folder`.
    """

    def __init__(self, spec: ChildSpec, log_folder: Path, log: TurningLog | None = None) -> None:
        self.spec = spec
        self.log = log or TurningLog(log_folder / f"{spec.name}.log")
        self.process: subprocess.Popen[bytes] | None = None
        self.ready_at: float | None = None
        """Time of readiness (time.monotonic); None while not ready."""
        self.ready_text = ""
        """Text with which the child reported that it is ready."""
        self.output_fd = -1
        self.ready_fd = -1
        self.last_line = ""
        self.last_warning = ""
        self.proved_at = 0.0
        """Time of the newest proof of work (time.monotonic), or of readiness."""
        self.how_ended = ""
        """Description of its last end."""
        self.start_due = 0.0
        self._restart_pause_s = RESTART_PAUSE_S
        self._lines = LineBuffer()

    @property
    def running(self) -> bool:
        return self.process is not None

    @property
    def ready(self) -> bool:
        return self.ready_at is not None

    def note_ready(self) -> None:
        """Note that the child is ready, as reported by the child or by a probe."""
        if self.ready_at is None:
            self.ready_at = self.proved_at = time.monotonic()

    @property
    def is_dead(self) -> bool:
        """True if it has not proved for too long that its work continues."""
        limit_s = self.spec.dead_after_s
        return self.ready and limit_s is not None and time.monotonic() - self.proved_at > limit_s

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def start(self) -> None:
        """Start the process in a session of its own, so that a Ctrl-C at the terminal reaches the supervisor only."""
        self.ready_at, self._lines = None, LineBuffer()
        output, child_output = os.pipe2(os.O_CLOEXEC)
        ready, child_ready = os.pipe2(os.O_CLOEXEC)
        environment = {**self.spec.environment}
        pass_fds = list(self.spec.pass_fds)
        if self.spec.probe is None:
            environment[READY_FD] = str(child_ready)
            pass_fds.append(child_ready)
        try:
            self.process = subprocess.Popen(
                self.spec.command,
                stdin=subprocess.DEVNULL,
                stdout=child_output,
                stderr=child_output,
                cwd=self.spec.working_folder,
                env=environment,
                pass_fds=pass_fds,
                start_new_session=True,
                preexec_fn=death_signal(self.spec.death_signal),
            )
        finally:
            os.close(child_output)
            os.close(child_ready)
        for descriptor in (output, ready):
            os.set_blocking(descriptor, False)
        self.output_fd, self.ready_fd = output, ready

    def read_lines(self) -> list[str] | None:
        """Return the output since the last call, None at its end; the log file has all of it."""
        try:
            chunk = os.read(self.output_fd, _READ_BYTES)
        except BlockingIOError:
            return []
        if not chunk:
            return None
        lines = self._lines.feed(chunk)
        for line in lines:
            self.log.write(line)
        texts = [line.decode(errors="replace") for line in lines]
        self.last_line = next((text for text in reversed(texts) if text.strip()), self.last_line)
        return texts

    def read_ready(self) -> bool:
        """Return whether the child has reported that it is ready, or once more that its work continues; False at the end of the pipe."""
        said = b""
        with contextlib.suppress(BlockingIOError):
            if said := os.read(self.ready_fd, _READY_BYTES):
                if not self.ready:
                    self.ready_text = said.decode(errors="replace").removeprefix("ready").partition("\n")[0].strip()
                    self.note_ready()
                self.proved_at = time.monotonic()
        return bool(said)

    def ended(self) -> str | None:
        """Return how the child ended, if it just did: `exit code 1`, `killed by SIGKILL`. Its own children are ended,
        too."""
        if self.process is None or os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        self.send_group(signal.SIGKILL)  # pool processes of a worker that was killed; before the pid can be reused
        status = self.process.wait()
        if self.ready_at is not None:
            served = time.monotonic() - self.ready_at >= SERVED_AFTER_S
            self._restart_pause_s = RESTART_PAUSE_S if served else min(self._restart_pause_s, RESTART_PAUSE_READY_S_MAX)
        self.process, self.ready_at = None, None
        self.how_ended = f"killed by {_signal_name(-status)}" if status < 0 else f"exit code {status}"
        return self.how_ended

    def plan_restart(self) -> float:
        """Schedule the next start; returns the seconds until then."""
        pause_s = self._restart_pause_s
        self.start_due = time.monotonic() + pause_s
        self._restart_pause_s = min(pause_s * 2, RESTART_PAUSE_S_MAX)
        return pause_s

    def close_pipes(self) -> None:
        """Forget the pipes of a process that ended; a grandchild may still hold the other ends."""
        for descriptor in (self.output_fd, self.ready_fd):
            if descriptor >= 0:
                os.close(descriptor)
        self.output_fd = self.ready_fd = -1

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process itself."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    def send_group(self, number: signal.Signals) -> None:
        """Send a signal to the process and everything it started."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
