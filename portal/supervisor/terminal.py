"""Output for the operator: short plain lines, with colours only on a terminal (and never with NO_COLOR set)."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

_COLOURS = {"ready": "32", "off": "33", "warning": "33", "failed": "31", "dim": "2", "bold": "1"}
_NAME_WIDTH = 10


class Terminal:
    """Writes to `stream`. Lines to a closed terminal are lost; the domain continues."""

    tells_secrets = True
    """True if the first administrator's login link may be printed here."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._coloured = self._stream.isatty() and not os.environ.get("NO_COLOR")

    def line(self, text: str = "") -> None:
        """Write one line unchanged."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text + "\n")
            self._stream.flush()

    def state(self, name: str, state: str, about: str = "") -> None:
        """One line of the table: `  redis      ready    6.2.14, every write fsynced`."""
        self.line(f"  {name:<{_NAME_WIDTH}} {self.paint(f'{state:<9}', state.split(' ', 1)[0])} {about}".rstrip())

    def note(self, name: str, text: str) -> None:
        """Write a message of or about a child."""
        self.line(f"  {name:<{_NAME_WIDTH}} {text}")

    def paint(self, text: str, colour: str) -> str:
        """`text` in a colour, where the terminal has any."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self._coloured and colour in _COLOURS else text
