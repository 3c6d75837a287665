"""Roles of liars in scenario files: a share of the domains lies, as one coalition, for a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventing.sim.context import SimulationContext
from eventing.sim.liars.lying_member import Coalition, LyingMember
from eventing.sim.roles import Role
from eventing.sim.scenario import Seconds


class LyingRole(Role, frozen=True, kw_only=True):
    """A `[[roles]]` table of liars.

    Attributes:
        from_s, until_s: when they lie; absent: from the beginning, to the end.
    """

    from_s: Seconds | None = None
    until_s: Seconds | None = None

    def begin(self, run: SimulationContext, domains: Sequence[int]) -> None:
        """Put liars in the places of these domains."""
        self.enlist(run, Coalition(domains, run.scenario.domains))

    def enlist(self, run: SimulationContext, coalition: Coalition, *, outermost: bool = False) -> None:
        """Plan when a coalition lies, and put its liars in their places."""

        def switch(active: bool) -> None:
            coalition.active = active

        if self.from_s is not None:
            switch(False)
            run.at(self.from_s, lambda: switch(True))
        if self.until_s is not None:
            run.at(self.until_s, lambda: switch(False))
        run.wrap(
            lambda domain, member: self.liar(member, coalition) if domain in coalition else member, outermost=outermost
        )
        self.prepare(run, coalition)

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make the liar that stands in a member's place."""
        raise NotImplementedError

    def prepare(self, run: SimulationContext, coalition: Coalition) -> None:
        """Plan what happens to others."""
