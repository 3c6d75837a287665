"""Passive view: candidates for links from samples that domains exchange. HyParView's walks and shuffles as a machine.

For members that trust each other, and to compare with the published curves; `links` has the source and the reason why mutually suspicious
domains draw from the directory instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from eventing.overlay.links import OTHERS_MAX, Links, Outputs, some
from eventing.overlay.machine import Chance, Fired, Id, MessageReceived, SendMessage, SetTimer


class PassiveViewParameters(msgspec.Struct, frozen=True):
    """Sizes and periods.

    Attributes:
        size: domains of the view (paper: 30).
        walk: hops of a newcomer's walk (paper: ARWL 6).
        walk_passive: hops that remain when a walk leaves the newcomer in a passive view (paper: PRWL 3).
        shuffle_active, shuffle_passive: members of each view in a shuffle (paper: ka 3, kp 4).
        shuffle_s: seconds between shuffles (the paper counts cycles; guess).
    """

    size: int = 30
    walk: int = 6
    walk_passive: int = 3
    shuffle_active: int = 3
    shuffle_passive: int = 4
    shuffle_s: float = 30.0


PAPER = PassiveViewParameters()
REFUSED_S = 10.0
"""A member that refused is not asked again for this long (the paper asks each member once in an attempt): without, a domain without room
around it asks as fast as the network carries requests."""


class JoinWalk(msgspec.Struct, frozen=True, array_like=True, tag="join", gc=False):
    """A newcomer asks its contact to send it on."""


class ForwardJoin(msgspec.Struct, frozen=True, array_like=True, tag="forward-join", gc=False):
    """A newcomer on its walk."""

    newcomer: Id
    hops: int


class Shuffle(msgspec.Struct, frozen=True, array_like=True, tag="shuffle", gc=False):
    """A sample of a domain's views, on a random walk to whom it is exchanged with."""

    origin: Id
    members: tuple[Id, ...]
    hops: int


class ShuffleReply(msgspec.Struct, frozen=True, array_like=True, tag="shuffle-reply", gc=False):
    """The sample in exchange."""

    members: tuple[Id, ...]


class ShuffleDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: exchange samples."""


SHUFFLE_DUE = ShuffleDue()


class PassiveView:
    """The passive view of one domain.

    Args:
        parameters: sizes and periods.

    Attributes:
        members: known domains without a link.
        links: the active view, set by the code that makes both.
    """

    links: Links

    def __init__(self, me: Id, parameters: PassiveViewParameters = PAPER) -> None:
        self.me = me
        self.parameters = parameters
        self.members: list[Id] = []
        self._shown: tuple[Id, ...] = ()
        self._refused: dict[Id, float] = {}

    # As candidates of `Links`

    def draw(self, count: int, but: Iterable[Id], now: float, chance: Chance, *, only_paired: bool = False) -> list[Id]:
        """Up to `count` members at random; a domain with links asks none that refused lately (without, its requests are urgent)."""
        not_these = set(but)
        if self.links.active:
            self._refused = {peer: until for peer, until in self._refused.items() if until > now}
            not_these.update(self._refused)
        return some([member for member in self.members if member not in not_these], count, chance)

    def sample(self, but: Id, chance: Chance) -> tuple[Id, ...]:
        """Some of both views."""
        known = [peer for peer in (*self.links.active, *self.members) if peer != but]
        return tuple(some(known, OTHERS_MAX, chance))

    def note(self, members: Iterable[Id], chance: Chance) -> None:
        """Take domains in; room is made of what was shown in exchange first, then at random."""
        ours = self.members
        for member in members:
            if member == self.me or member in self.links.active or member in ours:
                continue
            if len(ours) >= self.parameters.size:
                gone = next((one for one in self._shown if one in ours), None)
                if gone is None:
                    ours.pop(chance.randrange(len(ours)))
                else:
                    ours.remove(gone)
            ours.append(member)

    def taken(self, peer: Id) -> None:
        """Remove a domain that has a link now."""
        if peer in self.members:
            self.members.remove(peer)

    def dropped(self, peer: Id, chance: Chance) -> None:
        """Keep a domain whose link ended."""
        self.note((peer,), chance)

    def refused(self, peer: Id, now: float) -> None:
        """Hold a domain back that has no room; it may accept later."""
        self._refused.pop(peer, None)
        self._refused[peer] = now + REFUSED_S
        if len(self._refused) > self.parameters.size:
            del self._refused[next(iter(self._refused))]

    def failed(self, peer: Id, now: float) -> None:
        """Remove a domain that cannot be reached."""
        self.taken(peer)

    def sizes(self) -> dict[str, int]:
        """Entries of each memory that others can make grow."""
        return {"members": len(self.members), "refused": len(self._refused)}

    def paired(self, asker: Id, now: float) -> bool:
        """All trusting members have a place."""
        return True

    def group(self, peer: Id) -> Any:
        """Domains of trusting members are one by one."""
        return peer

    def group_share(self, peer: Id) -> float:
        """Nothing that counts."""
        return 0.0

    # As a machine

    def begin(self, contact: Id | None, chance: Chance) -> Outputs:
        """JoinWalk by a contact; without one, be the first."""
        out: Outputs = [SetTimer(SHUFFLE_DUE, self.parameters.shuffle_s * (0.5 + chance.random()))]
        if contact is not None:
            out.append(SendMessage(contact, JoinWalk()))
        return out

    def handle(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Take in an input."""
        out: Outputs = []
        if type(given) is MessageReceived:
            handler = _HANDLERS.get(type(given.message))
            if handler is not None:
                handler(self, given.peer, given.message, now, chance, out)
        elif type(given) is Fired and type(given.timer) is ShuffleDue:
            out.append(SetTimer(SHUFFLE_DUE, self.parameters.shuffle_s * (0.9 + 0.2 * chance.random())))
            self._shuffle(chance, out)
            self.links.repair(now, chance, out)
        return out

    def _shuffle(self, chance: Chance, out: Outputs) -> None:
        active = list(self.links.active)
        if active:
            ours = self.parameters
            passive = some(self.members, ours.shuffle_passive, chance)
            self._shown = tuple(passive)
            members = (self.me, *some(active, ours.shuffle_active, chance), *passive)
            out.append(SendMessage(chance.choice(active), Shuffle(self.me, members, ours.walk - 1)))

    def _join(self, peer: Id, message: JoinWalk, now: float, chance: Chance, out: Outputs) -> None:
        walk = ForwardJoin(peer, self.parameters.walk)
        out.extend(SendMessage(other, walk) for other in self.links.active if other != peer)

    def _forward_join(self, peer: Id, message: ForwardJoin, now: float, chance: Chance, out: Outputs) -> None:
        newcomer, hops = message.newcomer, min(message.hops, self.parameters.walk)
        if newcomer == self.me:
            return
        if hops <= 0 or len(self.links.active) <= 1:
            if newcomer not in self.links.active:
                self.links.ask(newcomer, now, out)
            return
        if hops == self.parameters.walk_passive:
            self.note((newcomer,), chance)
        others = [one for one in self.links.active if one != peer and one != newcomer]
        if others:
            out.append(SendMessage(chance.choice(others), ForwardJoin(newcomer, hops - 1)))

    def _shuffled(self, peer: Id, message: Shuffle, now: float, chance: Chance, out: Outputs) -> None:
        hops = min(message.hops, self.parameters.walk)
        others = [one for one in self.links.active if one != peer and one != message.origin]
        if hops > 0 and others:
            out.append(SendMessage(chance.choice(others), Shuffle(message.origin, message.members, hops - 1)))
        elif message.origin != self.me:
            most = 1 + self.parameters.shuffle_active + self.parameters.shuffle_passive
            self._shown = tuple(some(self.members, min(len(message.members), most) - 1, chance))
            out.append(SendMessage(message.origin, ShuffleReply((self.me, *self._shown))))
            self.note(message.members[:most], chance)
            self.links.repair(now, chance, out)

    def _shuffle_reply(self, peer: Id, message: ShuffleReply, now: float, chance: Chance, out: Outputs) -> None:
        self.note(message.members[: 1 + self.parameters.shuffle_active + self.parameters.shuffle_passive], chance)
        self._shown = ()
        self.links.repair(now, chance, out)


_HANDLERS: dict[type, Any] = {
    JoinWalk: PassiveView._join,
    ForwardJoin: PassiveView._forward_join,
    Shuffle: PassiveView._shuffled,
    ShuffleReply: PassiveView._shuffle_reply,
}
MESSAGES = frozenset(_HANDLERS)
