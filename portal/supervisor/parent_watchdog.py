"""Link of a child to its supervisor: a child ends with its supervisor, and reports when it is ready.

Linux can send a process a signal when its parent ends for any reason (prctl(2), PR_SET_PDEATHSIG). Elsewhere a
supervisor that was killed leaves its children to the next start, which finds them in the process table and stops them.
Readiness is one line on an inherited pipe, so it need not be inferred from logs or ports. Further lines prove that the child's work continues
on (liveness.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable

from eventing.core.container import per_process

READY_FD = "SUPERVISOR_READY_FD"
"""Environment variable with the pipe's descriptor. Absent without a supervisor, as under daphne."""

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def death_signal(number: signal.Signals) -> Callable[[], None]:
    """A `preexec_fn` for Popen: the child gets `number` when this process (its forking thread) ends."""
    parent = os.getpid()

    def bind() -> None:
        set_death_signal(number)
        if os.getppid() != parent:  # it ended between fork and prctl; nothing would ever be sent
            os._exit(1)

    return bind


def set_death_signal(number: signal.Signals) -> None:
    """Request signal `number` from the kernel when the parent ends. No effect where the kernel lacks this."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


@per_process
def _proofs() -> list[int]:
    """The pipe of a child that has reported that it is ready; none in its forks."""
    return []


def report_ready(text: str = "") -> None:
    """Notify the supervisor that this child is ready. Harmless without a supervisor, and when called again.

    Args:
        text: what the supervisor prints about this child; shorter than what a pipe takes at once (4 KiB).
    """
    descriptor = os.environ.pop(READY_FD, "")
    if descriptor:
        with contextlib.suppress(OSError):  # the supervisor has ended and reads no answer
            os.set_blocking(int(descriptor), False)
            os.write(int(descriptor), f"ready{text}\n".encode())
            _proofs().append(int(descriptor))


def prove_work() -> None:
    """Prove to the supervisor that the work of this child, which is ready, continues. Harmless without a supervisor."""
    for descriptor in _proofs():
        with contextlib.suppress(OSError):  # the supervisor does not read just now, or has ended
            os.write(descriptor, b"works\n")
