"""Balancing of the famous RP's readers at one domain, by the rules of replication: a wrapper of the home or a volunteer that asks and decides.

Which domains serve the RP it is given (ParticipantsStated), as live domains have it from admissions. Every TICK_S it asks the other participants for their loads while the rules want them, or where what it has is as old as gossip would be, and
decides ANSWERS_S later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from eventing.overlay.load_rows import CAPACITY
from eventing.overlay.machine import Chance, Fired, MessageReceived, SendMessage, SetTimer
from eventing.replication.rules.balancing import (
    SPREAD_S,
    BalancingMove,
    RpReaders,
    balancing_steps,
    wants_loads,
)
from eventing.replication.rules.ranking import ReplicaServer
from eventing.replication.rules.reader_moves import BY_BALANCING, ReaderMove
from eventing.sim.placement.messages import FAMOUS, HomeLoad, ServedLoad
from eventing.sim.placement.population import CLASS

TICK_S = 3.0
"""Period of the task (workers/schedule.py)."""
ANSWERS_S = 1.0
FRESH_S = 2.0
GOSSIP_S = 60.0
"""Age after which gossip would have brought another load."""
READERS_MAX = CAPACITY[CLASS].sessions


class LoadQuestion(msgspec.Struct, frozen=True, gc=False):
    """Question of a domain that balances for the present readers of another."""


class LoadReply(msgspec.Struct, frozen=True, gc=False):
    """Answer to a question for the readers."""

    sessions: int


class ParticipantsStated(msgspec.Struct, frozen=True, gc=False):
    """Input: the domains that serve the RP."""

    domains: tuple[int, ...]


class BalanceTick(msgspec.Struct, frozen=True, gc=False):
    """Timer: ask for loads."""


class BalanceDecision(msgspec.Struct, frozen=True, gc=False):
    """Timer: decide by the answers."""


class ReadersMove(msgspec.Struct, frozen=True, gc=False):
    """Observation: a domain moves readers."""

    move: ReaderMove


class BalancedDomain:
    """One domain.

    Args:
        inner: the home or volunteer, which is given everything else.
    """

    def __init__(self, me: int, inner: Any) -> None:
        self.me = me
        self._inner = inner
        self._sessions = 0
        self._participants: Sequence[int] = ()
        self._known: dict[int, tuple[float, int]] = {}
        self._before: BalancingMove | None = None
        self._steps = 0
        self._ticking = False

    def handle(self, given: Any, now: float, chance: Chance) -> Any:
        """Take in an input."""
        match given:
            case HomeLoad(_, pressure):
                self._sessions = round(pressure * READERS_MAX)
            case ServedLoad(sessions):
                self._sessions = sessions
            case Fired(BalanceTick()) if self.me not in self._participants:
                self._ticking = False
                return []
            case Fired(BalanceTick()):
                return [*self._asks(now), SetTimer(BalanceDecision(), ANSWERS_S), SetTimer(BalanceTick(), TICK_S)]
            case Fired(BalanceDecision()):
                return self._decide(now)
            case MessageReceived(peer, LoadQuestion()):
                return [SendMessage(peer, LoadReply(min(self._sessions, READERS_MAX)))]
            case MessageReceived(peer, LoadReply(sessions)):
                self._known[int(str(peer))] = (now, sessions)
                return []
            case ParticipantsStated(domains):
                return self._take_participants(domains)
        return self._inner.handle(given, now, chance)

    def _take_participants(self, domains: Sequence[int]) -> list[Any]:
        self._participants = domains
        self._known = {domain: known for domain, known in self._known.items() if domain in domains}
        if self._ticking or self.me not in domains or len(domains) < 2:
            return []
        self._ticking = True
        return [SetTimer(BalanceTick(), TICK_S)]

    def _asks(self, now: float) -> list[Any]:
        old = any(now - self._known.get(one, (-GOSSIP_S, 0))[0] >= GOSSIP_S for one in self._others())
        if not old and not wants_loads(self._servers(now), _name(self.me), self._before):
            return []
        return [SendMessage(one, LoadQuestion()) for one in self._others()]

    def _decide(self, now: float) -> list[Any]:
        if self._before is not None and self._before.until <= now:
            self._before = None
        rp = RpReaders(FAMOUS, self._sessions, self._servers(now))
        if self.me not in self._participants or not rp.readers:
            return []
        step = balancing_steps([rp], _name(self.me), {FAMOUS: self._before} if self._before else {}, now).get(FAMOUS)
        if step is None:
            return []
        self._steps += 1
        self._before = BalancingMove(now, step.until, step.readers)
        return [
            ReadersMove(
                ReaderMove(
                    id=f"{self.me}-{self._steps}",
                    rp=FAMOUS,
                    share=step.share,
                    to=(),
                    until=step.until,
                    spread_s=SPREAD_S,
                    reason="",
                    new_share=step.new_share,
                    rooms=step.rooms,
                    began=now,
                    by=BY_BALANCING,
                )
            )
        ]

    def _others(self) -> list[int]:
        return [one for one in self._participants if one != self.me]

    def _servers(self, now: float) -> list[ReplicaServer]:
        servers = []
        for one in self._participants:
            name = _name(one)
            if one == self.me:
                servers.append(ReplicaServer(name, name, READERS_MAX, self._sessions, fresh=True))
            else:
                at, sessions = self._known.get(one, (None, None))
                fresh = at is not None and now - at < FRESH_S
                servers.append(ReplicaServer(name, name, READERS_MAX, sessions, fresh=fresh))
        return servers


def _name(domain: int) -> str:
    return f"d{domain}"
