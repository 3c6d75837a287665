"""A domain that takes part in a rendezvous point whose home may be succeeded: the home itself, or an elector.

    tick: state the home to the others, probe it, stand for election if it is silent -> asked: store the vote, then answer
    -> the majority voted: accept oneself as the home, and state it

What is stored (`ElectorStored`) is kept by a process that dies; its votes under way are lost with it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from eventing.overlay import succession
from eventing.overlay.machine import Chance, Down, Fired, MessageReceived, SendMessage, SetTimer
from eventing.overlay.succession import ElectorStanding, SuccessionRules

TICK_S = 0.5
STATE_S = 2.0
"""Seconds between two statements of the home, besides those of a new one."""
PROBE_S = 1.5
"""Seconds after which a probe without an answer is missed."""


class ElectorTick(msgspec.Struct, frozen=True, gc=False):
    """Timer and start of a domain."""


class ProbeEnds(msgspec.Struct, frozen=True, gc=False):
    """Timer: a probe is missed if it was not answered."""

    number: int


class HomeStated(msgspec.Struct, frozen=True, gc=False):
    """Statement of an accepted home."""

    home: int
    term: int


class HomeProbed(msgspec.Struct, frozen=True, gc=False):
    """Probe of the home."""

    number: int


class ProbeAnswered(msgspec.Struct, frozen=True, gc=False):
    """The home's answer."""

    number: int


class VoteAsked(msgspec.Struct, frozen=True, gc=False):
    """Request for a vote in a term, which follows that of the `present` home."""

    term: int
    present: int


class VoteAnswered(msgspec.Struct, frozen=True, gc=False):
    """Answer: the vote, and the highest term that the elector has met."""

    term: int
    met: int
    votes: bool


class HomeAccepted(msgspec.Struct, frozen=True, gc=False):
    """Observation: a domain accepts a home."""

    home: int
    term: int


class ElectorStored(msgspec.Struct):
    """Stored state of a domain.

    Attributes:
        standing: as an elector; None before the first tick.
        home, term: as it accepts them.
    """

    standing: ElectorStanding | None = None
    home: int = 0
    term: int = 0


class ElectorDomain:
    """One domain.

    Args:
        domains: all of them, this one included.
        stored: from before a restart.
    """

    def __init__(self, me: int, rules: SuccessionRules, domains: int, stored: ElectorStored | None = None) -> None:
        self.me = me
        self.stored = ElectorStored() if stored is None else stored
        self._rules = rules
        self._others = [one for one in range(domains) if one != me]
        self._votes: dict[int, dict[int, None]] = {}
        self._probe = 0
        self._answered = 0
        self._stated: float | None = None

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        """Take in an input."""
        now_ms = int(1000 * now)
        if self.stored.standing is None:
            self.stored.standing = succession.newcomer(now_ms)
        match given:
            case Fired(ElectorTick()):
                again = SetTimer(ElectorTick(), TICK_S * (0.9 + 0.2 * chance.random()))
                return [again, *self._state(now), *self._look(now_ms, chance)]
            case Fired(ProbeEnds(number)) if self._answered < number:
                self._standing(succession.home_missed(self._held, now_ms))
            case MessageReceived(peer, HomeProbed(number)):
                return [SendMessage(peer, ProbeAnswered(number))]
            case MessageReceived(peer, ProbeAnswered(number)) if peer == self.stored.home and number > self._answered:
                self._answered = number
                self._standing(succession.home_heard(self._held, now_ms))
            case MessageReceived(_, HomeStated(home, term)):
                return self._accept(home, term, now_ms)
            case MessageReceived(peer, VoteAsked(term, present)):
                return self._vote(int(str(peer)), term, present, now_ms)
            case MessageReceived(peer, VoteAnswered(term, met, votes)):
                return self._answer(int(str(peer)), term, met, votes, now_ms)
            case Down():
                pass  # a probe that is not delivered is missed at its end
        return []

    @property
    def _held(self) -> ElectorStanding:
        return succession.newcomer(0) if self.stored.standing is None else self.stored.standing

    def _standing(self, standing: ElectorStanding) -> None:
        self.stored.standing = standing

    def _state(self, now: float) -> list[Any]:
        if self._stated is not None and 0.0 <= now - self._stated < STATE_S:
            return []
        self._stated = now
        return [SendMessage(other, HomeStated(self.stored.home, self.stored.term)) for other in self._others]

    def _look(self, now_ms: int, chance: Chance) -> list[Any]:
        """Probe the home, and stand for election where it is silent."""
        if self.stored.home == self.me:
            return []
        out: list[Any] = []
        if succession.probe_due(self._rules, self._held, now_ms):
            self._probe += 1
            self._standing(self._held._replace(probed_ms=now_ms))
            out += [SendMessage(self.stored.home, HomeProbed(self._probe)), SetTimer(ProbeEnds(self._probe), PROBE_S)]
        stood = succession.stand(self._rules, self.me, self._held, self.stored.term, now_ms, chance)
        if stood is not None:
            self._standing(stood)
            asked = VoteAsked(stood.term, self.stored.term)
            out += self._vote(self.me, stood.term, self.stored.term, now_ms)
            out += [SendMessage(one, asked) for one in self._others if one in self._rules.electors]
        return out

    def _vote(self, candidate: int, term: int, present: int, now_ms: int) -> list[Any]:
        if self.stored.term != present or self.stored.home == self.me or self.me not in self._rules.electors:
            return []
        payload = f"{candidate} {term}".encode()
        outcome = succession.vote(self._rules, self._held, present=present, term=term, payload=payload, now_ms=now_ms)
        self._standing(outcome.standing)
        if candidate == self.me:
            return self._answer(self.me, term, outcome.standing.term, outcome.votes, now_ms)
        return [SendMessage(candidate, VoteAnswered(term, outcome.standing.term, outcome.votes))]

    def _answer(self, elector: int, term: int, met: int, votes: bool, now_ms: int) -> list[Any]:
        if not votes:
            self._standing(succession.term_met(self._held, met))
            return []
        given = self._votes.setdefault(term, {})
        given[elector] = None
        return self._accept(self.me, term, now_ms) if len(given) >= self._rules.quorum else []

    def _accept(self, home: int, term: int, now_ms: int) -> list[Any]:
        if term <= self.stored.term:
            return []
        self.stored.home, self.stored.term = home, term
        self._standing(succession.term_accepted(self._held, term, now_ms))
        self._votes = {at: given for at, given in self._votes.items() if at > term}
        self._stated = None
        return [HomeAccepted(home, term)]
