"""Arrivals: the share of an RP's events that each linked participant holds within IN_TIME_S, by its own version vectors.

    what is held here is marked, with the time -> IN_TIME_S later, the vectors that links have stated by then are compared with the mark ->
    events between two marks count as arrived, or as late

Vectors are the truth from end to end: they count what a participant holds, by whatever way it got there. An event counts from its arrival
here; events of the participant's own are left out. Marks are in memory: a restart loses IN_TIME_S of measurements.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from eventing.core.container import per_process
from eventing.core.events.vectors import Vector
from eventing.log import watermarks
from eventing.overlay.link_state import holds
from eventing.replication.joining.presenters import own_vectors
from eventing.replication.reliability.feed_origins import feed_origins
from eventing.replication.selectors.forwarding import participations
from eventing.replication.selectors.targets import targets
from eventing.rps.rules.reliability import IN_TIME_S
from eventing.store.rp_routes import arrivals_add

MARK_S = 1.0
"""Seconds between two marks; an event is judged up to so much later than IN_TIME_S."""
LATE_S = 2.5  # bound: seconds after IN_TIME_S until a mark must be judged; later it counts neither way: this process was busy
MARKS_MAX = 16  # bound: marks of an RP that wait; more than IN_TIME_S needs, the oldest is dropped


class ArrivalMark(NamedTuple):
    """The vector held here at a time, in monotonic seconds, and at the mark before."""

    at: float
    before: Vector
    held: Vector


class _Marks:
    """Marks of this process by RP, and the vectors at the last ones."""

    def __init__(self) -> None:
        self.at = float("-inf")
        self.waiting: dict[str, deque[ArrivalMark]] = {}
        self.last: dict[str, dict[str, int]] = {}


_marks = per_process(_Marks)


def arrivals_measure() -> None:
    """Mark what is held at each RP with a target, and count what has arrived of earlier marks. Raises redis.RedisError,
    DatabaseError."""
    marks, now = _marks(), time.monotonic()
    if now - marks.at < MARK_S:
        return
    marks.at = now
    rps = list(targets())
    for gone in [rp for rp in marks.last if rp not in rps]:
        marks.last.pop(gone)
        marks.waiting.pop(gone, None)
    for rp, held in (own_vectors(rps) if rps else {}).items():
        before = marks.last.get(rp)
        marks.last[rp] = held
        if before is not None and held != before:
            marks.waiting.setdefault(rp, deque(maxlen=MARKS_MAX)).append(ArrivalMark(now, before, held))
    due = {rp: some for rp, waiting in marks.waiting.items() if (some := _due(waiting, now))}
    if due:
        _count(due)


def _due(waiting: deque[ArrivalMark], now: float) -> list[ArrivalMark]:
    found: list[ArrivalMark] = []
    while waiting and now - waiting[0].at >= IN_TIME_S:
        mark = waiting.popleft()
        if now - mark.at <= IN_TIME_S + LATE_S:
            found.append(mark)
    return found


def _count(due: Mapping[str, list[ArrivalMark]]) -> None:
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for rp, who in participations(due).items():
        origins = feed_origins(rp)
        for peer in who.links:
            link = watermarks.links_read(peer, [rp])[rp]
            held = {feed: holds(link, feed) for feed in origins}
            arrived = late = 0
            for mark in due[rp]:
                for feed, (first, last) in _between(mark, origins, peer).items():
                    there = min(max(held.get(feed, 0), first), last) - first
                    arrived, late = arrived + there, late + last - first - there
            if arrived or late:
                counts[rp, peer] = (arrived, late)
    if counts:
        arrivals_add(counts)


def _between(mark: ArrivalMark, origins: Mapping[str, str], peer: str) -> dict[str, tuple[int, int]]:
    """Return the sequences after which, and up to which, events of other origins than the peer are counted."""
    return {
        feed: (mark.before.get(feed, 0), last)
        for feed, last in mark.held.items()
        if last > mark.before.get(feed, 0) and origins.get(feed) not in (None, peer)
    }
