"""A domain's part in the overlay: its machines, connected.

Inputs are handled by the machine whose messages and timers they are; events of one machine are inputs of the others. A link that is made begins
a comparison of directories at once, so that a newcomer waits for no timer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eventing.overlay import aggregates, directory, gossip, links, liveness, scores, suspicion
from eventing.overlay.aggregates import Aggregates, LoadMeasured
from eventing.overlay.directory import DomainDirectory, Equivocated
from eventing.overlay.directory_candidates import DirectoryCandidates
from eventing.overlay.gossip import Contribute, Gossip, Withdraw
from eventing.overlay.gossip_partners import MemberPartners
from eventing.overlay.links import DropLink, FindLinks, LinkDown, LinkParameters, Links, LinkUp, RepairDue
from eventing.overlay.liveness import BeatDue, Failed, Liveness
from eventing.overlay.machine import Chance, Down, Fired, Id, MessageReceived, SendMessage
from eventing.overlay.scores import Condemned, Demoted, NotChosen, Noted, QueuesFull, Scores, VectorsShown
from eventing.overlay.suspicion import Suspicion

Outputs = list[Any]
MESSAGES = directory.MESSAGES | links.MESSAGES | liveness.MESSAGES | gossip.MESSAGES | suspicion.MESSAGES
"""All messages between members: what a transport carries."""
_OBSERVATIONS = frozenset({Noted, VectorsShown, QueuesFull})


class OverlayMember:
    """The machines of one domain.

    Args:
        me: its id.
        of: its directory.
        parameters: of its links.
        anchors: approved peers.
        gossips: its gossip objects; None: it takes no part in gossip.
        suspects: its part in suspicion, over two of its gossip objects; None: it takes no part in it.
        scoring: scores of its links; None: no link is scored.
        aggregating: its figures of the whole, over some of its gossip objects; None: it has none and contributes no load.
        zone_of: the zone that a domain is counted in; None: the one that its record states.
    """

    def __init__(
        self,
        me: Id,
        of: DomainDirectory,
        parameters: LinkParameters = links.SUSPICIOUS,
        anchors: frozenset[Id] = frozenset(),
        gossips: Gossip | None = None,
        suspects: Suspicion | None = None,
        scoring: Scores | None = None,
        aggregating: Aggregates | None = None,
        zone_of: Callable[[Id], Any] | None = None,
    ) -> None:
        self.me = me
        self.directory = of
        self.liveness = Liveness()
        self._contacts: tuple[Id, ...] = ()
        self.links = Links(me, parameters, DirectoryCandidates(of), anchors)
        self.gossip = gossips
        self.suspicion = suspects
        self.scores = scoring
        if scoring is not None:
            self.links.unwelcome = scoring.held_back
        self.aggregates = aggregating
        self._begun = False
        self._partners = MemberPartners(me, self.links, of, zone_of)

    def handle(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Take in an input; return messages, timers and events."""
        out: Outputs = []
        kind = type(given)
        if kind is MessageReceived:
            self.liveness.heard(given.peer, now)
            if self.suspicion is not None:
                self.suspicion.heard(given.peer, now)
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
            if message in suspicion.MESSAGES:
                return self._contribute(self.suspicion, given, now, chance)
        elif kind is Fired:
            timer = type(given.timer)
            if timer in directory.TIMERS:
                out += self.directory.handle(given, now, chance, self.links.active)
                return out
            if timer in liveness.TIMERS:
                self.liveness.due(given.timer, now, self._groups(), chance, out)
                if timer is BeatDue and self.suspicion is not None:
                    self._send_evidence(out)
                failed = [event for event in out if type(event) is Failed]
                for event in failed:
                    self._link(Down(event.peer), now, chance, out)
                return out
            if timer in gossip.TIMERS:
                return self._gossip(given, now, chance)
            if timer in suspicion.TIMERS:
                return self._contribute(self.suspicion, given, now, chance)
            if timer in aggregates.TIMERS:
                return self._contribute(self.aggregates, given, now, chance)
            if timer in scores.TIMERS:
                return self._score(given, now, chance)
            if timer is RepairDue and not self.links.active:
                self._join(out)
        elif kind is FindLinks:
            self._contacts = given.contacts
            out += self.directory.begin(now, chance)
            out += self.liveness.begin(now, chance)
            machines = () if self._begun else (self.gossip, self.suspicion, self.scores, self.aggregates)
            self._begun = True
            if self.aggregates is not None:
                self.aggregates.index(now)  # whose zones gossip needs at once
            for machine in machines:
                if machine is not None:
                    out += machine.begin(chance)
            self._join(out)
        elif kind is Contribute or kind is Withdraw:
            return self._gossip(given, now, chance)
        elif kind is LoadMeasured:
            return self._contribute(self.aggregates, given, now, chance)
        elif kind in _OBSERVATIONS:
            return self._score(given, now, chance)
        self._link(given, now, chance, out)
        return out

    def _gossip(self, given: Any, now: float, chance: Chance) -> Outputs:
        return [] if self.gossip is None else self.gossip.handle(given, now, chance, self._partners)

    def suitable(self, region: str, peer: Id) -> bool:
        """Return True if a domain may be chosen in a region: for a replica, an eager link, a graft."""
        suspected = self.suspicion is not None and peer in self.suspicion.suspected
        return not suspected and (self.scores is None or self.scores.allows(NotChosen, region, peer))

    def may_be_eager(self, region: str, peer: Id) -> bool:
        """Return True if a link may be eager in a region (`broadcast.demoted`, where it may not)."""
        return self.suitable(region, peer) and (self.scores is None or self.scores.allows(Demoted, region, peer))

    def _score(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Give an observation to scores; drop the links that they condemn, but those of approved peers."""
        out: Outputs = []
        for effect in [] if self.scores is None else self.scores.handle(given, now, chance):
            out.append(effect)
            if type(effect) is Condemned and effect.peer not in self.links.anchors:
                self._link(DropLink(effect.peer), now, chance, out)
        return out

    def _contribute(self, machine: Suspicion | Aggregates | None, given: Any, now: float, chance: Chance) -> Outputs:
        """Give an input to a machine over gossip objects; its contributions are given to gossip."""
        out: Outputs = []
        for output in [] if machine is None else machine.handle(given, now, chance):
            if type(output) is Contribute or type(output) is Withdraw:
                out += self._gossip(output, now, chance)
            else:
                out.append(output)
        return out

    def _send_evidence(self, out: Outputs) -> None:
        """Send accusations with the beats to peers that are accused, so that they can rebut."""
        for peer in self.links.active:
            evidence = self.suspicion.evidence(peer) if self.suspicion is not None else None
            if evidence is not None:
                out.append(SendMessage(peer, evidence))

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
