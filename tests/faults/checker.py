"""Check of a history (history.py) against what the protocol promises. Pure.

Violations, by name:

    lost            acknowledged at a promised level, and not in the log; or passed over by a reader who was not told
    withdrawn       a reader was told that an acknowledged event at a promised level was withdrawn
    doubled         one event at two offsets of a log; or given to a reader again who was not told that it would be
    forked          one offset of one epoch with two events; or a reader holds another event than the log, and was not told
    reordered       published after another one was acknowledged, and before it in the log; or a batch out of its order
    phantom         an event that nobody published, or that was refused for good
    untold          a reader's epoch or place changed, and it was not told
    false-gap       a reader was told that events are missing which the log holds
    acknowledgement a durable subscription is behind what it has acknowledged, or beyond what it has tried to
    stuck           a reader did not get to the end of the log after the faults were over

Legal, and only counted (`Report.notes`): events that nobody acknowledged and that appear, or are withdrawn; `rewound` at other levels; an
unknown epoch after two failovers of which the second undid the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.faults.history import HELD, LOG, Record


class Violation(NamedTuple):
    """One violation.

    Attributes:
        name: see above.
        at: of the record that shows it, seconds; the end of the history where none does.
    """

    name: str
    rp: str
    at: float
    detail: str


@dataclass
class Report:
    """What a history shows.

    Attributes:
        violations: broken promises.
        notes: legal anomalies, counted.
        counts: faults, acknowledged events and deliveries: what there was to check.
    """

    violations: list[Violation] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def names(self) -> set[str]:
        """Names of the violations."""
        return {one.name for one in self.violations}


@dataclass
class _Published:
    """One event, as its publisher knows it."""

    rp: str
    first_at: float
    acked_at: float | None = None
    epoch: str = ""
    offset: int = 0
    refused: int = 0
    attempts: int = 0


@dataclass
class _Reader:
    """A reader of one RP: where it stands, and which events it holds, by offset and by id."""

    process: str
    epoch: str
    offset: int
    gap_due: bool = False
    begun: bool = False
    held: dict[int, str] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)

    def keep_to(self, offset: int) -> None:
        """Drop what is held beyond an offset, and stand there."""
        for at in [at for at in self.held if at > offset]:
            self.ids.pop(self.held.pop(at), None)
        self.offset = offset


@dataclass
class _Subscription:
    """A durable subscription: acknowledgements with their times of asking and answering, and offsets."""

    asked: list[tuple[float, int]] = field(default_factory=list)
    acked: list[tuple[float, int]] = field(default_factory=list)

    def acked_before(self, at: float) -> int:
        """The greatest offset whose acknowledgement was answered before a time."""
        return max((offset for when, offset in self.acked if when < at), default=0)


def check(history: Iterable[Record]) -> Report:
    """Check a history. Raises ValueError for a record that it does not know."""
    checker = _Checker()
    for record in history:
        checker.take(record)
    checker.end()
    return checker.report


class _Checker:
    def __init__(self) -> None:
        self.report = Report()
        self._at = 0.0
        self._levels: dict[str, str] = {}
        self._promised: set[str] = set()
        self._calls: dict[int, Record] = {}
        self._published: dict[str, _Published] = {}
        self._batches: list[tuple[str, list[str]]] = []
        self._readers: dict[tuple[str, str], _Reader] = {}
        self._subscriptions: dict[str, _Subscription] = {}
        self._places: dict[tuple[str, str, int], str] = {}  # RP, epoch, offset: id
        self._ends: dict[str, int] = {}
        self._missing: list[tuple[str, int, str, float]] = []  # RP, offset, the reader who was told, when

    def take(self, record: Record) -> None:
        """Take the next record."""
        self._at = record["at"]
        if record["process"] == "nemesis":
            self.report.counts["faults"] += record["type"] == "invoke"
            return
        if record["type"] == "invoke":
            self._calls[record["call"]] = record
        take = getattr(self, f"_take_{record['op']}", None)
        if take is None:
            raise ValueError(f"a record of an unknown op: {record}")
        take(record)

    def _found(self, name: str, rp: str, detail: str) -> None:
        self.report.violations.append(Violation(name, rp, self._at, detail))

    def _is_promised(self, rp: str) -> bool:
        return self._levels.get(rp, "") in self._promised

    def _take_run(self, record: Record) -> None:
        self._levels, self._promised = record["levels"], set(record["promised"])

    # Publishers

    def _take_publish(self, record: Record) -> None:
        if record["type"] == "invoke":
            for name in record["ids"]:
                self._published.setdefault(name, _Published(record["rp"], self._at)).attempts += 1
            return
        invoked = self._calls.pop(record["call"])
        rp, ids = invoked["rp"], invoked["ids"]
        if record["type"] == "fail":
            for name in ids:
                self._published[name].refused += 1
        if record["type"] != "ok":
            self.report.notes[f"publish {record['type']}"] += 1
            return
        self._batches.append((rp, ids))
        for name, offset in zip(ids, record["offsets"], strict=True):
            self._placed(rp, record["epoch"], offset, name)
            known = self._published[name]
            if known.acked_at is None:
                known.acked_at, known.epoch, known.offset = self._at, record["epoch"], offset
            elif known.offset != offset and self._is_promised(rp):
                self._found("doubled", rp, f"{name} was acknowledged at {known.offset} and at {offset}")

    def _placed(self, rp: str, epoch: str, offset: int, name: str) -> None:
        other = self._places.setdefault((rp, epoch, offset), name)
        if other != name:
            self._found("forked", rp, f"{epoch}:{offset} is {other} and {name}")

    # Readers

    def _take_begin(self, record: Record) -> None:
        rp, key = record["rp"], (record["process"], record["rp"])
        reader = self._readers.get(key)
        epoch, offset = record["epoch"], record["offset"]
        if reader is None:
            reader = self._readers[key] = _Reader(record["process"], epoch, offset)
        if record["from"] == HELD:
            self._begin_held(reader, record)
        elif reader.begun and record["recovered"] and offset != reader.offset:
            name = "lost" if offset > reader.offset else "untold"
            self._found(name, rp, f"{reader.process} was at {reader.offset} and goes on after {offset}, recovered")
            reader.keep_to(offset)
        reader.begun = True
        reader.gap_due = not record["recovered"]
        if record["recovered"]:
            reader.epoch = epoch

    def _begin_held(self, reader: _Reader, record: Record) -> None:
        rp, offset = record["rp"], record["offset"]
        known = self._subscriptions.setdefault(record["subscription"], _Subscription())
        acked = known.acked_before(record["asked_at"])
        if offset < acked and self._is_promised(rp):
            detail = f"{record['subscription']} had acknowledged {acked} and is at {offset}"
            self._found("acknowledgement", rp, detail)
        if offset > max((asked for _, asked in known.asked), default=0) and record["recovered"] and reader.begun:
            self._found("acknowledgement", rp, f"{record['subscription']} is at {offset}, which it never acknowledged")
        if record["recovered"]:
            reader.keep_to(offset)

    def _take_gap(self, record: Record) -> None:
        rp, reader = record["rp"], self._reader(record)
        reader.gap_due = False
        start, end, rewound = record["from"], record["to"], record.get("rewound")
        if rewound is not None:
            self.report.notes["rewound"] += 1
            if rewound["to"] != reader.offset or start > reader.offset + 1:
                self._found("untold", rp, f"{reader.process} at {reader.epoch}:{reader.offset} was told {record}")
            given = [reader.held[at] for at in range(rewound["from"], rewound["to"] + 1) if at in reader.held]
            acked = [name for name in given if name in self._published and self._published[name].acked_at is not None]
            self.report.notes["withdrawn unacknowledged"] += len(given) - len(acked)
            if acked and self._is_promised(rp):
                self._found("withdrawn", rp, f"{reader.process} was told that {acked} were withdrawn")
            reader.keep_to(start - 1)
        elif record["epoch"] != reader.epoch:
            self.report.notes["unknown epoch"] += 1
            reader.held.clear()
            reader.ids.clear()
        elif start != reader.offset + 1 and end >= start:
            self.report.notes["begun anew"] += 1
            reader.held.clear()
            reader.ids.clear()
        reader.epoch, reader.offset = record["epoch"], end
        self._missing += [(rp, at, reader.process, self._at) for at in range(start, end + 1)]

    def _take_continued(self, record: Record) -> None:
        reader, previous = self._reader(record), record["previous"]
        if previous["epoch"] != reader.epoch or not record["offset"] == reader.offset <= previous["to"]:
            detail = f"{reader.process} at {reader.epoch}:{reader.offset} was told {record}"
            self._found("untold", record["rp"], detail)
        reader.epoch = record["epoch"]

    def _take_event(self, record: Record) -> None:
        rp, reader = record["rp"], self._reader(record)
        self.report.counts["deliveries"] += record["process"] != LOG
        epoch, offset, name = record["epoch"], record["offset"], record["id"]
        self._placed(rp, epoch, offset, name)
        published = self._published.get(name)
        if published is None or published.refused == published.attempts:
            self._found("phantom", rp, f"{name}, which nobody published or which was refused, at {epoch}:{offset}")
        if reader.gap_due or epoch != reader.epoch:
            detail = f"{reader.process} at {reader.epoch}:{reader.offset} was given {epoch}:{offset}"
            self._found("untold", rp, detail)
            reader.gap_due, reader.epoch = False, epoch
        if offset > reader.offset + 1:
            self._found("lost", rp, f"{reader.process} was given {offset} after {reader.offset}")
        elif offset <= reader.offset:
            self._found("doubled", rp, f"{reader.process} was given {offset} ({name}) after {reader.offset}")
        elif name in reader.ids:
            detail = f"{reader.process} was given {name} at {offset} and before at {reader.ids[name]}"
            self._found("doubled", rp, detail)
        reader.offset = offset
        reader.held[offset] = name
        reader.ids[name] = offset

    def _reader(self, record: Record) -> _Reader:
        return self._readers[record["process"], record["rp"]]

    def _take_ack(self, record: Record) -> None:
        if record["type"] == "invoke":
            known = self._subscriptions.setdefault(record["subscription"], _Subscription())
            known.asked.append((self._at, record["offset"]))
            return
        invoked = self._calls.pop(record["call"])
        if record["type"] != "ok":
            self.report.notes[f"ack {record['type']}"] += 1
            return
        rp, known = invoked["rp"], self._subscriptions[invoked["subscription"]]
        least = max(invoked["offset"], known.acked_before(invoked["at"]))
        if record["offset"] < least and self._is_promised(rp):
            detail = f"{invoked['subscription']} was answered {record['offset']}, {least} was acknowledged"
            self._found("acknowledgement", rp, detail)
        known.acked.append((self._at, record["offset"]))

    def _take_end(self, record: Record) -> None:
        self._ends[record["rp"]] = record["offset"]

    # The end

    def end(self) -> None:
        """Compare publishers and readers with the logs."""
        self.report.counts["acknowledged events"] = sum(one.acked_at is not None for one in self._published.values())
        for rp, last in self._ends.items():
            log = self._readers.get((LOG, rp)) or _Reader(LOG, "", 0)
            self._check_log(rp, log)
            for (process, of), reader in self._readers.items():
                if of == rp and process != LOG:
                    self._check_reader(rp, reader, log, last)
        for rp, offset, process, at in self._missing:
            log_of = self._readers.get((LOG, rp))
            if log_of is not None and offset in log_of.held:
                detail = f"{process} was told that {offset} is missing; the log has {log_of.held[offset]}"
                self.report.violations.append(Violation("false-gap", rp, at, detail))

    def _check_log(self, rp: str, log: _Reader) -> None:
        if not self._is_promised(rp):
            return
        events = {name: one for name, one in self._published.items() if one.rp == rp}
        for name, one in events.items():
            if one.acked_at is None:
                self.report.notes["appeared unacknowledged"] += name in log.ids
            elif name not in log.ids:
                detail = f"{name}, acknowledged at {one.epoch}:{one.offset} ({one.acked_at:.2f} s), is not in the log"
                self._found("lost", rp, detail)
            elif log.ids[name] != one.offset:
                detail = f"{name} was acknowledged at {one.offset} and is in the log at {log.ids[name]}"
                self._found("doubled", rp, detail)
        self._check_order(rp, log, events)

    def _check_order(self, rp: str, log: _Reader, events: dict[str, _Published]) -> None:
        acked = sorted(
            (one.acked_at, log.ids[name], name)
            for name, one in events.items()
            if one.acked_at is not None and name in log.ids
        )
        highest, at, behind = 0, 0, ""
        for name, one in sorted(events.items(), key=lambda item: item[1].first_at):
            while at < len(acked) and acked[at][0] < one.first_at:
                if acked[at][1] > highest:
                    _, highest, behind = acked[at]
                at += 1
            if name in log.ids and log.ids[name] < highest:
                detail = f"{name} at {log.ids[name]} was published after {behind} at {highest} was acknowledged"
                self._found("reordered", rp, detail)
        for of, ids in self._batches:
            places = [log.ids[name] for name in ids if name in log.ids]
            if of == rp and places != sorted(places):
                self._found("reordered", rp, f"the batch {ids} is at {places}")

    def _check_reader(self, rp: str, reader: _Reader, log: _Reader, last: int) -> None:
        if reader.offset != last:
            self._found("stuck", rp, f"{reader.process} is at {reader.offset}, the log ends at {last}")
            return
        for offset, name in reader.held.items():
            other = log.held.get(offset)
            if other != name:
                self._found("forked", rp, f"{reader.process} holds {name} at {offset}, the log has {other}")
