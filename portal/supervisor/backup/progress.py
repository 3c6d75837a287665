"""Progress of a backup or restore: one line per step on stderr, and the running step on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

EVERY_S = 0.2


def size(count: int) -> str:
    """Return a number of bytes for people."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


class BackupProgress:
    """Steps with their time. `quiet` prints none."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._overwrites = sys.stderr.isatty() and not quiet
        self._last = 0.0
        self._width = 0
        self.about = ""
        self.began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Print the step with its time when it is done; `about` states what was done."""
        self.about = ""
        begun = time.monotonic()
        self.show(f"{name} ...")
        yield
        self._end()
        self.note(f"  {name:<14} {time.monotonic() - begun:7.2f} s   {self.about}".rstrip())

    def show(self, text: str) -> None:
        """Show the running step, a few times per second at most."""
        now = time.monotonic()
        if self._overwrites and now - self._last >= EVERY_S:
            self._last = now
            sys.stderr.write("\r" + f"  {text}".ljust(self._width))
            sys.stderr.flush()
            self._width = len(text) + 2

    def note(self, text: str) -> None:
        """Print a line."""
        if not self._quiet:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def _end(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            self._width = 0
            self._last = 0.0
