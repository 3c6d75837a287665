"""An event loop in virtual time: where it would wait for a timer, it sets its clock to that time and goes on."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps


class _Selector(selectors.DefaultSelector):
    """Selects without waiting, and adds up the time that it would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.waited_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now. A wait without an end is a real one: another thread ends it."""
        if timeout is None:
            return super().select(None)
        self.waited_s += max(0.0, timeout)
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock begins at 0 and advances by waiting only."""

    def __init__(self) -> None:
        self._waits = _Selector()
        super().__init__(self._waits)

    def time(self) -> float:
        """Return the virtual time, in seconds."""
        return self._waits.waited_s


def in_virtual_time(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """Run a test in such a loop: a busy machine changes nothing."""

    @wraps(test)
    def run() -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(test())

    return run
