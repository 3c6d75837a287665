"""Replayers: records of others sent again after their expiry, and records whose version or times no honest clock gives."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from eventing.overlay.directory_messages import News, Records
from eventing.overlay.directory_records import EXPIRY_S, DomainRecord
from eventing.overlay.machine import Chance, Id, SendMessage
from eventing.sim.federation import STARTED_S
from eventing.sim.liars.lying_member import FORGED, Coalition, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole

KEPT_MAX = 64
"""Records that a replayer keeps."""
GREATEST = 2**64 - 1


class Replayer(LyingMember):
    """A domain that stores the first records it sees and sends them again for ever: a domain that has left would seem to be there."""

    _kept: dict[Id, DomainRecord]

    def answer(self, peer: Id, message: Any, now: float, chance: Chance) -> Outputs | None:
        """Keep records."""
        self._kept = getattr(self, "_kept", {})
        if type(message) is Records:
            for record in message.records:
                if len(self._kept) < KEPT_MAX:
                    self._kept.setdefault(record.domain, record)
        return None

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Send some kept records to a domain, as they are and with a forged expiry."""
        kept = list(getattr(self, "_kept", {}).values())
        if kept:
            record = chance.choice(kept)
            later_s = STARTED_S + now + EXPIRY_S / 2
            forged = msgspec.structs.replace(record, expires_s=later_s, issued_s=later_s - EXPIRY_S, signature=FORGED)
            out.append(SendMessage(self.coalition.victim(chance), Records((record, forged))))


class FutureVersions(LyingMember):
    """A domain that claims versions, of itself and of others, that no newer record could exceed."""

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Announce and send such records."""
        victim = self.coalition.victim(chance)
        wall_s = STARTED_S + now
        own = [
            self.record(now, version=GREATEST),
            self.record(now, version=int(wall_s) + 86_400),
            self.record(now, issued_s=wall_s + 86_400, expires_s=wall_s + 2 * 86_400),
            self.record(now, expires_s=float("inf")),
        ]
        other = self.directory.record(victim)
        if other is not None:
            own.append(msgspec.structs.replace(other, version=GREATEST, signature=FORGED))
            own.append(msgspec.structs.replace(other, version=other.version + 1, signature=FORGED))
        out.append(SendMessage(victim, Records(tuple(own))))
        versions = tuple((domain, GREATEST, GREATEST) for domain in (self.me, victim, self.coalition.victim(chance)))
        out.append(SendMessage(self.coalition.victim(chance), News(versions)))


class ReplayerRole(LyingRole, frozen=True, kw_only=True):
    """Replayers of old records.

    Attributes:
        every_s: seconds between two replays of each.
    """

    kind: ClassVar[str] = "replayer"
    every_s: float = 5.0

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return Replayer(member, coalition, self.every_s)


class FutureVersionsRole(LyingRole, frozen=True, kw_only=True):
    """Claimants of versions that cannot be."""

    kind: ClassVar[str] = "future-versions"

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return FutureVersions(member, coalition)
