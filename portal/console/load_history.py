"""The domain's load in ranges of time, from the samples in domain.admin's history, in steps of ten seconds to half an hour.

A page requests it once and then adds live samples (portal/web/load_series.js sums them in the same way). Each process
remembers what it has read, so that only the first request reads the whole history. The history is bounded:
a range begins later than it is long where older samples have left it.

A sample has the counts of one gateway in an interval. Its counts are spread over the steps that the interval touches;
the rate of a step is what all gateways did in it, by the part of it that is known. Numbers of now (sessions) hold for
those steps.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from time import time
from typing import Any, NamedTuple

from eventing.core.container import per_process
from eventing.core.ids import DOMAIN_ADMIN
from eventing.log import control
from eventing.log.scripts import NoLog
from eventing.outbox.administrative_events import LOAD_SAMPLED, PEER_DELIVERY, PEER_REMOVED

STEP_S = 10
STEPS = 360
RATES = ("events_in", "bytes_in", "deliveries", "bytes_out", "publishes", "refused", "cpu_s")
NOW = ("sessions", "readings", "rss_bytes")
MOST = ("lag_ms",)
"""The greatest of all gateways in a step."""
COUNTS = ("rps", "subscriptions", "reserved_bytes")
BACKLOG = "backlog"
INTERVAL_S_MAX = 60.0
"""Seconds that a sample may cover; samples cover 1 or 10 s."""

RUN_EVENTS, RUN_BYTES = 1000, 1024**2
RUNS_MAX = 64
"""Reads per question: more than the whole history of domain.admin (20,000 events, 16 MiB)."""

DELIVERIES_MAX = 20_000  # bound: changes of backlogs remembered; the oldest are forgotten
GATEWAYS_MAX = 1000
"""Gateway processes remembered; each start of one has another id."""

_TYPES = tuple(f'"{kind}"'.encode() for kind in (LOAD_SAMPLED, PEER_DELIVERY, PEER_REMOVED))


class Resolution(NamedTuple):
    """Resolution of a range: steps of `step_s` seconds, the newest `steps` of them."""

    step_s: int
    steps: int


RANGES: Mapping[str, Resolution] = {
    "15m": Resolution(STEP_S, 90),
    "1h": Resolution(STEP_S, STEPS),
    "6h": Resolution(60, 360),
    "24h": Resolution(300, 288),
    "7d": Resolution(1800, 336),
}
"""Ranges of time that pages show, by name. Each reaches as far back as the samples in the history do, which the page states."""
RANGE_DEFAULT = "1h"


@dataclass(slots=True)
class _Step:
    """Data of one step: `sums` of counts up to `until` (seconds since 1970), per gateway the numbers of now, with their
    time."""

    until: float
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(RATES, 0.0))
    now: dict[str, tuple[float, Mapping[str, float]]] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)


class LoadHistory:
    """Steps of a range, filled from the events added so far.

    Args:
        resolution: length and number of the steps.
    """

    def __init__(self, resolution: Resolution = RANGES[RANGE_DEFAULT]) -> None:
        self._step_s, self._size = resolution
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._steps: dict[int, _Step] = {}
        self._seen: dict[str, float] = {}
        self._backlogs: dict[str, int] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an administrative event; events other than load and delivery are ignored."""
        data = event["data"]
        if event["type"] == PEER_DELIVERY:
            self._backlogs[data["peer"]] = data["backlog"]
            self._note_backlog(datetime.fromisoformat(event["time"]).timestamp())
        elif event["type"] == PEER_REMOVED:
            self._backlogs.pop(data["peer"]["name"], None)
        elif event["type"] == LOAD_SAMPLED and "sessions" in data:
            self._sample(data)

    def _note_backlog(self, at: float) -> None:
        self._step(int(at // self._step_s), at).counts[BACKLOG] = sum(self._backlogs.values())

    def _sample(self, data: Mapping[str, Any]) -> None:
        end = datetime.fromisoformat(data["at"]).timestamp()
        interval = min(max(float(data["interval_s"]), 1e-3), INTERVAL_S_MAX)
        begin = end - interval
        if self._steps and end < (max(self._steps) - self._size) * self._step_s:
            self._steps.clear()  # the clock was set back: what was after it never was
        self._seen.pop(data["gateway"], None)
        self._seen[data["gateway"]] = end
        while len(self._seen) > GATEWAYS_MAX:
            del self._seen[next(iter(self._seen))]
        for number in range(int(begin // self._step_s), int(end // self._step_s) + 1):
            start = number * self._step_s
            covered = min(end, start + self._step_s) - max(begin, start)
            if covered <= 0:
                continue
            step = self._step(number, min(end, start + self._step_s))
            for name in RATES:
                step.sums[name] += data.get(name, 0) * covered / interval
            step.now[data["gateway"]] = (end, {name: data.get(name, 0) for name in NOW})
            for name in MOST:
                step.most[name] = max(step.most.get(name, 0), data.get(name, 0))
            for name in COUNTS:
                if name in data.get("counts", {}):
                    step.counts[name] = data["counts"][name]
            step.counts[BACKLOG] = sum(self._backlogs.values())

    def _step(self, number: int, until: float) -> _Step:
        step = self._steps.get(number)
        if step is None:
            step = self._steps[number] = _Step(until)
            newest = max(self._steps)
            for old in [one for one in self._steps if one <= newest - self._size]:
                del self._steps[old]
        step.until = max(step.until, until)
        return step

    def document(self) -> dict[str, Any]:
        """Return {"start": of the first step, seconds since 1970; "until": end of the data in the last one; "step_s"; "steps": their
        greatest number; "series": {name: [number or null for each step]}; "seen": {gateway: end of its newest sample}}.
        """
        shape = {"step_s": self._step_s, "steps": self._size}
        if not self._steps:
            return {"start": 0, "until": 0, **shape, "series": {}, "seen": {}}
        first, last = min(self._steps), max(self._steps)
        steps = [self._steps.get(number) for number in range(first, last + 1)]
        series = {
            name: [
                None if step is None else _number(name, step, (first + index) * self._step_s)
                for index, step in enumerate(steps)
            ]
            for name in (*RATES, *NOW, *MOST, *COUNTS, BACKLOG)
        }
        return {
            "start": first * self._step_s,
            "until": self._steps[last].until,
            **shape,
            "series": series,
            "seen": dict(self._seen),
        }


def _number(name: str, step: _Step, start: float) -> float | None:
    if name in RATES:
        known_s = step.until - start
        return round(step.sums[name] / known_s, 3) if step.now and known_s > 0 else None
    if name in NOW:
        newest = max(
            (at for at, _ in step.now.values()), default=0.0
        )  # gateways that ended within the step count no more
        now = [one[name] for at, one in step.now.values() if at > newest - INTERVAL_S_MAX]
        return sum(now) if now else None
    if name in MOST:
        return step.most.get(name)
    return step.counts.get(name)


class PeerBacklogs:
    """Events that waited for each peer, from the events added so far."""

    def __init__(self) -> None:
        self._told: deque[tuple[float, str, int]] = deque(maxlen=DELIVERIES_MAX)

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an administrative event; others than those of deliveries are ignored."""
        if event["type"] == PEER_DELIVERY:
            at = datetime.fromisoformat(event["time"]).timestamp()
            self._told.append((at, event["data"]["peer"], event["data"]["backlog"]))

    def document(self, peer: str, resolution: Resolution, now: float) -> dict[str, Any]:
        """Return the backlog of a peer in a range up to `now`, Unix seconds, in the form of LoadHistory.document. It holds from one
        event to the next; before the first one it is not known.
        """
        step_s, size = resolution
        last = int(now // step_s)
        values: dict[int, int] = {}
        for at, name, backlog in self._told:
            if name == peer:
                values[min(last, max(last - size + 1, int(at // step_s)))] = backlog
        first = min(values, default=last + 1)
        series: list[int] = []
        for number in range(first, last + 1):
            series.append(values.get(number, series[-1] if series else 0))
        shape = {"step_s": step_s, "steps": size, "seen": {}}
        return {"start": first * step_s, "until": now, **shape, "series": {BACKLOG: series} if series else {}}


class LoadHistories:
    """All ranges, filled from the events read so far: the log is read once for all of them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._epoch, self._next = "", 1
        self._of = {name: LoadHistory(resolution) for name, resolution in RANGES.items()}
        self._backlogs = PeerBacklogs()

    def read(self, name: str, peer: str = "") -> dict[str, Any]:
        """Return the document of a range after reading new events: LoadHistory's, or with `peer` that of its backlog. Raises
        redis.RedisError.
        """
        with self._lock:
            for _ in range(RUNS_MAX):
                if not self._advance():
                    break
            if peer:
                return self._backlogs.document(peer, RANGES[name], time())
            return self._of[name].document()

    def _advance(self) -> bool:
        """Read one run; whether there was any."""
        try:
            run = control.read(DOMAIN_ADMIN, self._next, RUN_EVENTS, RUN_BYTES)
        except NoLog:
            return False
        if run.state.epoch != self._epoch:
            begun = bool(self._epoch)
            self._epoch, self._next = run.state.epoch, 1
            self._backlogs = PeerBacklogs()
            for history in self._of.values():
                history.forget()
            if begun:
                return True  # it was read from a place of another numbering: again, from the beginning
        for event in relevant(run.events):
            self._backlogs.add(event)
            for history in self._of.values():
                history.add(event)
        self._next = run.first + len(run.events)
        return bool(run.events)


def relevant(events: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield those of the events that a history is made of."""
    for body in events:
        if any(kind in body for kind in _TYPES):
            yield json.loads(body)


_histories = per_process(LoadHistories)


def load_of(name: str, peer: str = "") -> dict[str, Any]:
    """Return the load in a range of RANGES, or with `peer` its backlog, after reading new events."""
    return _histories().read(name, peer)
