"""The buffer into which the event loop writes records. Nothing here blocks, and memory is bounded.

All calls are made on the event loop's thread. Gathered records are passed to the writer in chunks, as soon as a chunk
is full and at every flush. Beyond `records_max` records in memory, new ones are dropped and counted; the count is
itself a record (`records.lost`) once there is room.
"""

from __future__ import annotations

from collections.abc import Callable

from eventing.records.rows import GATEWAY, LOST, WIDTH, Cells, Who
from eventing.records.writer import Writer

CHUNK_ROWS = 4096  # encoding holds the interpreter's lock for its first part: 1-2 ms for a chunk of this size


class Buffer:
    """Buffer of the records of one gateway process.

    Args:
        writer: receives the chunks.
        records_max: most records in memory, including those that the writer has not yet written.
        clock: Unix seconds.
    """

    def __init__(self, writer: Writer, records_max: int, clock: Callable[[], float]) -> None:
        self._writer = writer
        self._records_max = records_max
        self._clock = clock
        self._cells: Cells = []
        self._room = min(CHUNK_ROWS, records_max) * WIDTH  # cells until the chunk or the bound is full
        self._lost = 0
        self._dropped_told = 0

    def note(
        self,
        time_s: float,
        who: Who,
        operation: str,
        rp: str,
        reason: str = "",
        events: int = 0,
        bytes_in: int = 0,
        bytes_out: int = 0,
        latency_s: float = 0.0,
        sessions: int = 0,
        count: int = 1,
    ) -> None:
        """Record one operation that was answered at `time_s` (Unix seconds); see schema.COLUMNS for the rest."""
        cells = self._cells
        if len(cells) >= self._room:
            if not self._made_room():
                self._lost += 1
                return
            cells = self._cells
        cells += (time_s, who, operation, rp, reason, events, bytes_in, bytes_out, latency_s, sessions, count)

    def flush(self) -> None:
        """Request that all records so far are written to disk soon."""
        self._hand_over()
        lost = self._lost + self._writer.dropped - self._dropped_told
        if lost and self._room > len(self._cells):
            self._cells += (self._clock(), GATEWAY, LOST, "", "", lost, 0, 0, 0.0, 0, 1)
            self._lost, self._dropped_told = 0, self._writer.dropped
            self._hand_over()
        if self._writer.busy:
            self._writer.mark(self._clock())

    def _made_room(self) -> bool:
        self._hand_over()
        return len(self._cells) < self._room

    def _hand_over(self) -> None:
        if self._cells:
            self._writer.take(self._cells)
            self._cells = []
        self._room = min(CHUNK_ROWS, self._records_max - self._writer.waiting) * WIDTH
