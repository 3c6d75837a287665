"""The shape of a liar that misbehaves as a replica: an honest member of the overlay whose messages about events are changed.

It stands around the replicas that a `broadcasts` measurement gives the domain, so those must be scored ones (`scores = true`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eventing.overlay.dissemination_messages import LinkAnswer, LinkRequest
from eventing.overlay.machine import Chance, Id, MessageReceived, SendMessage
from eventing.sim.context import SimulationContext
from eventing.sim.liars.lying_member import Coalition, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole
from eventing.sim.scored_member import OfRp, ScoredMember


class LyingReplica(LyingMember):
    """A liar around a member with replicas; honest until a family overrides.

    Args:
        member: the outermost of a domain's replicas.
        rp: the RP that it lies about; empty: all.
    """

    def __init__(self, member: ScoredMember, coalition: Coalition, rp: str = "", every_s: float = 1.0) -> None:
        super().__init__(member.overlay, coalition, every_s)
        self.inner: Any = member
        self.rp = rp

    def answer(self, peer: Id, message: Any, now: float, chance: Chance) -> Outputs | None:
        """Change or lose what is received; anything that is no replica's message is taken in as by an honest domain."""
        if type(message) is not OfRp or (self.rp and message.rp != self.rp):
            return None
        content = self.received(peer, message.content, chance)
        if content is None:
            return []
        given = MessageReceived(peer, OfRp(message.rp, content))
        return [one for one in map(self.said, self.pass_on(given, now, chance)) if one is not None]

    def said(self, output: Any) -> Any:
        """Change or withhold what its replicas send."""
        if type(output) is not SendMessage or type(output.message) is not OfRp:
            return output
        of = output.message
        if self.rp and of.rp != self.rp:
            return output
        content = of.content
        if type(content) is LinkRequest:
            content = self.request(output.peer, content)
        elif type(content) is LinkAnswer:
            content = self.answered(output.peer, content)
        return None if content is None else SendMessage(output.peer, OfRp(of.rp, content))

    def replicas(self) -> Iterator[ScoredMember]:
        """The replicas that it lies about."""
        member = self.inner
        while isinstance(member, ScoredMember):
            if self.rp in ("", member.rp):
                yield member
            member = member.member

    def pass_on(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Give an input to the honest machines."""
        out: Outputs = self.inner.handle(given, now, chance)
        return out

    def received(self, peer: Id, message: Any, chance: Chance) -> Any:
        """Change or lose (None) a request or an answer before it is taken in."""
        return message

    def request(self, peer: Id, request: LinkRequest) -> LinkRequest | None:
        """Change or withhold a request."""
        return request

    def answered(self, peer: Id, answer: LinkAnswer) -> LinkAnswer | None:
        """Change or withhold an answer."""
        return answer


class LyingReplicaRole(LyingRole, frozen=True, kw_only=True):
    """A `[[roles]]` table of such liars.

    Attributes:
        rp: the RP that they lie about; absent: all.
    """

    rp: str = ""

    def begin(self, run: SimulationContext, domains: Sequence[int]) -> None:
        """Put liars around the replicas of these domains."""
        self.enlist(run, Coalition(domains, run.scenario.domains), outermost=True)
