"""When a server has done all that it can with what was sent to it: the condition that takes the place of a sleep where it answers nothing."""

from __future__ import annotations

from pathlib import Path

from demo.harness.servers import wait_for

SAMPLES = 5  # in a row, 20 ms apart: between two steps a process may sleep for a moment
ESTABLISHED, LISTENING = "01", "0A"


def await_rest(process: int, port: int) -> None:
    """Wait until all threads of a process sleep and nothing that was sent to its port on 127.0.0.1 is unread."""
    seen = 0

    def rests() -> bool:
        nonlocal seen
        seen = seen + 1 if _asleep(process) and not _unread(port) else 0
        return seen >= SAMPLES

    wait_for(rests, about=f"process {process} rests")


def _asleep(process: int) -> bool:
    """Whether no thread runs or waits for a processor or a disk: a starved one is `R`, too."""
    states = {
        thread.read_text().rpartition(")")[2].split()[0] for thread in Path(f"/proc/{process}/task").glob("*/stat")
    }
    return states <= {"S", "I"}


def _unread(port: int) -> bool:
    """Whether bytes, or connections that nobody accepted, wait at the port."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return any(
        row[1].endswith(f":{port:04X}") and row[3] in {ESTABLISHED, LISTENING} and not row[4].endswith(":00000000")
        for row in rows
    )
