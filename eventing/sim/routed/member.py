"""A domain of a rendezvous point with a target reliability: it measures its links, states them, plans, and forwards runs on its planned links.

    turn: probe the links, state the row, decide -> run: acknowledge it, forward it on the chosen links, once -> no acknowledgement
    within ANSWER_S: the link lost it

Nothing is repaired: what is measured is the first sending.
"""

from __future__ import annotations

from typing import Any

import msgspec

from eventing.overlay.link_rows import MeasuredLink
from eventing.overlay.machine import Chance, Fired, MessageReceived, SendMessage, SetTimer
from eventing.replication.rules.known_routes import LinkTrials, known_routes, measured_link
from eventing.replication.rules.route_decisions import RouteDecision, routes_decide

TURN_S = 5.0
ROW_TURNS = 3
"""Turns between two statements of the row (overlay/link_rows.py: change_s), and between two decisions."""
PUBLISH_S = 20.0
ANSWER_S = 3.0
TARGET = 0.95
ORIGIN = 0


class Turn(msgspec.Struct, frozen=True, gc=False):
    """Timer: probe, state, decide."""


class PublishTimer(msgspec.Struct, frozen=True, gc=False):
    """Timer of the origin."""


class AnswerDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: what was sent to a link is lost unless it was answered."""

    peer: int
    number: int
    run: bool


class ProbeSent(msgspec.Struct, frozen=True, gc=False):
    """Probe of a link."""

    number: int


class RunSent(msgspec.Struct, frozen=True, gc=False):
    """Run of the origin's feed."""

    number: int


class Answer(msgspec.Struct, frozen=True, gc=False):
    """Answer to a probe, or acknowledgement of a run."""

    number: int
    run: bool


class RowStated(msgspec.Struct, frozen=True, gc=False):
    """Links as a domain measures them, as by gossip."""

    links: tuple[MeasuredLink, ...]


class RunHeld(msgspec.Struct, frozen=True, gc=False):
    """Observation: a domain holds a run."""

    number: int


class RoutedDomain:
    """One domain.

    Args:
        links: domains that it has links with.
        domains: number of all.

    Attributes:
        drops: share of the runs that it drops without an acknowledgement, while it answers all probes.
        decision: in force; None before the first.
    """

    def __init__(self, me: int, links: tuple[int, ...], domains: int) -> None:
        self.me = me
        self.drops = 0.0
        self.decision: RouteDecision | None = None
        self._links = links
        self._domains = domains
        self._counts = {peer: [0, 0, 0, 0] for peer in links}
        self._rows: dict[str, list[MeasuredLink]] = {}
        self._due: dict[AnswerDue, None] = {}
        self._held = 0
        self._turns = 0
        self._number = 0

    @property
    def doubted(self) -> int:
        """Number of own links of which only events are believed."""
        return sum(1 for one in self._counts.values() if LinkTrials(*one).probes_doubted)

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        """Take in an input."""
        match given:
            case Fired(Turn()):
                return [SetTimer(Turn(), TURN_S * (0.9 + 0.2 * chance.random())), *self._turn(now)]
            case Fired(PublishTimer()):
                return [SetTimer(PublishTimer(), PUBLISH_S), *self._hold(self._held + 1, ORIGIN)]
            case Fired(AnswerDue(peer, run=run)) if self._due.pop(given.timer, self) is None:
                self._counts[peer][1 if run else 3] += 1
            case MessageReceived(peer, ProbeSent(number)):
                return [SendMessage(peer, Answer(number, False))]
            case MessageReceived(peer, Answer(number, run)):
                if self._due.pop(AnswerDue(int(str(peer)), number, run), self) is None:
                    self._counts[int(str(peer))][0 if run else 2] += 1
            case MessageReceived(peer, RunSent(number)) if chance.random() >= self.drops:
                return [SendMessage(peer, Answer(number, True)), *self._hold(number, int(str(peer)))]
            case MessageReceived(peer, RowStated(links)):
                self._rows[_name(int(str(peer)))] = list(links)
        return []

    def _turn(self, now: float) -> list[Any]:
        self._number += 1
        self._turns += 1
        out: list[Any] = []
        for peer in self._links:
            out += self._send(peer, ProbeSent(self._number), AnswerDue(peer, self._number, False))
        own = [measured_link(_name(peer), LinkTrials(*map(float, of)), 0.0, 0.0) for peer, of in self._counts.items()]
        self._rows[_name(self.me)] = own
        if self._turns % ROW_TURNS == 0:
            others = [one for one in range(self._domains) if one != self.me]
            out += [SendMessage(one, RowStated(tuple(own))) for one in others]
            self._decide(now)
        return out

    def _decide(self, now: float) -> None:
        participants = [_name(one) for one in range(self._domains)]
        self.decision = routes_decide(
            known_routes(participants, self._rows, {}),
            participants=participants,
            origins=[_name(ORIGIN)],
            target=TARGET,
            before=self.decision,
            now=now,
        )

    def _hold(self, number: int, sender: int) -> list[Any]:
        if number <= self._held:
            return []
        self._held = number
        out: list[Any] = [RunHeld(number)]
        for peer in self._eager():
            if peer != sender:
                out += self._send(peer, RunSent(number), AnswerDue(peer, number, True))
        return out

    def _eager(self) -> tuple[int, ...]:
        """Return the links that runs are sent on: those of the plan; without one, all."""
        chosen = None if self.decision is None else self.decision.chosen.get(_name(ORIGIN))
        if not chosen:
            return self._links
        ends = dict.fromkeys(chosen)
        mine = _name(self.me)
        return tuple(one for one in self._links if (min(mine, _name(one)), max(mine, _name(one))) in ends)

    def _send(self, peer: int, message: Any, due: AnswerDue) -> list[Any]:
        self._due[due] = None
        return [SendMessage(peer, message), SetTimer(due, ANSWER_S)]


def _name(domain: int) -> str:
    return f"d{domain:03}"
