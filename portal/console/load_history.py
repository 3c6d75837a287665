"""The last hour of the domain's load, from the samples in domain.admin's history, in steps of ten seconds.

A page requests it once and then adds live samples (portal/web/load_series.js sums them in the same way). Each process
remembers what it has read, so that only the first request reads the whole hour.

A sample has the counts of one gateway in an interval. Its counts are spread over the steps that the interval touches;
the rate of a step is what all gateways did in it, by the part of it that is known. Numbers of now (sessions) hold for
those steps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any

from eventing.core.container import per_process
from eventing.core.ids import DOMAIN_ADMIN
from eventing.log import control
from eventing.log.scripts import NoLog
from eventing.outbox.administrative_events import LOAD_SAMPLED, PEER_DELIVERY, PEER_REMOVED

STEP_S = 10
STEPS = 360
RATES = ("events_in", "bytes_in", "deliveries", "bytes_out", "publishes", "refused")
NOW = ("sessions", "readings")
COUNTS = ("rps", "subscriptions", "reserved_bytes")
BACKLOG = "backlog"
INTERVAL_S_MAX = 60.0
"""Seconds that a sample may cover; samples cover 1 or 10 s."""

RUN_EVENTS, RUN_BYTES = 1000, 1024**2
RUNS_MAX = 64
"""Reads per question: more than the whole history of domain.admin (20,000 events, 16 MiB)."""

GATEWAYS_MAX = 1000
"""Gateway processes remembered; each start of one has another id."""

_TYPES = tuple(f'"{kind}"'.encode() for kind in (LOAD_SAMPLED, PEER_DELIVERY, PEER_REMOVED))


@dataclass(slots=True)
class _Step:
    """Data of ten seconds: `sums` of counts up to `until` (seconds since 1970), per gateway the numbers of now."""

    until: float
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(RATES, 0.0))
    now: dict[str, Mapping[str, float]] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)


class LoadHistory:
    """Steps of the last hour, filled from the events read so far."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._forget("")

    def _forget(self, epoch: str) -> None:
        self._epoch, self._next = epoch, 1
        self._steps: dict[int, _Step] = {}
        self._seen: dict[str, float] = {}
        self._backlogs: dict[str, int] = {}

    def read(self) -> dict[str, Any]:
        """Return {"start": of the first step, seconds since 1970; "until": end of the data in the last one; "step_s";
        "series": {name: [number or null for each step]}; "seen": {gateway: end of its newest sample}}.
        """
        with self._lock:
            for _ in range(RUNS_MAX):
                if not self._advance():
                    break
            return self.document()

    def _advance(self) -> bool:
        """Read one run; whether there was any."""
        try:
            run = control.read(DOMAIN_ADMIN, self._next, RUN_EVENTS, RUN_BYTES)
        except NoLog:
            return False
        if run.state.epoch != self._epoch:
            begun = bool(self._epoch)
            self._forget(run.state.epoch)
            if begun:
                return True  # it was read from a place of another numbering: again, from the beginning
        for body in run.events:
            if any(kind in body for kind in _TYPES):
                self.add(json.loads(body))
        self._next = run.first + len(run.events)
        return bool(run.events)

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
        self._step(int(at // STEP_S), at).counts[BACKLOG] = sum(self._backlogs.values())

    def _sample(self, data: Mapping[str, Any]) -> None:
        end = datetime.fromisoformat(data["at"]).timestamp()
        interval = min(max(float(data["interval_s"]), 1e-3), INTERVAL_S_MAX)
        begin = end - interval
        if self._steps and end < (max(self._steps) - STEPS) * STEP_S:
            self._steps.clear()  # the clock was set back: what was after it never was
        self._seen.pop(data["gateway"], None)
        self._seen[data["gateway"]] = end
        while len(self._seen) > GATEWAYS_MAX:
            del self._seen[next(iter(self._seen))]
        for number in range(int(begin // STEP_S), int(end // STEP_S) + 1):
            start = number * STEP_S
            covered = min(end, start + STEP_S) - max(begin, start)
            if covered <= 0:
                continue
            step = self._step(number, min(end, start + STEP_S))
            for name in RATES:
                step.sums[name] += data[name] * covered / interval
            step.now[data["gateway"]] = {name: data[name] for name in NOW}
            for name in COUNTS:
                if name in data.get("counts", {}):
                    step.counts[name] = data["counts"][name]
            step.counts[BACKLOG] = sum(self._backlogs.values())

    def _step(self, number: int, until: float) -> _Step:
        step = self._steps.get(number)
        if step is None:
            step = self._steps[number] = _Step(until)
            newest = max(self._steps)
            for old in [one for one in self._steps if one <= newest - STEPS]:
                del self._steps[old]
        step.until = max(step.until, until)
        return step

    def document(self) -> dict[str, Any]:
        """Return the document of `read` for the events added so far."""
        if not self._steps:
            return {"start": 0, "until": 0, "step_s": STEP_S, "series": {}, "seen": {}}
        first, last = min(self._steps), max(self._steps)
        steps = [self._steps.get(number) for number in range(first, last + 1)]
        series = {
            name: [
                None if step is None else _number(name, step, (first + index) * STEP_S)
                for index, step in enumerate(steps)
            ]
            for name in (*RATES, *NOW, *COUNTS, BACKLOG)
        }
        return {
            "start": first * STEP_S,
            "until": self._steps[last].until,
            "step_s": STEP_S,
            "series": series,
            "seen": dict(self._seen),
        }


def _number(name: str, step: _Step, start: float) -> float | None:
    if name in RATES:
        known_s = step.until - start
        return round(step.sums[name] / known_s, 3) if step.now and known_s > 0 else None
    if name in NOW:
        return sum(one[name] for one in step.now.values()) if step.now else None
    return step.counts.get(name)


_history = per_process(LoadHistory)


def last_hour() -> dict[str, Any]:
    """Return the last hour after reading new events (LoadHistory.read)."""
    return _history().read()
