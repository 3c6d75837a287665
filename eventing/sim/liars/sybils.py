"""Sybil bursts: one sponsor that makes up thousands of domains within minutes.

Each way to get around the quota is a kind of its own: more numbers than a day has, one number for many, sponsorships of past days, and
false domains that sponsor further ones.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from eventing.overlay.directory import RECORDS_MAX
from eventing.overlay.directory_messages import Records
from eventing.overlay.directory_records import EXPIRY_S, QUOTA_PER_DAY, DomainRecord, Sponsorship
from eventing.overlay.machine import Chance, SendMessage
from eventing.overlay.member import OverlayMember
from eventing.sim.federation import STARTED_S
from eventing.sim.liars.lying_member import Coalition, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole

FIRST_ID = 1 << 40
"""False domains have ids from here; no machine stands behind them."""
IDS_OF_A_SPONSOR = 1 << 20
Way = Literal["numbers", "repeated", "days", "chain"]


class SybilSponsor(LyingMember):
    """A sponsor of false domains.

    Args:
        ids: how many it makes up.
        within_s: the time that it takes.
        way: how it gets around the quota.
        told: domains that each batch is sent to.
    """

    def __init__(
        self,
        member: OverlayMember,
        coalition: Coalition,
        *,
        ids: int = 5000,
        within_s: float = 600.0,
        way: Way = "days",
        told: int = 8,
    ) -> None:
        super().__init__(member, coalition, within_s * 16 / ids)
        self.ids = ids
        self.way = way
        self.told = told
        self._made = 0

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Send the next batch to some domains, and all former ones again to one."""
        batch = [self.sybil(at, now) for at in range(self._made, min(self.ids, self._made + 16))]
        self._made += len(batch)
        if batch:
            for _ in range(self.told):
                out.append(SendMessage(self.coalition.victim(chance), Records(tuple(batch))))
        victim = self.coalition.victim(chance)
        first = chance.randrange(self._made + 1)
        again = [self.sybil(at, now) for at in range(first, min(self._made, first + RECORDS_MAX))]
        out.append(SendMessage(victim, Records(tuple(again))))

    def sybil(self, at: int, now: float) -> DomainRecord:
        """The record of a false domain."""
        first = FIRST_ID + self.me * IDS_OF_A_SPONSOR
        today = int(STARTED_S + now) // 86_400
        sponsor, day, number = self.me, today, at % QUOTA_PER_DAY
        if self.way == "numbers":
            number = at
        elif self.way == "days":
            day = today - at // QUOTA_PER_DAY
        elif self.way == "chain" and at >= QUOTA_PER_DAY:
            sponsor = first + at // QUOTA_PER_DAY - 1
        issued_s = STARTED_S + 60.0 * int(now / 60.0)
        sponsorship = Sponsorship(sponsor, first + at, day, number)
        return DomainRecord(first + at, int(issued_s), issued_s, issued_s + EXPIRY_S, sponsorship=sponsorship)


class SybilSponsorRole(LyingRole, frozen=True, kw_only=True):
    """Sponsors of false domains.

    Attributes:
        ids: false domains of each sponsor.
        within_s: seconds in which they are made up.
        way: how the quota is evaded: `numbers`, `repeated`, `days` or `chain`.
    """

    kind: ClassVar[str] = "sybil-sponsor"
    ids: int = 5000
    within_s: float = 600.0
    way: Way = "days"

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return SybilSponsor(member, coalition, ids=self.ids, within_s=self.within_s, way=self.way)
