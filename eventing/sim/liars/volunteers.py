"""Roles of volunteers that lie: they accept and drop, desert, serve stale, redirect in circles, refuse, state a load of nothing or without
end, invite others without end, or have a policy that contradicts itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from eventing.operations.placement.rules.invitations import NAMED, PEERS, InvitationPolicy
from eventing.overlay.machine import Fired
from eventing.sim.context import SimulationContext
from eventing.sim.placement.messages import InviteMore
from eventing.sim.placement.volunteer import (
    CIRCLES,
    DESERTS,
    DROPS,
    REFUSES,
    STALE,
    STATES_ENDLESS,
    STATES_NOTHING,
    Volunteer,
)
from eventing.sim.roles import Role
from eventing.sim.scenario import Count, Seconds

CONTRADICTORY: Final = (
    InvitationPolicy(whom=NAMED, named=("d0",), refused=("d0",)),
    InvitationPolicy(whom=NAMED),
    InvitationPolicy(whom=PEERS, named=("d0",), refused=("d0",)),
    InvitationPolicy(whom=PEERS, replicas_max=0, replicas_per_home_max=10),
    InvitationPolicy(whom=PEERS, history_bytes_max=2**40, history_bytes_total_max=1),
)
"""Policies that contradict themselves. Each of them excludes the home by one of its members, and admits it by another."""


class _LyingVolunteer(Role, frozen=True, kw_only=True):
    """A volunteer with a conduct."""

    conduct: ClassVar[str]

    def begin(self, run: SimulationContext, domains: Sequence[int]) -> None:
        """Give the domains their conduct."""

        def lies(member: Volunteer) -> None:
            member.conduct = self.conduct

        _each(run, domains, lies)


class DroppingVolunteerRole(_LyingVolunteer, frozen=True, kw_only=True):
    """It accepts, and never serves."""

    kind: ClassVar[str] = "dropping-volunteer"
    conduct: ClassVar[str] = DROPS


class DesertingVolunteerRole(_LyingVolunteer, frozen=True, kw_only=True):
    """It accepts, serves for a while, and stops without a word."""

    kind: ClassVar[str] = "deserting-volunteer"
    conduct: ClassVar[str] = DESERTS


class StaleVolunteerRole(_LyingVolunteer, frozen=True, kw_only=True):
    """It accepts, and serves what it had when it began for ever."""

    kind: ClassVar[str] = "stale-volunteer"
    conduct: ClassVar[str] = STALE


class CirclingVolunteerRole(_LyingVolunteer, frozen=True, kw_only=True):
    """It accepts, and redirects its readers to another that does so."""

    kind: ClassVar[str] = "circling-volunteer"
    conduct: ClassVar[str] = CIRCLES


class RefusingVolunteerRole(_LyingVolunteer, frozen=True, kw_only=True):
    """Its policy refuses."""

    kind: ClassVar[str] = "refusing-volunteer"
    conduct: ClassVar[str] = REFUSES


class IdleVolunteerRole(_LyingVolunteer, frozen=True, kw_only=True):
    """It states a load of 0 whatever it has, to attract readers."""

    kind: ClassVar[str] = "states-nothing"
    conduct: ClassVar[str] = STATES_NOTHING


class EndlessVolunteerRole(_LyingVolunteer, frozen=True, kw_only=True):
    """It states a load without end, to repel readers."""

    kind: ClassVar[str] = "states-endless"
    conduct: ClassVar[str] = STATES_ENDLESS


class StormingHomeRole(Role, frozen=True, kw_only=True):
    """It sends invitations to all domains in turn, each for another rendezvous point.

    Attributes:
        per_s: invitations each second.
        from_s: when it begins.
    """

    kind: ClassVar[str] = "storming-home"
    per_s: Count = 20
    from_s: Seconds = 0.0

    def begin(self, run: SimulationContext, domains: Sequence[int]) -> None:
        """Have the domains begin."""

        def storms(member: Volunteer) -> None:
            member.storm_per_s = self.per_s

        _each(run, domains, storms)
        for domain in domains:
            run.at(self.from_s, partial(run.world.give, domain, Fired(InviteMore())))


class ContradictoryPolicyRole(Role, frozen=True, kw_only=True):
    """Its administrator sets a standing policy that contradicts itself; the domains have different ones, in turn.

    Attributes:
        stored_before: by a version that did not look for contradictions, so that it is in force.
    """

    kind: ClassVar[str] = "contradictory-policy"
    stored_before: bool = False

    def begin(self, run: SimulationContext, domains: Sequence[int]) -> None:
        """Set the policies."""
        policies = iter(CONTRADICTORY[place % len(CONTRADICTORY)] for place in range(len(domains)))

        def contradicts(member: Volunteer) -> None:
            member.policy_set(next(policies), stored_before=self.stored_before)

        _each(run, domains, contradicts)


def _each(run: SimulationContext, domains: Sequence[int], change: Callable[[Volunteer], None]) -> None:
    """Change domains when they are made."""
    mine = dict.fromkeys(domains)

    def wrapped(domain: int, member: Any) -> Any:
        if domain in mine:
            del mine[domain]
            change(member)
        return member

    run.wrap(wrapped)
