"""A domain's part in the overlay: its machines, connected.

Inputs are handled by the machine whose messages and timers they are; events of one machine are inputs of the others. A link that is made begins
a comparison of directories at once, so that a newcomer waits for no timer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eventing.overlay import aggregates, directory, gossip, links, liveness, scores, suspicion
from eventing.overlay.aggregates import Aggregates, LoadMeasured
from eventing.overlay.directory import DomainDirectory
from eventing.overlay.directory_candidates import DirectoryCandidates
from eventing.overlay.directory_messages import Equivocated
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
        kind = type(given)
        if kind is MessageReceived:
            self.liveness.heard(given.peer, now)
            if self.suspicion is not None:
                self.suspicion.heard(given.peer, now)
            route = _OF_MESSAGES.get(type(given.message), OverlayMember._give_links)
        elif kind is Fired:
            route = _OF_TIMERS.get(type(given.timer), OverlayMember._give_links)
        else:
            route = _OF_COMMANDS.get(kind, OverlayMember._give_links)
        return route(self, given, now, chance)

    # Inputs, by the machine that they are for

    def _give_directory(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Give an input to the directory; end the links with domains that are convicted by it."""
        out = self.directory.handle(given, now, chance, self.links.active)
        for proven in [event for event in out if type(event) is Equivocated]:
            if proven.domain not in self.links.anchors:
                self._link(DropLink(proven.domain), now, chance, out)
        return out

    def _give_liveness(self, given: Any, now: float, chance: Chance) -> Outputs:
        out: Outputs = []
        self.liveness.received(given.peer, given.message, now, out)
        return out

    def _look_at_links(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Give liveness its timer; end the links that have failed."""
        out: Outputs = []
        self.liveness.due(given.timer, now, self._groups(), chance, out)
        if type(given.timer) is BeatDue:
            self._send_evidence(out)
        for failed in [event for event in out if type(event) is Failed]:
            self._link(Down(failed.peer), now, chance, out)
        return out

    def _give_gossip(self, given: Any, now: float, chance: Chance) -> Outputs:
        return [] if self.gossip is None else self.gossip.handle(given, now, chance, self._partners)

    def _give_suspicion(self, given: Any, now: float, chance: Chance) -> Outputs:
        return self._contribute(self.suspicion, given, now, chance)

    def _give_aggregates(self, given: Any, now: float, chance: Chance) -> Outputs:
        return self._contribute(self.aggregates, given, now, chance)

    def _give_links(self, given: Any, now: float, chance: Chance) -> Outputs:
        out: Outputs = []
        self._link(given, now, chance, out)
        return out

    def _repair(self, given: Any, now: float, chance: Chance) -> Outputs:
        out: Outputs = []
        if not self.links.active:
            self._join(out)
        self._link(given, now, chance, out)
        return out

    def _find_links(self, given: FindLinks, now: float, chance: Chance) -> Outputs:
        """Start all machines, those that started before aside."""
        self._contacts = given.contacts
        out = self.directory.begin(now, chance) + self.liveness.begin(now, chance)
        machines = () if self._begun else (self.gossip, self.suspicion, self.scores, self.aggregates)
        self._begun = True
        if self.aggregates is not None:
            self.aggregates.index(now)  # whose zones gossip needs at once
        for machine in machines:
            if machine is not None:
                out += machine.begin(chance)
        self._join(out)
        self._link(given, now, chance, out)
        return out

    def _score(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Give an observation to scores; drop the links that they condemn, but those of approved peers."""
        out: Outputs = []
        for effect in [] if self.scores is None else self.scores.handle(given, now, chance):
            out.append(effect)
            if type(effect) is Condemned and effect.peer not in self.links.anchors:
                self._link(DropLink(effect.peer), now, chance, out)
        return out

    def suitable(self, region: str, peer: Id) -> bool:
        """Return True if a domain may be chosen in a region: for a replica, an eager link, a graft."""
        suspected = self.suspicion is not None and peer in self.suspicion.suspected
        return not suspected and (self.scores is None or self.scores.allows(NotChosen, region, peer))

    def may_be_eager(self, region: str, peer: Id) -> bool:
        """Return True if a link may be eager in a region (`broadcast.demoted`, where it may not)."""
        return self.suitable(region, peer) and (self.scores is None or self.scores.allows(Demoted, region, peer))

    def _contribute(self, machine: Suspicion | Aggregates | None, given: Any, now: float, chance: Chance) -> Outputs:
        """Give an input to a machine over gossip objects; its contributions are given to gossip."""
        out: Outputs = []
        for output in [] if machine is None else machine.handle(given, now, chance):
            if type(output) is Contribute or type(output) is Withdraw:
                out += self._give_gossip(output, now, chance)
            else:
                out.append(output)
        return out

    def _send_evidence(self, out: Outputs) -> None:
        """Send accusations with the beats to peers that are accused, so that they can rebut."""
        if self.suspicion is None or not self.suspicion.accused:
            return
        for peer in self.links.active:
            evidence = self.suspicion.evidence(peer)
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


Route = Callable[[OverlayMember, Any, float, Chance], Outputs]
_OF_MESSAGES: Mapping[type, Route] = (
    dict.fromkeys(directory.MESSAGES, OverlayMember._give_directory)
    | dict.fromkeys(liveness.MESSAGES, OverlayMember._give_liveness)
    | dict.fromkeys(gossip.MESSAGES, OverlayMember._give_gossip)
    | dict.fromkeys(suspicion.MESSAGES, OverlayMember._give_suspicion)
)
_OF_TIMERS: Mapping[type, Route] = (
    dict.fromkeys(directory.TIMERS, OverlayMember._give_directory)
    | dict.fromkeys(liveness.TIMERS, OverlayMember._look_at_links)
    | dict.fromkeys(gossip.TIMERS, OverlayMember._give_gossip)
    | dict.fromkeys(suspicion.TIMERS, OverlayMember._give_suspicion)
    | dict.fromkeys(aggregates.TIMERS, OverlayMember._give_aggregates)
    | dict.fromkeys(scores.TIMERS, OverlayMember._score)
    | {RepairDue: OverlayMember._repair}
)
_OF_COMMANDS: Mapping[type, Route] = {
    FindLinks: OverlayMember._find_links,
    Contribute: OverlayMember._give_gossip,
    Withdraw: OverlayMember._give_gossip,
    LoadMeasured: OverlayMember._give_aggregates,
    **dict.fromkeys((Noted, VectorsShown, QueuesFull), OverlayMember._score),
}
