"""Histories: what clients of a domain asked, and what they were answered and given, one JSON object a line in the order of time.

Every record has `at` (seconds since the run began), `process` (who), `op` and `type`. Of a request that may fail there are two
records with the same `call`: the first of type `invoke`, the second `ok`, `fail` (refused for good: nothing was done) or `info` (nobody
knows). What a reader is given is of type `ok`.

    op          members
    run         seed, seconds, levels: {rp: level}, promised: levels that survive the faults of the run
    publish     invoke: rp, ids; ok: epoch, offsets, duplicates
    begin       a reader's answer: rp, asked_at, from (null: earliest; "held": where the durable subscription is), epoch, offset, recovered,
                subscription?
    event       rp, epoch, offset, id
    gap         rp, epoch, from, to, rewound?: {epoch, from, to}
    continued   rp, epoch, offset, previous: {epoch, to}
    ack         invoke: rp, subscription, epoch, offset; ok: epoch, offset (what is held then)
    end         of the process `log`, which read everything last: rp, epoch, offset
    (others)    of the process `nemesis`: for people
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any, TextIO

Record = dict[str, Any]
LOG = "log"
"""The process that reads every log last."""
HELD = "held"
"""`from` of a reading that goes on where its durable subscription is."""


class History:
    """Writes records to a file.

    Attributes:
        acked: how many publishes were acknowledged, by RP.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.acked: Counter[str] = Counter()
        self._file: TextIO = path.open("w")
        self._began = monotonic()
        self._calls = itertools.count(1)
        self._lock = threading.Lock()

    def now(self) -> float:
        """Seconds since the run began."""
        return round(monotonic() - self._began, 6)

    def add(self, process: str, op: str, kind: str = "ok", **members: Any) -> None:
        """Add a record of type `kind`."""
        with self._lock:  # the nemesis has threads
            record = {"at": self.now(), "process": process, "op": op, "type": kind, **members}
            self._file.write(json.dumps(record, separators=(",", ":")) + "\n")

    def invoke(self, process: str, op: str, **members: Any) -> int:
        """Add the first record of a request; return its `call`."""
        call = next(self._calls)
        self.add(process, op, "invoke", call=call, **members)
        return call

    def close(self) -> None:
        """Write what is left."""
        self._file.close()


def read(path: Path) -> Iterator[Record]:
    """The records of a file."""
    with path.open() as lines:
        yield from map(json.loads, lines)


def write(path: Path, records: Iterable[Record]) -> None:
    """Write records as a file."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
