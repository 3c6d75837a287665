"""Log of a replica in memory, for simulations: the runs of each feed, without their bytes.

The live log is in Redis (eventing/log). Both are read and appended to by the decisions of exchange.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from eventing.overlay import exchange
from eventing.overlay.machine import Id


class FeedRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A run as sent.

    Attributes:
        feed: key of its feed.
        origin: domain that published it.
        events: the last ones of `first` to `last`; the sender no longer holds the `withheld` ones before them.
        path: domains that it passed through, from its origin to its sender; of a run that is stored, as on arrival.
    """

    feed: str
    origin: Id
    first: int
    last: int
    withheld: int
    events: tuple[Any, ...]
    path: tuple[Id, ...]


class HeldFeed:
    """One feed at one replica: its runs, the last sequence held, and the sequences that were given up."""

    __slots__ = ("held", "origin", "runs", "skipped")

    def __init__(self, origin: Id) -> None:
        self.origin = origin
        self.runs: list[FeedRun] = []
        self.held = 0
        self.skipped: tuple[int, ...] = ()

    @property
    def events(self) -> dict[int, Any]:
        """Return the events held, by sequence."""
        return {
            run.first + run.withheld + at: event
            for run in self.runs
            for at, event in enumerate(run.events)
            if run.first + run.withheld + at <= self.held
        }


class ReplicaLog:
    """The feeds of one replica.

    Args:
        me: its domain.
        own: key of the feed that this domain publishes.
        run_events_max: events of one run.

    Attributes:
        vector: the own version vector; changed in place.
        low_water_marks: by feed, the oldest sequence that its origin keeps.
    """

    def __init__(self, me: Id, own: str, *, run_events_max: int = 1) -> None:
        self.me = me
        self.own = own
        self.feeds: dict[str, HeldFeed] = {}
        self.vector: dict[str, int] = {}
        self.low_water_marks: dict[str, int] = {}
        self._run_events_max = run_events_max
        self._sealed = 0

    def publish(self, event: Any) -> int:
        """Append an event of the own feed to its last run, or to a new one if that was sent already; return its sequence."""
        mine = self.feeds.get(self.own)
        if mine is None:
            mine = self.feeds[self.own] = HeldFeed(self.me)
        last = mine.runs[-1] if mine.runs else None
        mine.held += 1
        if last is not None and last.first > self._sealed and len(last.events) < self._run_events_max:
            events = (*last.events, event)
            mine.runs[-1] = FeedRun(self.own, self.me, last.first, mine.held, last.withheld, events, ())
        else:
            mine.runs.append(FeedRun(self.own, self.me, mine.held, mine.held, 0, (event,), ()))
        self.vector[self.own] = mine.held
        return mine.held

    def trim(self, keep: int) -> None:
        """Keep the last `keep` events of each feed."""
        for key, one in self.feeds.items():
            oldest = one.held - keep + 1
            one.runs = [_trimmed(run, oldest) for run in one.runs if run.last >= oldest]
            if key == self.own and oldest > 1:
                self.low_water_marks[key] = max(self.low_water_marks.get(key, 0), oldest)

    def runs_after(
        self, vector: Mapping[str, int], within: Mapping[str, int], events_max: int
    ) -> tuple[tuple[FeedRun, ...], dict[str, int]]:
        """Return the runs that a holder of `vector` lacks, and up to which sequence of each feed none can be sent.

        Args:
            within: the own vector of the request that carries them.
            events_max: events in all; a single run may exceed it.
        """
        lacking = [key for key, one in self.feeds.items() if one.held > vector.get(key, 0)]
        if len(lacking) > 1:
            lacking.sort()
        found: list[FeedRun] = []
        stuck: dict[str, int] = {}
        count = 0
        for key in lacking:
            one, held, upto = self.feeds[key], vector.get(key, 0), within.get(key, 0)
            begin = len(one.runs)
            while begin and one.runs[begin - 1].last > held:
                begin -= 1
            for run in one.runs[begin:]:
                if run.last > upto:
                    break
                path = exchange.onward(run.path, self.me)
                if path is None or not run.events:
                    stuck[key] = run.last
                    continue
                count += len(run.events)
                if count > events_max and found:
                    return tuple(found), stuck
                if key == self.own:
                    self._sealed = max(self._sealed, run.last)
                found.append(FeedRun(key, run.origin, run.first, run.last, run.withheld, run.events, tuple(path)))
            if begin == len(one.runs) and held < min(one.held, upto):
                stuck[key] = min(one.held, upto)
        return tuple(found), stuck

    def append(self, run: FeedRun, gap_to: int) -> bool:
        """Append a run that ends behind what is held; return whether it is next, after the sequences given up to `gap_to`."""
        one = self.feeds.get(run.feed)
        if one is None:
            one = self.feeds[run.feed] = HeldFeed(run.origin)
        begin = run.first + run.withheld
        if begin > max(one.held, gap_to) + 1:
            return False
        if begin > one.held + 1:
            one.skipped += tuple(range(one.held + 1, begin))
        one.runs.append(run)
        one.held = self.vector[run.feed] = run.last
        return True

    def run_of(self, feed_key: str, sequence: int) -> FeedRun | None:
        """Return the stored run that an event is in; None if it is not kept."""
        one = self.feeds.get(feed_key)
        for run in reversed(one.runs if one is not None else ()):
            if run.first <= sequence <= run.last:
                return run
        return None


def _trimmed(run: FeedRun, oldest: int) -> FeedRun:
    gone = oldest - (run.first + run.withheld)
    if gone <= 0:
        return run
    return FeedRun(run.feed, run.origin, run.first, run.last, run.withheld + gone, run.events[gone:], run.path)
