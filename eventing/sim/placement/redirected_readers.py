"""Single readers of the famous RP: where each one reads, and how it follows redirects; the model of clients around simulated balancing.

- New readers begin at the home. A domain that moves readers draws them, and those that begin, by the rules of replication; a client that is
  redirected measures the named domains and connects within CLIENT_S, by the rule of docs/federation/moving.md: of those within NEAR_MS of the
  nearest the first, at most HOPS_MAX redirects within MEMORY_S, none to a domain that sent it away in that time.
- Readers of a domain that stops serving find out after NOTICE_S, and go on at any other.
- Clients that move by their own choice are not modelled: loads are the harder part when nobody spreads readers but the domains.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from eventing.overlay.machine import Chance
from eventing.replication.rules.reader_moves import (
    HOPS_MAX,
    ReaderMove,
    is_drawn,
    new_is_drawn,
    new_pause_s,
    pause_s,
    targets_by_room,
)
from eventing.sim.network import ZONE_WEIGHTS, ZONES_MS

NOTICE_S = 40.0
"""Two pings without an answer (docs/federation/moving.md)."""
CLIENT_S = (0.5, 3.0)
"""Seconds in which a client measures what a redirect names, and connects (guess)."""
MEMORY_S = 600.0
NEAR_MS = 15.0
ACCESS_MS = 20.0
"""Most that the way of one reader adds to the time between zones."""


class _Due(NamedTuple):
    """A redirect that its client will have followed."""

    at: float
    number: int
    reader: int
    source: int
    targets: tuple[int, ...]


class _Stranded(NamedTuple):
    began: float
    readers: list[int]


class RedirectedReaders:
    """All readers of one run.

    Args:
        zones: zone of every domain.

    Attributes:
        started: readers that ever began.
        moved: redirects that were followed.
    """

    def __init__(self, zones: bytes, chance: Chance) -> None:
        self.started = 0
        self.moved = 0
        self._zones = zones
        self._chance = chance
        self._at: dict[int, list[int]] = {0: []}
        self._place: dict[int, tuple[int, int]] = {}
        self._zone: dict[int, int] = {}
        self._sent_away: dict[int, list[tuple[float, int]]] = {}
        self._moves: dict[int, ReaderMove] = {}
        self._due: list[_Due] = []
        self._leaving: dict[int, int] = {}  # domains that readers were asked to leave, by reader
        self._numbered = 0
        self._stranded: deque[_Stranded] = deque()
        self._fraction = 0.0

    def counts(self) -> Mapping[int, int]:
        """Return the readers of each domain that serves."""
        return {domain: len(readers) for domain, readers in self._at.items()}

    def leaving(self) -> Counter[int]:
        """Return how many readers of each domain were asked to leave, and are about to."""
        return Counter(
            domain for reader, domain in self._leaving.items() if self._place.get(reader, (-1, 0))[0] == domain
        )

    def serving(self) -> list[int]:
        """Return the domains that serve."""
        return list(self._at)

    def wanted(self, count: float, now: float) -> None:
        """Let readers begin or end until there are so many; stranded ones count."""
        there = len(self._place) + sum(len(one.readers) for one in self._stranded)
        if count >= there:
            self._fraction += count - there
            for _ in range(int(self._fraction)):
                self._begin(now)
            self._fraction -= int(self._fraction)
            return
        self._fraction = 0.0
        ending = there - round(count)
        readers = sorted(self._place)
        for reader in self._chance.sample(readers, min(ending, len(readers))):
            self._end(reader)

    def joined(self, domain: int) -> None:
        """Take notice that a domain serves."""
        self._at.setdefault(domain, [])

    def ended(self, domain: int, now: float) -> None:
        """Have the readers of a domain that ends its replica go on elsewhere."""
        self._elsewhere(self._gone(domain), now)

    def stopped(self, domain: int, now: float) -> None:
        """Strand the readers of a domain that does not answer."""
        self._stranded.append(_Stranded(now, self._gone(domain)))

    def noticed(self, now: float) -> list[tuple[float, int]]:
        """Have stranded readers go on that noticed by now; return for how many seconds each group was stranded, and how many there are."""
        found = []
        while self._stranded and self._stranded[0].began + NOTICE_S <= now:
            began, readers = self._stranded.popleft()
            found.append((now - began, len(readers)))
            self._elsewhere(readers, now)
        return found

    def move(self, domain: int, move: ReaderMove, now: float) -> None:
        """Draw the readers that a domain moves."""
        self._moves[domain] = move
        for reader in self._at.get(domain, ()):
            if is_drawn(move, _key(domain, reader)):
                self._redirect(reader, domain, move, pause_s(move, _key(domain, reader), now), now)

    def turn(self, now: float) -> None:
        """Have clients follow redirects up to now."""
        while self._due and self._due[0].at <= now:
            due = heappop(self._due)
            del self._leaving[due.reader]
            if self._place.get(due.reader, (-1, 0))[0] != due.source or self._hops(due.reader, now) >= HOPS_MAX:
                continue
            away = [domain for at, domain in self._sent_away.get(due.reader, ()) if now - at < MEMORY_S]
            if (
                target := self._chosen(due.reader, [one for one in due.targets if one in self._at and one not in away])
            ) >= 0:
                self._sent_away.setdefault(due.reader, []).append((now, due.source))
                self.moved += 1
                self._leave(due.reader)
                self._arrive(due.reader, target, now)

    def _chosen(self, reader: int, targets: list[int]) -> int:
        delays = [self._delay_ms(reader, one) for one in targets]
        near = [one for one, delay in zip(targets, delays, strict=True) if delay <= min(delays) + NEAR_MS]
        return near[0] if near else -1

    def _delay_ms(self, reader: int, domain: int) -> float:
        return (
            ZONES_MS[self._zone[reader]][self._zones[domain]] + (reader * 7919 + domain * 104729) % 97 / 97 * ACCESS_MS
        )

    def _begin(self, now: float) -> None:
        reader, self.started = self.started, self.started + 1
        drawn = self._chance.random() * sum(ZONE_WEIGHTS)
        zone = 0
        while zone < len(ZONE_WEIGHTS) - 1 and drawn >= ZONE_WEIGHTS[zone]:
            drawn -= ZONE_WEIGHTS[zone]
            zone += 1
        self._zone[reader] = zone
        self._arrive(reader, 0, now)

    def _arrive(self, reader: int, domain: int, now: float) -> None:
        readers = self._at[domain]
        self._place[reader] = domain, len(readers)
        readers.append(reader)
        move = self._moves.get(domain)
        if move is not None and move.until > now and new_is_drawn(move, _key(domain, reader), self._hops(reader, now)):
            self._redirect(reader, domain, move, new_pause_s(move, _key(domain, reader), now), now)

    def _redirect(self, reader: int, domain: int, move: ReaderMove, pause: float, now: float) -> None:
        if self._hops(reader, now) >= HOPS_MAX or reader in self._leaving:
            return
        self._leaving[reader] = domain
        least, most = CLIENT_S
        self._numbered += 1
        at = now + pause + least + (most - least) * self._chance.random()
        targets = tuple(int(name[1:]) for name in targets_by_room(move, _key(domain, reader)))
        heappush(self._due, _Due(at, self._numbered, reader, domain, targets))

    def _hops(self, reader: int, now: float) -> int:
        return sum(now - at < MEMORY_S for at, _ in self._sent_away.get(reader, ()))

    def _leave(self, reader: int) -> None:
        domain, index = self._place.pop(reader)
        readers = self._at[domain]
        last = readers.pop()
        if last != reader:
            readers[index] = last
            self._place[last] = domain, index

    def _end(self, reader: int) -> None:
        self._leave(reader)
        del self._zone[reader]
        self._sent_away.pop(reader, None)

    def _gone(self, domain: int) -> list[int]:
        readers = self._at.pop(domain, [])
        self._moves.pop(domain, None)
        for reader in readers:
            del self._place[reader]
        return readers

    def _elsewhere(self, readers: list[int], now: float) -> None:
        for reader in readers:
            self._arrive(reader, self._chance.choice(self.serving()), now)


def _key(domain: int, reader: int) -> str:
    return f"{domain}-{reader}"
