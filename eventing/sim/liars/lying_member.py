"""The shape of a liar: an honest member with some inputs answered differently, some outputs changed, and lies of its own at intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from eventing.overlay.directory import DomainDirectory
from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.links import FindLinks
from eventing.overlay.machine import Chance, Fired, Id, MessageReceived, SetTimer
from eventing.overlay.member import OverlayMember
from eventing.sim.federation import STARTED_S, record_make

Outputs = list[Any]
FORGED = b"forged"
"""Signature of records that their signer did not sign; `federation` treats it as false."""


class Lied(msgspec.Struct, frozen=True, gc=False):
    """Event: a liar began something that others are to notice; for measurements."""

    what: str


class LieDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: the next lie of a liar."""


LIE_DUE = LieDue()


class Coalition:
    """Domains that lie together.

    Args:
        members: their numbers.
        count: domains of the world.

    Attributes:
        active: whether they lie at present; otherwise they behave as honest domains.
        victims: domains that they have agreed on.
    """

    def __init__(self, members: Sequence[int], count: int) -> None:
        self.members = list(members)
        self.count = count
        self.active = True
        self.victims: list[int] = []
        self._places = dict.fromkeys(members)

    def __contains__(self, domain: Id) -> bool:
        return domain in self._places

    def victim(self, chance: Chance) -> int:
        """Draw a domain of the world that is not a member."""
        while True:
            domain = chance.randrange(self.count)
            if domain not in self._places:
                return domain

    def some(self, count: int, chance: Chance) -> tuple[int, ...]:
        """Draw members."""
        return tuple(chance.sample(self.members, min(count, len(self.members))))


class LyingMember:
    """A liar; honest until a family overrides.

    Args:
        member: the honest machine in whose place it stands.
        coalition: the liars that it works with.
        every_s: seconds between two lies.
    """

    lies = True

    def __init__(self, member: OverlayMember, coalition: Coalition, every_s: float = 1.0) -> None:
        self.member = member
        self.me = member.me
        self.links = member.links
        self.coalition = coalition
        self.every_s = every_s

    @property
    def directory(self) -> DomainDirectory:
        """Its directory; there is none with the paper's parameters."""
        return self.member.directory

    def handle(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Take in an input."""
        kind = type(given)
        lying = self.coalition.active
        if kind is Fired and type(given.timer) is LieDue:
            out: Outputs = [SetTimer(LIE_DUE, self.every_s * (0.9 + 0.2 * chance.random()))]
            if lying:
                self.lie(now, chance, out)
            return out
        if kind is MessageReceived and lying:
            answer = self.answer(given.peer, given.message, now, chance)
            if answer is not None:
                return answer
        out = self.pass_on(given, now, chance)
        if kind is FindLinks:
            out.append(SetTimer(LIE_DUE, self.every_s * chance.random()))
        return [one for one in map(self.said, out) if one is not None] if lying else out

    def pass_on(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Give an input to the honest machine."""
        return self.member.handle(given, now, chance)

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Send what an honest domain would not, every `every_s`."""

    def answer(self, peer: Id, message: Any, now: float, chance: Chance) -> Outputs | None:
        """Answer a message; None: as an honest domain."""
        return None

    def said(self, output: Any) -> Any:
        """Change or withhold (None) what the honest machine has put out."""
        return output

    def record(self, now: float, **changes: Any) -> DomainRecord:
        """A record of this domain as it would issue one now, with changes, signed by itself."""
        wall_s = STARTED_S + now
        held = self.directory.record(self.me)
        version = max(int(wall_s), held.version + 1 if held is not None else 0)
        return msgspec.structs.replace(record_make(self.me, version, wall_s), **changes)
