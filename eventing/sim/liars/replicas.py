"""Replicas that misbehave: silent, boasting, flapping, slow, and inventors of paths. Each answers probes and keeps its links."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from eventing.core.events.vectors import SEQUENCE_MAX
from eventing.overlay.dissemination_messages import LinkAnswer, LinkRequest
from eventing.overlay.machine import Chance, Fired, Id, MessageReceived, SendMessage, SetTimer
from eventing.sim.liars.lying_member import Coalition, Outputs
from eventing.sim.liars.lying_replica import LyingReplica, LyingReplicaRole
from eventing.sim.liars.mutes import LateInput
from eventing.sim.scored_member import OfRp

_replace = msgspec.structs.replace
NOTHING: frozenset[str] = frozenset()


class SilentReplica(LyingReplica):
    """A domain that never sends an event, though it states which it holds; with `mute` it states nothing either, and answers nothing."""

    mute = False

    def request(self, peer: Id, request: LinkRequest) -> LinkRequest | None:
        """Leave the events out."""
        return None if self.mute else _replace(request, runs=())

    def answered(self, peer: Id, answer: LinkAnswer) -> LinkAnswer | None:
        """Prune nothing, so that others rely on it."""
        return None if self.mute else _replace(answer, prune=NOTHING)


class Boaster(SilentReplica):
    """A domain that claims events of which there are none."""

    def request(self, peer: Id, request: LinkRequest) -> LinkRequest | None:
        """Claim more than there is."""
        return _replace(request, runs=(), have=_boasted(request.have))

    def answered(self, peer: Id, answer: LinkAnswer) -> LinkAnswer | None:
        """Claim more than there is."""
        return _replace(answer, have=_boasted(answer.have))


class GraftFlapper(LyingReplica):
    """A domain that prunes everything with each answer and wants everything again with each request."""

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Request everything from all peers."""
        for member in self.replicas():
            have = dict(member.replica.log.vector)
            request = OfRp(member.rp, LinkRequest(0, False, have, (), frozenset(have), {}))
            out.extend(SendMessage(peer, request) for peer in member.replica.peers)

    def request(self, peer: Id, request: LinkRequest) -> LinkRequest | None:
        """Want everything by this link."""
        return _replace(request, graft=frozenset(request.have) | request.graft)

    def answered(self, peer: Id, answer: LinkAnswer) -> LinkAnswer | None:
        """Want nothing by this link."""
        return _replace(answer, graft=NOTHING, prune=frozenset(answer.have))


class PathInventor(LyingReplica):
    """A domain that adds the peers of its peers to the paths of events, so that they are presumed to hold what they do not."""

    def request(self, peer: Id, request: LinkRequest) -> LinkRequest | None:
        """Name domains that an event has not passed through."""
        named = self.named(peer)
        runs = []
        for run in request.runs:
            added = tuple(one for one in named if one not in run.path)[: 30 - len(run.path)]
            runs.append(_replace(run, path=(*run.path[:-1], *added, run.path[-1])) if len(run.path) > 1 else run)
        return _replace(request, runs=tuple(runs))

    def named(self, peer: Id) -> list[Id]:
        """Honest domains near the peer: those that the liar has links with itself."""
        return [one for one in self.links.active if one != peer and one not in self.coalition]


class SlowReplica(LyingReplica):
    """A domain that takes in requests and answers late, so that what is for it waits at others.

    Args:
        late_s: how late.
    """

    def __init__(self, member: Any, coalition: Coalition, rp: str, late_s: float) -> None:
        super().__init__(member, coalition, rp, 60.0)
        self.late_s = late_s

    def handle(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Put messages about events off."""
        if type(given) is MessageReceived and type(given.message) is OfRp and self.coalition.active:
            return [SetTimer(LateInput(given), self.late_s)]
        if type(given) is Fired and type(given.timer) is LateInput:
            return self.pass_on(given.timer.given, now, chance)
        return super().handle(given, now, chance)


def _boasted(have: dict[str, int]) -> dict[str, int]:
    """A vector with ten more events of each feed; of the first one, as many as a number can state."""
    more = {feed: last + 10 for feed, last in have.items()}
    return more | dict.fromkeys(sorted(more)[:1], SEQUENCE_MAX - 1)


class SilentReplicaRole(LyingReplicaRole, frozen=True, kw_only=True):
    """Replicas that send no events.

    Attributes:
        mute: they state nothing and answer nothing either.
    """

    kind: ClassVar[str] = "silent-replica"
    mute: bool = False

    def liar(self, member: Any, coalition: Coalition) -> SilentReplica:
        """Make one."""
        made = SilentReplica(member, coalition, self.rp)
        made.mute = self.mute
        return made


class BoasterRole(LyingReplicaRole, frozen=True, kw_only=True):
    """Replicas that claim events of which there are none."""

    kind: ClassVar[str] = "boaster"

    def liar(self, member: Any, coalition: Coalition) -> Boaster:
        """Make one."""
        return Boaster(member, coalition, self.rp)


class GraftFlapperRole(LyingReplicaRole, frozen=True, kw_only=True):
    """Replicas that prune and graft without end."""

    kind: ClassVar[str] = "graft-flapper"

    def liar(self, member: Any, coalition: Coalition) -> GraftFlapper:
        """Make one."""
        return GraftFlapper(member, coalition, self.rp)


class PathInventorRole(LyingReplicaRole, frozen=True, kw_only=True):
    """Replicas that invent paths."""

    kind: ClassVar[str] = "path-inventor"

    def liar(self, member: Any, coalition: Coalition) -> PathInventor:
        """Make one."""
        return PathInventor(member, coalition, self.rp)


class SlowReplicaRole(LyingReplicaRole, frozen=True, kw_only=True):
    """Replicas that are slow.

    Attributes:
        late_s: seconds by which each is late.
    """

    kind: ClassVar[str] = "slow-replica"
    late_s: float = 7.0

    def liar(self, member: Any, coalition: Coalition) -> SlowReplica:
        """Make one."""
        return SlowReplica(member, coalition, self.rp, self.late_s)
