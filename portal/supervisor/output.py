"""Output of children: every line to a bounded log file, warnings and errors to the terminal as well."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

LOG_FILE_BYTES_MAX = 8 * 1024 * 1024  # bound: bytes of a log file; the file is rotated; three older ones are kept
"""A log file larger than this is turned: `worker.log` becomes `worker.log.1`, and so on."""

LOG_FILES_KEPT = 3
"""Turned files kept beside the current one; the oldest is removed."""

LINE_BYTES_MAX = 16 * 1024
"""A longer line is cut into pieces: a child that never ends its line must not fill our memory."""

SHOWN_LINES_MAX = 10
"""Warnings of one child shown within SHOWN_WINDOW_S; the rest is in the log file only."""

SHOWN_WINDOW_S = 10.0

_LEVEL = re.compile(r"\b(WARNING|ERROR|CRITICAL)\b")
_LEVEL_WITHIN_CHARS = 80
_REDIS_WARNING = re.compile(r"^\d+:[XCSM] .{10,40} # (?P<text>.*)")


def is_warning(line: str) -> bool:
    """Return whether a line of a Python child has the level warning or higher."""
    return _LEVEL.search(line, 0, _LEVEL_WITHIN_CHARS) is not None


def is_redis_warning(line: str) -> bool:
    """Return whether a line of Redis has its level `warning` (shown as `#`)."""
    return _REDIS_WARNING.match(line) is not None


class TurningLog:
    """An append-only log file of bounded size. A full disk costs lines, never the domain."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()

    def write(self, line: bytes) -> None:
        try:
            if self._size + len(line) > LOG_FILE_BYTES_MAX:
                self._turn()
            self._size += self._file.write(line + b"\n")
        except OSError:
            pass  # the disk is full; doctor reports it, and the child's warnings still reach the terminal

    def close(self) -> None:
        self._file.close()

    def _turn(self) -> None:
        self._file.close()
        for number in range(LOG_FILES_KEPT, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number}")
            newer = self.path.with_name(f"{self.path.name}.{number - 1}") if number > 1 else self.path
            if newer.exists():
                newer.replace(older)
        self._file = self.path.open("ab", buffering=0)
        self._size = 0


class LineBuffer:
    """Cuts a stream of bytes into lines of bounded length."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their ends."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        while len(self._rest) > LINE_BYTES_MAX:
            lines.append(self._rest[:LINE_BYTES_MAX])
            self._rest = self._rest[LINE_BYTES_MAX:]
        return [line.rstrip(b"\r") for line in lines]


class Shown:
    """Limits shown lines to SHOWN_LINES_MAX per window, and notes once that there are more."""

    def __init__(self, show: Callable[[str], None], more: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._show, self._more, self._clock = show, more, clock
        self._window_ends, self._count = 0.0, 0

    def line(self, text: str) -> None:
        now = self._clock()
        if now >= self._window_ends:
            self._window_ends, self._count = now + SHOWN_WINDOW_S, 0
        self._count += 1
        if self._count <= SHOWN_LINES_MAX:
            self._show(text)
        elif self._count == SHOWN_LINES_MAX + 1:
            self._show(self._more)
