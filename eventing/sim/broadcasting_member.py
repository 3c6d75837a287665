"""Members of the overlay with a replica of one RP."""

from __future__ import annotations

from typing import Any

from eventing.overlay import dissemination_messages
from eventing.overlay.dissemination import Dissemination
from eventing.overlay.dissemination_messages import DisseminationParameters, Publish
from eventing.overlay.links import LinkDown, LinkUp
from eventing.overlay.machine import Chance, Down, Fired, MessageReceived
from eventing.overlay.member import OverlayMember
from eventing.overlay.replica_log import ReplicaLog


class BroadcastingMember:
    """A member and its replica: links that begin and end are the replica's, and its messages are signs of life."""

    def __init__(self, member: Any, log: ReplicaLog, parameters: DisseminationParameters) -> None:
        self.member = member
        self.replica = Dissemination(log.me, log, parameters)
        self._heard = member.liveness.heard if isinstance(member, OverlayMember) else None

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        """Take in an input; return messages, timers and events."""
        kind = type(given)
        if kind is MessageReceived:
            if type(given.message) in dissemination_messages.MESSAGES:
                if self._heard is not None:
                    self._heard(given.peer, now)
                return self.replica.handle(given, now, chance)
        elif kind is Publish or (kind is Fired and type(given.timer) in dissemination_messages.TIMERS):
            return self.replica.handle(given, now, chance)
        out: list[Any] = self.member.handle(given, now, chance)
        if kind is Down:
            out += self.replica.handle(given, now, chance)
        for change in [one for one in out if type(one) is LinkUp or type(one) is LinkDown]:
            out += self.replica.handle(change, now, chance)
        return out
