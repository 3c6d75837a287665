"""Histories made by hand: a log of one RP, its publishers, readers and failovers, all of which keep the protocol."""

from __future__ import annotations

from typing import Any

from tests.faults.history import HELD, LOG, Record

RP = "rp"
SUBSCRIPTION = "sub"


class Made:
    """A log with its clients. What happens is recorded; `lost` of a failover is what the new server lacks.

    Attributes:
        records: the history so far.
        log: ids by offset, from 1.
    """

    def __init__(self, level: str = "replicated:all", promised: tuple[str, ...] = ("replicated:all",)) -> None:
        self.records: list[Record] = []
        self.log: list[str] = []
        self.epoch = "a"
        self.ends: dict[str, int] = {}
        self.places: dict[str, tuple[str, int]] = {}
        self._published = self._calls = self._failovers = 0
        self.add("run", "run", levels={RP: level}, promised=list(promised))

    def add(self, process: str, op: str, kind: str = "ok", **members: Any) -> Record:
        """Add a record."""
        members = {name.rstrip("_"): value for name, value in members.items()}
        self.records.append({"at": float(len(self.records)), "process": process, "op": op, "type": kind, **members})
        return self.records[-1]

    def invoke(self, *names: str) -> int:
        """A publisher asks to publish these."""
        self._calls += 1
        self.add("p", "publish", "invoke", call=self._calls, rp=RP, ids=list(names))
        return self._calls

    def answer(self, call: int, *offsets: int, duplicate: bool = False) -> None:
        """The publisher is answered."""
        duplicates = [duplicate] * len(offsets)
        self.add("p", "publish", call=call, epoch=self.epoch, offsets=list(offsets), duplicates=duplicates)

    def publish(self, *names: str) -> None:
        """Events that are acknowledged."""
        first = len(self.log) + 1
        call = self.invoke(*names)
        self.log += names
        self.answer(call, *range(first, len(self.log) + 1))

    def doubt(self, name: str, *, stored: bool) -> None:
        """A publish without an answer."""
        call = self.invoke(name)
        self.log += [name] if stored else []
        self.add("p", "publish", "info", call=call, why="no answer")

    def fail_over(self, lost: int = 0) -> None:
        """Another server continues the log, without its last events."""
        self._failovers += 1
        del self.log[len(self.log) - lost :]
        self.ends = {epoch: min(end, len(self.log)) for epoch, end in self.ends.items()}
        self.ends[self.epoch] = len(self.log)
        self.epoch = f"a{self._failovers}"

    def read(self, reader: str, count: int | None = None, *, live: bool = False) -> None:
        """A reader reads on, by a new request, or on its connection (`live`)."""
        epoch, offset = self.places.get(reader, (self.epoch, 0))
        end = self.ends.get(epoch, len(self.log))
        if not live or reader not in self.places:
            begin = f"{epoch}:{offset}" if reader in self.places else None
            self.begin(reader, min(offset, end), from_=begin, recovered=offset <= end)
        elif epoch != self.epoch and offset <= end:
            previous = {"epoch": epoch, "to": end}
            self.add(reader, "continued", rp=RP, epoch=self.epoch, offset=offset, previous=previous)
        if offset > end:
            rewound = {"epoch": epoch, "from": end + 1, "to": offset}
            self.add(reader, "gap", rp=RP, epoch=self.epoch, from_=end + 1, to=end, rewound=rewound)
            offset = end
        last = len(self.log) if count is None else min(len(self.log), offset + count)
        for at in range(offset + 1, last + 1):
            self.event(reader, at)
        self.places[reader] = self.epoch, last

    def begin(self, reader: str, offset: int, *, from_: str | None = None, recovered: bool = True) -> Record:
        """A reader is answered where it goes on."""
        members: dict[str, Any] = {"subscription": SUBSCRIPTION} if from_ == HELD else {}
        members |= {"rp": RP, "asked_at": float(len(self.records)), "from_": from_, "recovered": recovered}
        return self.add(reader, "begin", epoch=self.epoch, offset=offset, **members)

    def event(self, reader: str, offset: int, name: str | None = None) -> Record:
        """A reader is given an event."""
        return self.add(reader, "event", rp=RP, epoch=self.epoch, offset=offset, id=name or self.log[offset - 1])

    def acknowledge(self, offset: int, answered: int | None = None) -> None:
        """The durable subscription acknowledges."""
        self._calls += 1
        place = {"rp": RP, "subscription": SUBSCRIPTION, "epoch": self.epoch, "offset": offset}
        self.add("d", "ack", "invoke", call=self._calls, **place)
        self.add("d", "ack", call=self._calls, epoch=self.epoch, offset=offset if answered is None else answered)

    def end(self, *readers: str) -> list[Record]:
        """These readers read to the end, and so does the process `log`; return the history."""
        for reader in readers:
            self.read(reader)
        self.read(LOG)
        self.add(LOG, "end", rp=RP, epoch=self.epoch, offset=len(self.log))
        return self.records
