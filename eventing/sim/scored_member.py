"""Scored replicas in simulations: what each domain observes of its links feeds its scores, and their effects to its replica.

A domain may have replicas of several RPs, each a region of its own. Messages and timers of a replica are marked with its RP.
"""

from __future__ import annotations

from typing import Any

import msgspec

from eventing.overlay.dissemination_messages import DisseminationParameters, Grafted, GraftedEarly, RunReceived
from eventing.overlay.links import LinkDown, LinkUp
from eventing.overlay.machine import Chance, Down, Fired, Id, MessageReceived, SendMessage, SetTimer
from eventing.overlay.member import OverlayMember
from eventing.overlay.replica_log import ReplicaLog
from eventing.overlay.scores import Deed, Demoted, Noted, QueuesFull, Scores, ScoresDue, VectorsShown
from eventing.sim.broadcasting_member import BroadcastingMember


class OfRp(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message, timer or command of one RP's replica."""

    rp: str
    content: Any


class ScoredMember(BroadcastingMember):
    """A member with a replica of one RP; an honest one scores its links.

    Args:
        rp: name of the RP, which is the region of its scores.
    """

    def __init__(self, member: Any, log: ReplicaLog, parameters: DisseminationParameters, rp: str) -> None:
        super().__init__(member, log, parameters)
        self.rp = rp
        self.outermost = True
        if isinstance(member, ScoredMember):
            member.outermost = False
        self.lies: bool = getattr(member, "lies", False)
        self.overlay: OverlayMember = member if isinstance(member, OverlayMember) else _overlay(member)
        if not self.lies and self.overlay.scores is None:
            self.overlay.scores = Scores()
            self.overlay.links.unwelcome = self.overlay.scores.held_back

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        """Take in an input; return messages, timers and events."""
        kind = type(given)
        if kind is OfRp and given.rp == self.rp:
            return self._replica(given.content, now, chance)
        if kind is MessageReceived and type(given.message) is OfRp and given.message.rp == self.rp:
            self.overlay.liveness.heard(given.peer, now)
            return self._replica(MessageReceived(given.peer, given.message.content), now, chance)
        if kind is Fired and type(given.timer) is OfRp and given.timer.rp == self.rp:
            return self._replica(Fired(given.timer.content), now, chance)
        out: list[Any] = []
        if kind is Fired and type(given.timer) is ScoresDue and not self.lies:
            out += self._give(self._shown(), now, chance)
            if self.outermost:
                out += self._give(QueuesFull(self.full(), len(self.overlay.links.active)), now, chance)
        out += self._give(given, now, chance)
        if kind is Down:
            out += self._replica(given, now, chance)
        return out

    def _give(self, given: Any, now: float, chance: Chance) -> list[Any]:
        """Give an input to the member; what becomes of its links and scores concerns the replica."""
        out: list[Any] = list(self.member.handle(given, now, chance))
        for event in out[:]:
            kind = type(event)
            if kind is LinkUp or kind is LinkDown:
                out += self._replica(event, now, chance)
                if kind is LinkUp and not self.lies and not self.overlay.may_be_eager(self.rp, event.peer):
                    self.replica.demote(event.peer)
            elif kind is Demoted and event.region == self.rp:
                self.replica.demote(event.peer)
        return out

    def _replica(self, given: Any, now: float, chance: Chance) -> list[Any]:
        out: list[Any] = []
        noted: list[Noted] = []
        for output in self.replica.handle(given, now, chance):
            kind = type(output)
            if kind is SendMessage:
                out.append(SendMessage(output.peer, OfRp(self.rp, output.message)))
            elif kind is SetTimer:
                out.append(SetTimer(OfRp(self.rp, output.timer), output.after_s))
            else:
                out.append(output)
                deed = _deed(output)
                if deed is not None:
                    noted.append(Noted(self.rp, *deed))
        for one in noted if not self.lies else ():
            out += self._give(one, now, chance)
        return out

    def _shown(self) -> VectorsShown:
        """Vectors of the links, as their peers state them; eager ones apart."""
        ours = self.replica.log.vector
        theirs: dict[Id, dict[str, int]] = {}
        others: dict[Id, dict[str, int]] = {}
        for peer, one in self.replica.peers.items():
            if one.link.met:
                lazy = bool(ours) and ours.keys() <= one.link.tree.lazy
                (others if lazy else theirs)[peer] = dict(one.link.theirs)
        return VectorsShown(self.rp, dict(ours), theirs, others)

    def full(self) -> tuple[tuple[str, Id], ...]:
        """The links on which something waits, of this RP and of those of the replicas within."""
        inner = self.member.full() if isinstance(self.member, ScoredMember) else ()
        return (*inner, *((self.rp, peer) for peer in self.replica.unanswered()))


def _deed(output: Any) -> tuple[Id, Deed] | None:
    """Return what a peer did, and which peer, where an output of a replica states it."""
    kind = type(output)
    if kind is RunReceived and output.new:
        return output.run.path[-1], Deed.FIRST
    if kind is GraftedEarly:
        return output.peer, Deed.FLAPPING
    if kind is Grafted and output.again:
        return output.peer, Deed.BROKEN_PROMISE
    if kind is Grafted and output.eager:
        return output.peer, Deed.SILENT
    return None


def _overlay(member: Any) -> OverlayMember:
    found = member.overlay if isinstance(member, ScoredMember) else member.member
    return found if isinstance(found, OverlayMember) else _overlay(found)
