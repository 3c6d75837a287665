"""Role of domains that answer every probe, and drop the data that is sent to them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from eventing.sim.context import SimulationContext
from eventing.sim.roles import Role
from eventing.sim.scenario import Seconds, Share


class DataDropperRole(Role, frozen=True, kw_only=True):
    """It answers probes at once, and drops runs.

    Attributes:
        drops: share of the runs that it drops.
        from_s: when it begins.
    """

    kind: ClassVar[str] = "data-dropper"
    drops: Share = 0.5
    from_s: Seconds = 0.0

    def begin(self, run: SimulationContext, domains: Sequence[int]) -> None:
        """Have the domains begin."""

        def drop(domain: int) -> None:
            run.population.members[domain].drops = self.drops

        for domain in domains:
            run.at(self.from_s, partial(drop, domain))
