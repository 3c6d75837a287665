"""Inbound floods: a coalition that takes all places a restarting victim has for others, and fills its directory with itself.

A victim that has just started knows few domains. The coalition requests links with it many times a second, and pushes the records of its
members, so that draws from the victim's directory are draws of liars.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from eventing.overlay.directory import RECORDS_MAX
from eventing.overlay.directory_messages import Records
from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.links import Neighbor
from eventing.overlay.machine import Chance, SendMessage
from eventing.overlay.member import OverlayMember
from eventing.sim.context import SimulationContext
from eventing.sim.federation import sponsor_of
from eventing.sim.liars.lying_member import Coalition, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole
from eventing.sim.scenario import Seconds


class Flooder(LyingMember):
    """One of the coalition.

    Args:
        per_s: requests for links with victims, in a second.
    """

    def __init__(self, member: OverlayMember, coalition: Coalition, *, per_s: float = 1.0) -> None:
        super().__init__(member, coalition, 1.0 / per_s)

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Ask a victim for a link, and push records of the coalition with those of their sponsors."""
        victim = chance.choice(self.coalition.victims)
        out.append(SendMessage(victim, Neighbor(True)))
        records: dict[int, DomainRecord] = {}
        for member in self.coalition.some(RECORDS_MAX, chance):
            record = self.directory.record(member)
            while record is not None and record.domain not in records:
                records[record.domain] = record
                record = self.directory.record(record.sponsorship.sponsor) if record.sponsorship is not None else None
        out.append(SendMessage(victim, Records(tuple(reversed(records.values()))[:RECORDS_MAX])))


class FlooderRole(LyingRole, frozen=True, kw_only=True):
    """Flooders of domains that restart.

    Attributes:
        victims: how many honest domains restart, with nothing of their directories.
        at_s: when.
        per_s: requests of each flooder, in a second.
    """

    kind: ClassVar[str] = "flooder"
    victims: int = 1
    at_s: Seconds = 60.0
    per_s: float = 1.0

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return Flooder(member, coalition, per_s=self.per_s)

    def prepare(self, run: SimulationContext, coalition: Coalition) -> None:
        """Draw the victims, and have them start anew through their sponsors."""
        honest = [domain for domain in range(1, run.scenario.domains) if domain not in coalition]
        coalition.victims[:] = run.fault_chance.sample(honest, min(self.victims, len(honest)))

        def anew(victim: int) -> None:
            given = sponsor_of(victim)
            run.crash(victim)
            run.join(victim, given.sponsor if given is not None else 0)

        for victim in coalition.victims:
            run.at(self.at_s, partial(anew, victim))
