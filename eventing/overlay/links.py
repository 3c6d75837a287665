"""Links of a domain with others. The active view of HyParView as a machine, over candidates from a passive view or the directory.

J. Leitao, J. Pereira, L. Rodrigues: HyParView, a membership protocol for reliable gossip-based broadcast (DSN 2007), called "paper"
here. Links are symmetric and few, and carry all that the layers above send. A link whose peer cannot be reached is replaced by a
candidate. Two sources of candidates exist:

- `passive_view.PassiveView`, the paper's: samples that domains exchange. For trusting members only: with 10 % liars, who answer
  shuffles with liars, these hold 90 % of all passive views after 30 rounds (docs/decisions/0057).
- `directory_candidates.DirectoryCandidates`, for mutually suspicious domains: draws from the signed directory.

Where others found faults in the paper or in its implementations, this machine differs:

- A domain is added when it has answered, never on the word of another (iroh-gossip 5a441e6).
- A disconnect states its reason, and only a failed transport counts against a peer: an evicted domain that returned with high
  priority evicted a neighbour, which returned, and so on (iroh-gossip#152).
- A peer that is dropped or refused gets a sample of other domains to go on with (iroh-gossip fd379fc, 9632ced).
- A domain that has lost all its links asks its contacts again (partisan#75).

With `accepted` (mutually suspicious domains), a domain chooses `chosen` links by itself and accepts so many others. Nobody can make it drop
a link that it chose, a group of domains that may fail or lie together gets at most `group_max` links, and approved peers (`anchors`) are
outside all limits. With `unpaired`, most places for accepted links are for the domains that are paired with this one (`pairing`): a domain
that asks all others gets no more places than one that asks few. A peer that ends its links again and again gets one in a minute
(`ended_links`).

Life of a link: asked (`Neighbor` sent, `pending`) -> accepted or refused -> in the active view (`LinkUp`) -> rotated, evicted,
left, or its transport failed (`LinkDown`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, Protocol

import msgspec

from eventing.overlay.ended_links import EndedLinks
from eventing.overlay.machine import Chance, Down, Fired, Id, MessageReceived, SendMessage, SetTimer


class LinkParameters(msgspec.Struct, frozen=True):
    """Sizes and periods of the active view.

    Attributes:
        chosen: links by own choice; without `accepted`, links in all (paper: 5 for 10,000 domains, ln n + 1 in general).
        accepted: links by others' choice; 0: all links share one view that makes room for urgent requests, as in the paper.
        unpaired: of these, links with domains that are not paired with this one; 0: pairs are not considered.
        near: of the chosen links, how many prefer short round trips over even draws.
        group_max: links with one group of domains that share a risk, or twice the group's share of all domains where that is more;
            0: unlimited.
        reply_s: seconds for the answer to a request for a link (guess: several round trips).
        repair_s: seconds between two attempts of a domain that lacks links (guess).
        rotate_s: seconds after which the oldest evenly drawn link is replaced by a new draw; 0: never.
        nearer_s: seconds between two looks for a nearer peer; 0: never.
    """

    chosen: int = 5
    accepted: int = 0
    unpaired: int = 0
    near: int = 0
    group_max: int = 0
    reply_s: float = 5.0
    repair_s: float = 5.0
    rotate_s: float = 0.0
    nearer_s: float = 0.0


PAPER = LinkParameters()
SUSPICIOUS = LinkParameters(chosen=6, accepted=24, unpaired=4, near=2, group_max=2, rotate_s=600.0, nearer_s=60.0)
"""For mutually suspicious domains: with a fifth of all domains lying, the 4 evenly drawn links are all liars' for one domain in 625,
until the next rotation (docs/decisions/0057). Usually 6 links are accepted. When three tenths lie, and ask for all that they can get, 4
honest domains and 10 liars are paired (docs/decisions/0072)."""
NEARER = 0.8
"""A near link is replaced by a peer whose round trip is shorter by this factor (guess: less is noise)."""
FARTHER_S = 3600.0
"""A peer that was found to be farther than the near links is not tried again for this long."""
FARTHER_MAX = 64  # bound: peers found to be farther that are remembered; the first are tried again early
OTHERS_MAX = 4  # bound: domains named to a refused or dropped peer; the others are left out


class Reason(IntEnum):
    """Reasons for the end of a link."""

    TRANSPORT = 0
    EVICTED = 1
    LEAVING = 2
    QUARANTINE = 3


class Neighbor(msgspec.Struct, frozen=True, array_like=True, tag="neighbor", gc=False):
    """A request for a link; `urgent` from a domain that has none."""

    urgent: bool = False


class NeighborReply(msgspec.Struct, frozen=True, array_like=True, tag="neighbor-reply", gc=False):
    """The answer to a request for a link, with other domains to ask where it is refused."""

    accepted: bool
    others: tuple[Id, ...] = ()


class Disconnect(msgspec.Struct, frozen=True, array_like=True, tag="disconnect", gc=False):
    """The end of a link, with other domains to go on with."""

    reason: Reason
    others: tuple[Id, ...] = ()


class FindLinks(msgspec.Struct, frozen=True):
    """Command: find links.

    Attributes:
        contacts: domains to ask when there are no candidates: the sponsor, a founder; none for the first domain.
        known: links from before a restart, asked first.
    """

    contacts: tuple[Id, ...] = ()
    known: tuple[Id, ...] = ()


class Leave(msgspec.Struct, frozen=True):
    """Command: end all links."""


class DropLink(msgspec.Struct, frozen=True):
    """Command: end one link, because of what the peer did."""

    peer: Id


class LinkUp(msgspec.Struct, frozen=True, gc=False):
    """Event: a peer is in the active view. `rtt_s`: round trip of the request for the link; 0 if the peer asked."""

    peer: Id
    chosen: bool
    rtt_s: float = 0.0


class LinkDown(msgspec.Struct, frozen=True, gc=False):
    """Event: a peer has left the active view."""

    peer: Id
    reason: Reason


class Flapped(msgspec.Struct, frozen=True, gc=False):
    """Event: a link was refused to a peer that has ended so many within minutes."""

    peer: Id
    ended: int


class ReplyDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: the answer of a peer to a request is due."""

    peer: Id
    number: int


class RepairDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: a domain that lacks links tries again."""


class RotateDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: an evenly drawn link is replaced by a new draw."""


class NearerDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: look for a nearer peer."""


REPAIR_DUE, ROTATE_DUE, NEARER_DUE = RepairDue(), RotateDue(), NearerDue()
Outputs = list[Any]


class Candidates(Protocol):
    """A source of domains to ask."""

    def draw(self, count: int, but: Iterable[Id], now: float, chance: Chance, *, only_paired: bool = False) -> list[Id]:
        """Up to `count` domains to ask, none of `but`; with `only_paired`, of those that have a place for this one."""

    def paired(self, asker: Id, now: float) -> bool:
        """Return True if this domain has a place for another."""

    def sample(self, but: Id, chance: Chance) -> tuple[Id, ...]:
        """Some domains for a peer that needs others to ask."""

    def note(self, members: Iterable[Id], chance: Chance) -> None:
        """Other domains that a peer named."""

    def taken(self, peer: Id) -> None:
        """A domain has a link now."""

    def dropped(self, peer: Id, chance: Chance) -> None:
        """A link ended though the domain can be reached."""

    def refused(self, peer: Id, now: float) -> None:
        """A domain refused a link."""

    def failed(self, peer: Id, now: float) -> None:
        """A domain cannot be reached."""

    def sizes(self) -> dict[str, int]:
        """Return the entries of each memory that others can make grow."""

    def group(self, peer: Id) -> Any:
        """Return the group of domains that may fail or lie together with this one; None: unknown."""

    def group_share(self, peer: Id) -> float:
        """Return the share that this domain's group has in all domains."""


class NeighborLink(msgspec.Struct, gc=False):
    """One link.

    Attributes:
        chosen: by this domain.
        near: chosen for its short round trip.
        since: when it stood.
        rtt_s: round trip of the request for it; 0 if the peer asked.
        group: domains that may fail or lie together with the peer.
        paired: whether the peer was paired with this domain when it asked.
    """

    chosen: bool
    near: bool
    since: float
    rtt_s: float
    group: Any = None
    paired: bool = False


class Request(msgspec.Struct, gc=False):
    """A request under way: its number, when it was sent, and whether it looks for a nearer peer or replaces a link."""

    number: int
    at: float
    near: bool
    replaces: Id


class Links:
    """The active view of one domain.

    Args:
        me: its id.
        parameters: sizes and periods.
        candidates: whom to ask for links.
        anchors: approved peers, with which links stand outside all limits.

    Attributes:
        active: peers with a link, in the order of their links.
        pending: requests under way, by peer.
        unwelcome: whether a domain gets no link at a time, because of what it did.
    """

    def __init__(
        self, me: Id, parameters: LinkParameters, candidates: Candidates, anchors: frozenset[Id] = frozenset()
    ) -> None:
        self.me = me
        self.parameters = parameters
        self.candidates = candidates
        self.anchors = anchors
        self.active: dict[Id, NeighborLink] = {}
        self.pending: dict[Id, Request] = {}
        self._contacts: tuple[Id, ...] = ()
        self._requests = 0
        self.unwelcome: Callable[[Id, float], bool] = _nobody
        self._repairing = False
        self._farther: dict[Id, float] = {}
        self._ended = EndedLinks()

    @property
    def chosen(self) -> list[Id]:
        """Peers of the links by own choice: to be asked first after a restart."""
        return [peer for peer, link in self.active.items() if link.chosen]

    def handle(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Take in an input; unknown peers, late and repeated timers are harmless."""
        out: Outputs = []
        kind = type(given)
        if kind is MessageReceived:
            handler = _HANDLERS.get(type(given.message))
            if handler is not None:
                handler(self, given.peer, given.message, now, chance, out)
        elif kind is Fired:
            self._fired(given.timer, now, chance, out)
        elif kind is Down:
            self._down(given.peer, now, chance, out)
        elif kind is FindLinks:
            self._begin(given, now, chance, out)
        elif kind is DropLink:
            self._end(given.peer, Reason.QUARANTINE, now, chance, out)
            self.repair(now, chance, out)
        elif kind is Leave:
            for peer in list(self.active):
                self._end(peer, Reason.LEAVING, now, chance, out)
        return out

    def ask(self, peer: Id, now: float, out: Outputs, *, near: bool = False, replaces: Id = None) -> None:
        """Request a link, unless a request is under way."""
        if peer not in self.pending and peer != self.me and not self.unwelcome(peer, now):
            self._requests += 1
            self.pending[peer] = Request(self._requests, now, near, replaces)
            out.append(SendMessage(peer, Neighbor(not self.active)))
            out.append(SetTimer(ReplyDue(peer, self._requests), self.parameters.reply_s))

    def repair(self, now: float, chance: Chance, out: Outputs) -> None:
        """Request as many links as are lacking; without candidates, of a contact."""
        lacking = self._lacking()
        if lacking <= 0:
            return
        for anchor in sorted(self.anchors):
            if anchor not in self.active:
                self.ask(anchor, now, out)
        drawn = self.candidates.draw(lacking, (self.me, *self.active, *self.pending), now, chance)
        for peer in drawn:
            if not self._group_full(peer):
                self.ask(peer, now, out)
        if not self._repairing:
            self._repairing = True
            out.append(SetTimer(REPAIR_DUE, self.parameters.repair_s * (0.5 + chance.random())))
            if not self.active and not self.pending and self._contacts:
                self.ask(chance.choice(self._contacts), now, out)

    # Commands and timers

    def _begin(self, given: FindLinks, now: float, chance: Chance, out: Outputs) -> None:
        self._contacts = tuple(contact for contact in given.contacts if contact != self.me)
        for peer in given.known:
            self.ask(peer, now, out)
        ours = self.parameters
        if ours.rotate_s:
            out.append(SetTimer(ROTATE_DUE, ours.rotate_s * (0.5 + chance.random())))
        if ours.nearer_s:
            out.append(SetTimer(NEARER_DUE, ours.nearer_s * (0.5 + chance.random())))
        self.repair(now, chance, out)

    def _fired(self, timer: Any, now: float, chance: Chance, out: Outputs) -> None:
        kind = type(timer)
        ours = self.parameters
        if kind is ReplyDue:
            request = self.pending.get(timer.peer)
            if request is not None and request.number == timer.number:
                self._down(timer.peer, now, chance, out)
        elif kind is RepairDue:
            self._repairing = False
            self.repair(now, chance, out)
        elif kind is RotateDue:
            out.append(SetTimer(ROTATE_DUE, ours.rotate_s * (0.9 + 0.2 * chance.random())))
            even = [(link.since, peer) for peer, link in self.active.items() if link.chosen and not link.near]
            if len(even) >= ours.chosen - ours.near:
                self._ask_instead(min(even)[1], now, chance, out, near=False)
        elif kind is NearerDue:
            out.append(SetTimer(NEARER_DUE, ours.nearer_s * (0.9 + 0.2 * chance.random())))
            near = [(link.rtt_s, peer) for peer, link in self.active.items() if link.near]
            if len(near) >= ours.near:
                self._ask_instead(max(near)[1], now, chance, out, near=True)

    def _ask_instead(self, peer: Id, now: float, chance: Chance, out: Outputs, *, near: bool) -> None:
        """Request a link in place of one: only where there is a place, as those that accept anybody are more often liars."""
        farther = [one for one, at in self._farther.items() if at > now - FARTHER_S] if near else []
        but = (self.me, *self.active, *self.pending, *farther)
        for drawn in self.candidates.draw(1, but, now, chance, only_paired=True):
            if not self._group_full(drawn, but=peer):
                self.ask(drawn, now, out, near=near, replaces=peer)

    # Messages

    def _neighbor(self, peer: Id, message: Neighbor, now: float, chance: Chance, out: Outputs) -> None:
        counted = self.parameters.accepted and peer not in self.active
        ended = self._ended.beyond(peer, now) if counted else 0
        if ended:
            out.append(Flapped(peer, ended))
        if peer in self.active or (
            not ended
            and peer != self.me
            and not self.unwelcome(peer, now)
            and self._room_for(peer, message.urgent, now, chance, out)
        ):
            if peer not in self.active:
                self._add(peer, now, chance, out, chosen=peer in self.pending)
            out.append(SendMessage(peer, NeighborReply(True)))
        else:
            out.append(SendMessage(peer, NeighborReply(False, self.candidates.sample(peer, chance))))

    def _neighbor_reply(self, peer: Id, message: NeighborReply, now: float, chance: Chance, out: Outputs) -> None:
        request = self.pending.pop(peer, None)
        if not message.accepted:
            self.candidates.note(message.others[:OTHERS_MAX], chance)
            if request is not None:
                self.candidates.refused(peer, now)
                self.repair(now, chance, out)
        elif request is None:
            if peer not in self.active:
                out.append(SendMessage(peer, Disconnect(Reason.EVICTED)))
        elif peer not in self.active:
            self._take(peer, request, now, chance, out)

    def _take(self, peer: Id, request: Request, now: float, chance: Chance, out: Outputs) -> None:
        """A peer has accepted: keep the link if it is still wanted, in place of the one that it replaces."""
        rtt_s = now - request.at
        old = self.active.get(request.replaces)
        farther = request.near and old is not None and rtt_s > NEARER * old.rtt_s
        if farther:
            self._farther.pop(peer, None)
            self._farther[peer] = now
            if len(self._farther) > FARTHER_MAX:
                del self._farther[next(iter(self._farther))]
        if farther or self._group_full(peer, but=request.replaces):
            out.append(SendMessage(peer, Disconnect(Reason.EVICTED)))
            return
        self._add(peer, now, chance, out, chosen=True, near=request.near, rtt_s=rtt_s)
        if old is not None:
            self._end(request.replaces, Reason.EVICTED, now, chance, out)

    def _disconnect(self, peer: Id, message: Disconnect, now: float, chance: Chance, out: Outputs) -> None:
        self.pending.pop(peer, None)
        if self.active.pop(peer, None) is not None:
            self._ended.note(peer, now)
            out.append(LinkDown(peer, message.reason))
        self.candidates.note(message.others[:OTHERS_MAX], chance)
        if message.reason is Reason.EVICTED:
            self.candidates.dropped(peer, chance)
        self.candidates.refused(peer, now)
        self.repair(now, chance, out)

    # The view

    def _lacking(self) -> int:
        """Return the number of links to request."""
        if not self.parameters.accepted:
            return self.parameters.chosen - len(self.active) - len(self.pending)
        standing = sum(1 for peer, link in self.active.items() if link.chosen and peer not in self.anchors)
        asked = sum(
            1 for peer, request in self.pending.items() if request.replaces is None and peer not in self.anchors
        )
        return self.parameters.chosen - standing - asked

    def _room_for(self, peer: Id, urgent: bool, now: float, chance: Chance, out: Outputs) -> bool:
        """Return True if a requesting peer gets a link; make room for one that has a place."""
        ours = self.parameters
        if peer in self.anchors:
            return True
        if not ours.accepted:
            return urgent or len(self.active) < ours.chosen
        if ours.group_max and (self.candidates.group(peer) is None or self._group_full(peer)):
            return False
        accepted = [one for one, link in self.active.items() if not link.chosen and one not in self.anchors]
        if peer in self.pending or not ours.unpaired:
            return peer in self.pending or len(accepted) < ours.accepted
        if not self.candidates.paired(peer, now):
            unpaired = sum(1 for one in accepted if not self.active[one].paired)
            return len(accepted) < ours.accepted and unpaired < ours.unpaired
        if len(accepted) >= ours.accepted:
            lapsed = next((one for one in accepted if not self.candidates.paired(one, now)), None)
            if lapsed is None:
                return False
            self._end(lapsed, Reason.EVICTED, now, chance, out)
        return True

    def _group_full(self, peer: Id, but: Id = None) -> bool:
        """Return whether there is no room for a further link with a peer's group; the link with `but` and those asked for count."""
        ours = self.parameters
        if not ours.group_max or peer in self.anchors:
            return False
        group = self.candidates.group(peer)
        if group is None:
            return False
        groups = [(one, link.group) for one, link in self.active.items()]
        groups += [(one, self.candidates.group(one)) for one in self.pending]
        same = sum(1 for one, of in groups if of == group and one not in (peer, but) and one not in self.anchors)
        if same < ours.group_max:
            return False
        usual = 2 * ours.chosen + ours.unpaired if ours.unpaired else ours.chosen + ours.accepted
        return same >= 2 * usual * self.candidates.group_share(peer)

    def _add(
        self,
        peer: Id,
        now: float,
        chance: Chance,
        out: Outputs,
        *,
        chosen: bool,
        near: bool = False,
        rtt_s: float = 0.0,
    ) -> None:
        """Put a peer into the active view; in a shared view that is full, drop one at random."""
        self.pending.pop(peer, None)
        self.candidates.taken(peer)
        while not self.parameters.accepted and len(self.active) >= self.parameters.chosen:
            self._end(chance.choice(list(self.active)), Reason.EVICTED, now, chance, out)
        ours = self.parameters
        if chosen and ours.near and not near:
            near = sum(1 for link in self.active.values() if link.near) < ours.near and rtt_s > 0.0
        paired = bool(ours.unpaired) and not chosen and self.candidates.paired(peer, now)
        self.active[peer] = NeighborLink(chosen, near, now, rtt_s, self.candidates.group(peer), paired)
        out.append(LinkUp(peer, chosen, rtt_s))

    def _end(self, peer: Id, reason: Reason, now: float, chance: Chance, out: Outputs) -> None:
        if self.active.pop(peer, None) is not None:
            others = self.candidates.sample(peer, chance) if reason is Reason.EVICTED else ()
            out.append(SendMessage(peer, Disconnect(reason, others)))
            out.append(LinkDown(peer, reason))
            self.candidates.dropped(peer, chance)

    def _down(self, peer: Id, now: float, chance: Chance, out: Outputs) -> None:
        self.pending.pop(peer, None)
        self.candidates.failed(peer, now)
        if self.active.pop(peer, None) is not None:
            out.append(LinkDown(peer, Reason.TRANSPORT))
        self.repair(now, chance, out)


def _nobody(peer: Id, now: float) -> bool:
    return False


def some(of: Sequence[Id], count: int, chance: Chance) -> list[Id]:
    """Up to `count` at random, without repetition."""
    return list(of) if count >= len(of) else chance.sample(of, max(count, 0))


_HANDLERS: dict[type, Any] = {
    Neighbor: Links._neighbor,
    NeighborReply: Links._neighbor_reply,
    Disconnect: Links._disconnect,
}
MESSAGES = frozenset(_HANDLERS)
