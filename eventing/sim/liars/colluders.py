"""Colluders: a coalition that seeks the links of honest domains and shows them a federation of colluders only.

They accept whom they want to surround and, with `refuse`, nobody honest; they never drop one another, name and announce colluders only,
and withhold the records of all others. With `grab` they ask honest domains for links again and again, to fill all places that honest
domains have for others.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from eventing.overlay.directory_messages import Compare, News, RangeEntries, Records
from eventing.overlay.links import Disconnect, Neighbor, NeighborReply
from eventing.overlay.machine import Chance, Id, SendMessage
from eventing.overlay.member import OverlayMember
from eventing.sim.liars.lying_member import Coalition, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole

LINKS_MAX = 1_000_000
"""A colluder has room for all."""


class Colluder(LyingMember):
    """One of a coalition.

    Args:
        refuse: refuse links that honest domains request.
        grab: requests for links with honest domains, in a minute.
    """

    def __init__(self, member: OverlayMember, coalition: Coalition, *, refuse: bool = False, grab: float = 0.0) -> None:
        super().__init__(member, coalition, 60.0 / grab if grab else 60.0)
        self.refuse = refuse
        self.grab = grab
        member.links.parameters = msgspec.structs.replace(
            member.links.parameters, accepted=LINKS_MAX, unpaired=0, group_max=0
        )

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Ask an honest domain for a link: one that has a place for this one, as long as there are any."""
        if self.grab:
            but = (*self.links.active, *self.links.pending, *self.coalition.members)
            drawn = self.links.candidates.draw(1, but, now, chance, only_paired=True)
            victim = drawn[0] if drawn else self.coalition.victim(chance)
            if victim not in self.links.active:
                self.links.ask(victim, now, out)

    def answer(self, peer: Id, message: Any, now: float, chance: Chance) -> Outputs | None:
        """Refuse honest domains, naming colluders."""
        if self.refuse and type(message) is Neighbor and peer not in self.coalition:
            return [SendMessage(peer, NeighborReply(False, self.coalition.some(4, chance)))]
        return None

    def said(self, output: Any) -> Any:
        """Withhold all but colluders' records from honest domains, and ends of links from colluders."""
        if type(output) is not SendMessage:
            return output
        message = output.message
        kind = type(message)
        if output.peer in self.coalition:
            return None if kind is Disconnect else output
        if kind is Records:
            records = tuple(record for record in message.records if record.domain in self.coalition)
            return SendMessage(output.peer, Records(records)) if records else None
        if kind is News:
            versions = tuple(entry for entry in message.versions if entry[0] in self.coalition)
            return SendMessage(output.peer, News(versions)) if versions else None
        if kind is RangeEntries or kind is Compare:
            return None
        return output


class ColluderRole(LyingRole, frozen=True, kw_only=True):
    """Colluders.

    Attributes:
        refuse: refuse links that honest domains request.
        grab: requests of each for links with honest domains, in a minute.
    """

    kind: ClassVar[str] = "colluder"
    refuse: bool = False
    grab: float = 0.0

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return Colluder(member, coalition, refuse=self.refuse, grab=self.grab)
