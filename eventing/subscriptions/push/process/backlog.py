"""Backlog of the deliverer, for the metrics: events that wait for endpoints, and for how long the oldest has."""

from __future__ import annotations

import time
from collections.abc import Iterable

from eventing.log.reader import LogReader
from eventing.subscriptions.push.process.course import Course
from eventing.telemetry import metrics

RPS_MEASURED_MAX = 500  # bound: RPs whose oldest waiting event is dated at once; those with most waiting events first


async def backlog_measure(courses: Iterable[Course], reader: LogReader) -> None:
    """Set the metrics of the backlog. Raises RedisError, OSError."""
    waiting, first, most = 0, dict[str, int](), dict[str, int]()
    for course in courses:
        if course.window is None or not course.delivers:
            continue
        behind = course.feed.end - 1 - course.window.acknowledged
        if behind > 0:
            rp = course.feed.rp
            waiting += behind
            first[rp] = min(first.get(rp, course.window.acknowledged + 1), course.window.acknowledged + 1)
            most[rp] = max(most.get(rp, 0), behind)
    dated = sorted(most, key=lambda rp: -most[rp])[:RPS_MEASURED_MAX]
    found = await reader.stored_at([(rp, first[rp]) for rp in dated]) if dated else []
    oldest = min((at for at in found if at is not None), default=None)
    metrics.PUSH_BACKLOG.set(waiting)
    metrics.PUSH_BACKLOG_AGE.set(0.0 if oldest is None else max(0.0, time.time() - oldest))
