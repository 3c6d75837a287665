"""SealingTurns: which RPs the threads of this process are sealing. The turns of all peers get a new event at the same time: one of them
signs it, the others wait for its seal, instead of signing it in vain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Condition

# Far longer than sealing takes; after it, threads find the RP unsealed and try again, as beside another process that seals.
WAIT_S = 2.0  # bound: seconds that a thread waits for another one's seals


class SealingTurns:
    """The RPs that are being sealed. Safe to use from several threads."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._busy: set[str] = set()

    @contextmanager
    def taken(self, rps: Sequence[str]) -> Iterator[list[str]]:
        """Take those of these RPs that no other thread is sealing, during the block."""
        with self._changed:
            mine = [rp for rp in rps if rp not in self._busy]
            self._busy.update(mine)
        try:
            yield mine
        finally:
            with self._changed:
                self._busy.difference_update(mine)
                self._changed.notify_all()

    def wait(self, rps: Sequence[str]) -> None:
        """Wait until none of these RPs is being sealed, WAIT_S at most. A thread that waits has taken none."""
        with self._changed:
            self._changed.wait_for(lambda: self._busy.isdisjoint(rps), WAIT_S)
