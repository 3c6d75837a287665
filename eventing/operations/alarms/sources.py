"""Sources: when events of a CloudEvents source were stored last at an RP, for the silence rules that name one.

An RP's log is looked through once for all sources of its rules, from where the last look ended. What a turn reads is
bounded, whoever has waited longest comes first; while something of a log is not read yet, nothing is said of its sources.
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

EVENTS_MAX = 1000
"""Events of a log that are read in a turn, and how far back the first look goes."""

RP_BYTES_MAX = 4 * 1024 * 1024
TURN_BYTES_MAX = 16 * 1024 * 1024
"""Of all logs in a turn of a second: the turn must end well before another gateway takes it over (watcher.TURN_KEPT_S)."""


class Last(NamedTuple):
    """When an event of a source was stored last, Unix seconds; None: none ever was, or nobody knows. `sure`: neither later."""

    at: float | None
    sure: bool


class _Envelope(msgspec.Struct):
    source: str


_source = json_reader(_Envelope)


@dataclass(slots=True)
class _Followed:
    """How far a log was looked through. `begun`: when the first event that was looked at was stored, if not `whole`."""

    sources: frozenset[str]
    epoch: str
    next: int
    begun: float | None
    whole: bool
    last_at: dict[str, float] = field(default_factory=dict)
    behind: bool = True
    turn: int = 0

    def last(self, source: str) -> Last:
        """What is known of a source. Before the first event that was looked at nobody knows: the silence is as long at least."""
        known = source in self.last_at or self.whole
        return Last(self.last_at.get(source, self.begun), known and not self.behind)


class Sources:
    """Of one gateway while it leads. Synchronous."""

    def __init__(self) -> None:
        self._followed: dict[str, _Followed] = {}
        self._turn = 0

    def forget(self, kept: Collection[str]) -> None:
        """Only these RPs are still asked for."""
        self._followed = {rp: one for rp, one in self._followed.items() if rp in kept}

    def look(self, wanted: Mapping[str, frozenset[str]]) -> dict[tuple[str, str], Last]:
        """The last event of each source, by RP and source. Raises redis.RedisError.

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
            if at is not None:  # else it has left the history meanwhile
                self._followed[rp].last_at[source] = at
        return {
            (rp, source): self._followed[rp].last(source) if rp in self._followed else Last(None, True)
            for rp, sources in wanted.items()
            for source in sources
        }

    def _begin(self, wanted: Mapping[str, frozenset[str]], states: Mapping[str, LogState]) -> None:
        """Logs that are new here, begun a new life, or have rules about other sources: from the newest events."""
        firsts: dict[str, int] = {}
        for rp, state in states.items():
            known = self._followed.get(rp)
            if known is None or known.epoch != state.epoch or known.sources != wanted[rp]:
                firsts[rp] = max(state.first, state.next - EVENTS_MAX)
        for rp, begun in control.stored_at(firsts.items()):
            whole = firsts[rp] == 1
            self._followed[rp] = _Followed(wanted[rp], states[rp].epoch, firsts[rp], None if whole else begun, whole)

    def _read(self, rp: str, state: LogState, bytes_max: int) -> tuple[int, list[tuple[str, str, int]]]:
        """Read on at a log: how many bytes that was, and the last offset of each source that was met."""
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
            return 0, []  # it begins anew at the next look
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
