"""A line on the terminal that is overwritten; nothing if stderr is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from herald.commands.output import note, over, overwrites

EVERY_S = 0.2


class ProgressLine:
    """Context manager of the line, which ends with it."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown and overwrites()
        self._last = 0.0
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the line, if there is one."""
        if self._width:
            self._width = 0
            note("")

    def show(self, text: Callable[[], str]) -> None:
        """Show the result of `text()`, a few times per second at most."""
        now = time.monotonic()
        if not self._shown or now - self._last < EVERY_S:
            return
        self._last = now
        self._width = over(text(), self._width)
