"""Mutes and slow readers: domains that answer probes and are of no use otherwise."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from eventing.overlay.directory_messages import Compare, Equivocation, News, RangeEntries, Records, Want
from eventing.overlay.machine import Chance, Fired, MessageReceived, SendMessage, SetTimer
from eventing.overlay.member import OverlayMember
from eventing.sim.liars.lying_member import Coalition, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole

WITHHELD = frozenset({News, Records, Compare, RangeEntries, Want, Equivocation})


class Mute(LyingMember):
    """A domain that keeps its links and passes nothing on."""

    def said(self, output: Any) -> Any:
        """Withhold everything that carries news."""
        return None if type(output) is SendMessage and type(output.message) in WITHHELD else output


class LateInput(msgspec.Struct, frozen=True):
    """Timer: an input that a slow reader takes in late."""

    given: Any


class SlowReader(LyingMember):
    """A domain that reads everything late.

    Args:
        late_s: how late.
    """

    def __init__(self, member: OverlayMember, coalition: Coalition, *, late_s: float = 7.0) -> None:
        super().__init__(member, coalition, 60.0)
        self.late_s = late_s

    def handle(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Put messages off."""
        if type(given) is MessageReceived and self.coalition.active:
            return [SetTimer(LateInput(given), self.late_s)]
        if type(given) is Fired and type(given.timer) is LateInput:
            return self.member.handle(given.timer.given, now, chance)
        return super().handle(given, now, chance)


class MuteRole(LyingRole, frozen=True, kw_only=True):
    """Mutes."""

    kind: ClassVar[str] = "mute"

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return Mute(member, coalition)


class SlowReaderRole(LyingRole, frozen=True, kw_only=True):
    """Slow readers.

    Attributes:
        late_s: seconds by which each reads late.
    """

    kind: ClassVar[str] = "slow-reader"
    late_s: float = 7.0

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return SlowReader(member, coalition, late_s=self.late_s)
