"""The writer: the thread that writes records to disk. Slow and fallible work is done here, away from the event loop.

The writer receives chunks of records and, at intervals, a mark: chunks before the mark are then written to disk, and
the spool becomes segments if due. When the disk refuses, chunks wait (bounded by the buffer, which counts them) and are
retried at each mark; at most one log line a minute reports this.

In a small domain the spool holds plain records, and a short-lived process makes the segments (sealing.py): the writer then only
starts it, and leaves its last spool to the next start.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from eventing.records import encoding, plain, segments
from eventing.records.rows import WIDTH, Cells
from eventing.records.sealing import SealingProcess
from eventing.records.spool import FOLDER, SUFFIX, Leftover, Spool

SEGMENT_RECORDS_MAX = 50_000  # records of a spool before it is made into segments: bounds the memory for that
TELL_S = 60.0  # seconds between log lines about a disk that refuses
log = logging.getLogger(__name__)


class Writer:
    """Writer thread. `start`, `take`, `mark`, `waiting`, `busy`, `dropped` and `close` are called on the event loop;
    everything else is called on the thread.

    Args:
        root: local folder of the records.
        gateway: name of this life of the gateway, see `segments.gateway_id`.
        segment_s: seconds of wall time in one segment.
        sealing: makes the segments; None: the thread does, and its process loads Arrow.
        url: object store for the segments; empty: `root` has them.
    """

    def __init__(
        self, root: Path, gateway: str, segment_s: int, sealing: SealingProcess | None = None, url: str = ""
    ) -> None:
        self._root = root
        self._url = url
        self._gateway = gateway
        self._segment_s = segment_s
        self._sealing = sealing
        self._orders: SimpleQueue[Cells | float | None] = SimpleQueue()
        self._given = 0
        self._done = 0
        self.dropped = 0
        self._backlog: deque[Cells] = deque()
        self._number = 1
        self._sequence = 0
        self._spool: Spool | None = None
        self._period = 0
        self._full: list[Path] = []
        self._recovering = False
        self._refused_at = float("-inf")
        self._refused = False
        self._thread = Thread(target=self._run, name="records", daemon=True)

    # Called on the event loop

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of records received and not yet in a file."""
        return self._given - self._done

    @property
    def busy(self) -> bool:
        """True if a mark would have work to do."""
        return self.waiting > 0 or self._spool is not None or bool(self._full) or self._recovering

    def take(self, cells: Cells) -> None:
        """Write a chunk of records soon; the writer then owns it."""
        self._given += len(cells) // WIDTH
        self._orders.put(cells)

    def mark(self, now: float) -> None:
        """Write received records to disk; make segments if due at `now` (Unix seconds)."""
        self._orders.put(now)

    def close(self, within_s: float) -> bool:
        """Write all received records, make segments of them (without `sealing`), and stop. Returns True if done in time. Harmless when repeated."""
        self._orders.put(None)
        self._thread.join(within_s)
        return not self._thread.is_alive()

    # Called on the thread

    def _run(self) -> None:
        if self._sealing is None:
            self._try(encoding.preload)
        self._try(self._recover)
        while True:
            order = self._orders.get()
            if order is None:
                break
            if isinstance(order, list):
                self._backlog.append(order)
                if not self._refused:
                    self._try(self._write)
            else:
                self._try(partial(self._flush, order))
        self._try(partial(self._flush, None))
        if self._spool is not None:
            self._spool.close()  # the next start makes segments of it

    def _try(self, work: Callable[[], None]) -> None:
        """Do `work`; report a disk that refuses at intervals, and retry at the next mark."""
        try:
            work()
        except OSError as error:
            self._refused = True
            if time.monotonic() - self._refused_at >= TELL_S:
                self._refused_at = time.monotonic()
                log.error(
                    "Access records cannot be written to %s (%s); they wait in memory within a bound and are dropped and counted beyond it. Publishing and reading continue.",
                    self._root,
                    error.strerror or error,
                )
        except Exception:
            log.exception("Writing access records failed; those in hand are dropped and counted.")
        else:
            if self._refused and not self._backlog:
                self._refused = False
                log.info("Access records are written to %s again.", self._root)

    def _recover(self) -> None:
        if self._sealing is not None:
            self._sealing.start_if_needed()
            self._recovering = self._sealing.runs
            return
        found = segments.recover(self._root, self._url)
        if found:
            log.info("Made %d segments of the records of an earlier gateway.", len(found))

    def _write(self) -> None:
        """Append the waiting chunks. Raises OSError, and then they continue to wait."""
        while self._backlog:
            cells = self._backlog.popleft()
            records = len(cells) // WIDTH
            try:
                spool = self._spool or self._new_spool(cells[0])
                spool.append(self._encoded(cells), records)
            except OSError:
                self._backlog.appendleft(cells)
                raise
            except Exception:
                self.dropped += records
                self._done += records
                raise
            self._number += records
            self._done += records
            if spool.records >= SEGMENT_RECORDS_MAX:
                self._retire()

    def _encoded(self, cells: Cells) -> Any:
        if self._sealing is not None:
            return plain.dump(cells, self._gateway, self._number)
        return encoding.dump(encoding.table(cells, self._gateway, self._number))

    def _new_spool(self, now: float) -> Spool:
        while True:
            self._sequence += 1
            path = self._root / FOLDER / f"{self._gateway}-{self._sequence:06d}{SUFFIX}"
            self._spool = Spool.create(path)
            if self._spool is not None:
                self._period = int(now // self._segment_s)
                return self._spool

    def _retire(self) -> None:
        """Retire the spool, which is full or due: it now waits to become segments."""
        if self._spool is not None:
            self._full.append(self._spool.path)
            self._spool.close()
            self._spool = None

    def _flush(self, now: float | None) -> None:
        """Write everything received to disk, and make segments if due; `now` None: make segments now. Raises OSError."""
        self._write()
        if self._spool is not None:
            if now is None or int(now // self._segment_s) != self._period:
                if self._sealing is not None:
                    self._spool.sync()
                self._retire()
            else:
                self._spool.sync()
        if self._sealing is not None:
            if now is not None:
                self._have_sealed(self._sealing)
            return
        sealed = bool(self._full)
        while self._full:
            self._seal(self._full.pop())
        if sealed and now is not None:
            segments.recover(self._root, self._url)  # spools of killed gateways that do not return

    def _have_sealed(self, sealing: SealingProcess) -> None:
        """Have the process make segments of retired spools. Raises OSError."""
        self._recovering = sealing.runs
        if self._recovering:
            return
        self._full = [path for path in self._full if path.exists()]
        if self._full:
            sealing.start()

    def _seal(self, path: Path) -> None:
        left = Leftover.take(path)
        if left is None:
            return  # another gateway was faster
        try:
            segments.seal(self._root, left, self._url)
        except OSError:
            self._full.append(path)
            raise
        finally:
            left.close()
