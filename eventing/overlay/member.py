"""A domain's part in the overlay: its machines, connected.

Inputs go to the machine whose messages and timers they are; events of one machine are inputs of the others. A link that comes up begins
a comparison of directories at once, so that a newcomer waits for no timer.
"""

from __future__ import annotations

from typing import Any

from eventing.overlay import directory, gossip, links, liveness
from eventing.overlay.directory import DomainDirectory, Equivocated
from eventing.overlay.directory_candidates import DirectoryCandidates
from eventing.overlay.gossip import Contribute, Gossip, Withdraw
from eventing.overlay.gossip_partners import MemberPartners
from eventing.overlay.links import DropLink, FindLinks, LinkDown, LinkParameters, Links, LinkUp, RepairDue
from eventing.overlay.liveness import Failed, Liveness
from eventing.overlay.machine import Chance, Down, Fired, Id, MessageReceived

Outputs = list[Any]
MESSAGES = directory.MESSAGES | links.MESSAGES | liveness.MESSAGES | gossip.MESSAGES
"""All messages between members: what a transport carries."""


class OverlayMember:
    """The machines of one domain.

    Args:
        me: its id.
        of: its directory.
        parameters: of its links.
        anchors: approved peers.
        gossips: its gossip objects; None: it takes no part in gossip.
    """

    def __init__(
        self,
        me: Id,
        of: DomainDirectory,
        parameters: LinkParameters = links.SUSPICIOUS,
        anchors: frozenset[Id] = frozenset(),
        gossips: Gossip | None = None,
    ) -> None:
        self.me = me
        self.directory = of
        self.liveness = Liveness()
        self._contacts: tuple[Id, ...] = ()
        self.links = Links(me, parameters, DirectoryCandidates(of), anchors)
        self.gossip = gossips
        self._partners = MemberPartners(me, self.links, of)

    def handle(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Take in an input; return messages, timers and events."""
        out: Outputs = []
        kind = type(given)
        if kind is MessageReceived:
            self.liveness.heard(given.peer, now)
            message = type(given.message)
            if message in directory.MESSAGES:
                out += self.directory.handle(given, now, chance, self.links.active)
                for proven in [event for event in out if type(event) is Equivocated]:
                    if proven.domain not in self.links.anchors:
                        self._link(DropLink(proven.domain), now, chance, out)
                return out
            if message in liveness.MESSAGES:
                self.liveness.received(given.peer, given.message, now, out)
                return out
            if message in gossip.MESSAGES:
                return self._gossip(given, now, chance)
        elif kind is Fired:
            timer = type(given.timer)
            if timer in directory.TIMERS:
                out += self.directory.handle(given, now, chance, self.links.active)
                return out
            if timer in liveness.TIMERS:
                self.liveness.due(given.timer, now, self._groups(), chance, out)
                failed = [event for event in out if type(event) is Failed]
                for event in failed:
                    self._link(Down(event.peer), now, chance, out)
                return out
            if timer in gossip.TIMERS:
                return self._gossip(given, now, chance)
            if timer is RepairDue and not self.links.active:
                self._join(out)
        elif kind is FindLinks:
            self._contacts = given.contacts
            out += self.directory.begin(now, chance)
            out += self.liveness.begin(now, chance)
            if self.gossip is not None:
                out += self.gossip.begin(chance)
            self._join(out)
        elif kind is Contribute or kind is Withdraw:
            return self._gossip(given, now, chance)
        self._link(given, now, chance, out)
        return out

    def _gossip(self, given: Any, now: float, chance: Chance) -> Outputs:
        return [] if self.gossip is None else self.gossip.handle(given, now, chance, self._partners)

    def _join(self, out: Outputs) -> None:
        """Exchange records with the contacts before any link: a domain is accepted by those that have its record."""
        for contact in self._contacts:
            self.directory.compare(contact, out)

    def _link(self, given: Any, now: float, chance: Chance, out: Outputs) -> None:
        for change in self.links.handle(given, now, chance):
            out.append(change)
            if type(change) is LinkUp:
                self.liveness.up(change.peer, now)
                self.directory.compare(change.peer, out)
            elif type(change) is LinkDown:
                self.liveness.down(change.peer)

    def _groups(self) -> dict[Id, Any]:
        return {peer: link.group for peer, link in self.links.active.items()}
