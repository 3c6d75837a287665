"""History of an RP's administrative RP: load of the last hour, and administrative events, newest first.

A page requests the history once and then adds live events. An administrative log of an RP holds 2,000 events and 1 MiB
at most (eventing/outbox/administrative_events.py), so it is read as a whole, in a few milliseconds, and not cached.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from eventing.core.ids import admin_id
from eventing.log import control
from eventing.log.scripts import NoLog
from eventing.outbox.administrative_events import (
    HISTORY_TRIMMED,
    LOAD_SAMPLED,
    REPLICA_PROGRESSED,
    SUBSCRIPTION_LAGGED,
)
from portal.console.load_history import RANGES, RUN_BYTES, RUN_EVENTS, LoadHistory

EVENTS_TOLD = 300
"""Number of latest events shown; older ones are in the audit."""

RUNS_MAX = 8
"""Reads: more than the whole history takes."""

RETENTION_TOLD = 100
"""Number of latest reports of retention shown besides, so that they leave room for what people did."""

_SAMPLES = (REPLICA_PROGRESSED, SUBSCRIPTION_LAGGED)


def rp_history(rp: str, range_name: str) -> dict[str, Any]:
    """Return {"load": as in LoadHistory.document, "events": [{"offset", "event"}, ...] the newest first}, samples not among
    them.

    Args:
        rp: id of the RP.
        range_name: of RANGES.

    Raises redis.RedisError.
    """
    load = LoadHistory(RANGES[range_name])
    told: deque[dict[str, Any]] = deque(maxlen=EVENTS_TOLD)
    retention: deque[dict[str, Any]] = deque(maxlen=RETENTION_TOLD)
    start = 1
    for _ in range(RUNS_MAX):
        try:
            run = control.read(admin_id(rp), start, RUN_EVENTS, RUN_BYTES)
        except NoLog:
            break
        for offset, body in enumerate(run.events, run.first):
            event = json.loads(body)
            _take(event, offset, load, retention if _is_retention(event) else told)
        start = run.first + len(run.events)
        if not run.events:
            break
    newest_first = sorted((*told, *retention), key=lambda one: -one["offset"])
    return {"load": load.document(), "events": newest_first}


def _is_retention(event: dict[str, Any]) -> bool:
    """Return whether an event reports what the history's bounds removed; what somebody trimmed is an act."""
    return event["type"] == HISTORY_TRIMMED and "by" not in event["data"]


def _take(event: dict[str, Any], offset: int, load: LoadHistory, told: deque[dict[str, Any]]) -> None:
    if event["type"] == LOAD_SAMPLED:
        load.add({**event, "data": {"sessions": 0, "refused": 0, **event["data"]}})  # what samples of an RP lack
    elif event["type"] not in _SAMPLES:
        told.append({"offset": offset, "event": event})
