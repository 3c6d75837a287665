"""Sources: times of the last event of a CloudEvents source at an RP, for the silence rules that name one.

An RP's log is read once for all sources of its rules, from where the last read ended. The amount read in a turn is
bounded, and the logs that have waited longest are read first; while part of a log is unread, its sources have no
finding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from eventing.core.decoding import Undecodable, json_reader
from eventing.core.events.positions import LogState
from eventing.log import control
from eventing.log.scripts import NoLog

# bound: events of a log read per turn for `silence` rules with a source; the others are read in the next turns; the rule is not evaluated until then
EVENTS_MAX = 1000
"""Events of a log that are read in a turn, and how far back the first read reaches."""

RP_BYTES_MAX = 4 * 1024 * 1024  # bound: bytes of these events of one log; the others are read in the next turns
# bound: bytes of these events of all logs; the others are read in the next turns; the longest waiting are first
TURN_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of all logs in a turn of a second: the turn must end well before another gateway takes it over
(watcher.TURN_KEPT_S).
"""


class Last(NamedTuple):
    """Time of the last event of a source, Unix seconds; None: there never was one, or it is not known. `sure`: false if
    it may have been earlier.
    """

    at: float | None
    sure: bool


class _Envelope(msgspec.Struct):
    source: str


_source = json_reader(_Envelope)


@dataclass(slots=True)
class _Followed:
    """The position up to which a log was read. `begun`: when the first event that was read was stored, if not `whole`."""

    sources: frozenset[str]
    epoch: str
    next: int
    begun: float | None
    whole: bool
    last_at: dict[str, float] = field(default_factory=dict)
    behind: bool = True
    turn: int = 0

    def last(self, source: str) -> Last:
        """Return the last event of a source. Before the first event that was read nothing is known: the silence is at
        least as long.
        """
        known = source in self.last_at or self.whole
        return Last(self.last_at.get(source, self.begun), known and not self.behind)


class SourceMeasurements:
    """The reads of one gateway while it leads. Synchronous."""

    def __init__(self) -> None:
        self._followed: dict[str, _Followed] = {}
        self._turn = 0

    def forget(self, kept: Collection[str]) -> None:
        """Forget all RPs but these."""
        self._followed = {rp: one for rp, one in self._followed.items() if rp in kept}

    def measure(self, wanted: Mapping[str, frozenset[str]]) -> dict[tuple[str, str], Last]:
        """Return the last event of each source, by RP and source. Raises redis.RedisError.

        Args:
            wanted: the sources by RP.
        """
        if not wanted:
            return {}
        self._turn += 1
        rps = list(wanted)
        states = {rp: state for rp, state in zip(rps, control.log_states(rps), strict=True) if state is not None}
        self._begin(wanted, states)
        left, found = TURN_BYTES_MAX, list[tuple[str, str, int]]()
        for rp in sorted(states, key=lambda rp: self._followed[rp].turn):
            read, of_rp = self._read(rp, states[rp], min(RP_BYTES_MAX, left))
            left -= read
            found += of_rp
        for (rp, source, _), (_, at) in zip(
            found, control.stored_at((rp, offset) for rp, _, offset in found), strict=True
        ):
            if at is not None:  # otherwise it was trimmed meanwhile
                self._followed[rp].last_at[source] = at
        return {
            (rp, source): self._followed[rp].last(source) if rp in self._followed else Last(None, True)
            for rp, sources in wanted.items()
            for source in sources
        }

    def _begin(self, wanted: Mapping[str, frozenset[str]], states: Mapping[str, LogState]) -> None:
        """Begin with logs that are new, have a new epoch, or have rules about other sources: from the newest events."""
        firsts: dict[str, int] = {}
        for rp, state in states.items():
            known = self._followed.get(rp)
            if known is None or known.epoch != state.epoch or known.sources != wanted[rp]:
                firsts[rp] = max(state.first, state.next - EVENTS_MAX)
        for rp, begun in control.stored_at(firsts.items()):
            whole = firsts[rp] == 1
            self._followed[rp] = _Followed(wanted[rp], states[rp].epoch, firsts[rp], None if whole else begun, whole)

    def _read(self, rp: str, state: LogState, bytes_max: int) -> tuple[int, list[tuple[str, str, int]]]:
        """Read on in a log; return the number of bytes, and the last offset of each source in them."""
        followed = self._followed[rp]
        first = max(followed.next, state.first)
        followed.behind = first < state.next
        if not followed.behind or bytes_max <= 0:
            return 0, []
        try:
            run = control.read(rp, first, EVENTS_MAX, bytes_max)
        except NoLog:
            return 0, []
        if run.state.epoch != followed.epoch:
            return 0, []  # it begins anew at the next read
        followed.turn, followed.next = self._turn, run.first + len(run.events)
        followed.behind = followed.next < run.state.next
        met: dict[str, int] = {}
        for offset in range(followed.next - 1, run.first - 1, -1):
            source = _of(run.events[offset - run.first])
            if source in followed.sources and source not in met:
                met[source] = offset
                if len(met) == len(followed.sources):
                    break
        return sum(map(len, run.events)), [(rp, source, offset) for source, offset in met.items()]


def _of(body: bytes) -> str:
    try:
        return _source(body).source
    except Undecodable:
        return ""
