"""The last day of the overlay, from the samples in the history of `overlay.admin` (membership/services/samples.py).

A page requests it once and then adds live samples. Each process remembers what it has read, so that only the first request reads the
whole day.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from threading import Lock
from typing import Any

from eventing.core.container import per_process
from eventing.core.ids import OVERLAY_ADMIN
from eventing.log import control
from eventing.log.scripts import NoLog
from eventing.outbox.administrative_events import OVERLAY_SAMPLED

POINTS_MAX = 1440
"""A day of samples, one a minute."""
RUN_EVENTS, RUN_BYTES = 1000, 1024**2
RUNS_MAX = 64
"""Reads per request: more than the whole history of overlay.admin (20,000 events, 16 MiB)."""
NOW = ("domains", "live", "chosen", "accepted", "rtt_p50_ms", "rtt_p90_ms", "suspected_count")
RATES = ("events", "copies", "sent")
_TYPE = f'"{OVERLAY_SAMPLED}"'.encode()

Point = dict[str, float | None]


def point_of(figures: Mapping[str, Any]) -> Point:
    """Return a sample as a point of the series: numbers of now, and counts per second; null where nothing was counted."""
    interval_s = figures["interval_s"]
    at = datetime.fromisoformat(figures["at"]).timestamp()
    rates = {name: round(figures[name] / interval_s, 3) if interval_s else None for name in RATES}
    return {"at": at, **{name: figures.get(name) for name in NOW}, **rates}


class OverlayHistory:
    """Points of the last day, filled from the events read so far."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._epoch, self._next = "", 1
        self._points: deque[Point] = deque(maxlen=POINTS_MAX)

    def read(self) -> dict[str, Any]:
        """Return {"at": [seconds since 1970], "series": {name: [number or null for each]}}. Raises redis.RedisError."""
        with self._lock:
            for _ in range(RUNS_MAX):
                if not self._advance():
                    break
            names = (*NOW, *RATES)
            return {
                "at": [point["at"] for point in self._points],
                "series": {name: [point[name] for point in self._points] for name in names},
            }

    def _advance(self) -> bool:
        """Read one run; whether there was any."""
        try:
            run = control.read(OVERLAY_ADMIN, self._next, RUN_EVENTS, RUN_BYTES)
        except NoLog:
            return False
        if run.state.epoch != self._epoch:
            begun = bool(self._epoch)
            self._epoch, self._next = run.state.epoch, 1
            self._points.clear()
            if begun:
                return True  # it was read from a place of another numbering: again, from the beginning
        for body in run.events:
            if _TYPE in body:
                self._points.append(point_of(json.loads(body)["data"]))
        self._next = run.first + len(run.events)
        return bool(run.events)


_history = per_process(OverlayHistory)


def last_day() -> dict[str, Any]:
    """Return the last day after reading new events (OverlayHistory.read)."""
    return _history().read()
