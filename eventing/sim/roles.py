"""Roles: domains that differ from honest ones. A `[[roles]]` table gives a share of the domains a role.

To add one: a struct with its parameters as fields, with its `kind`, listed in catalogue.py. Its `begin` is
called before any domain is made, with the domains that it was given; it replaces them by machines of its own with `run.wrap`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from eventing.sim.context import SimulationContext
from eventing.sim.scenario import Share


class Role(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table `[[roles]]` of a scenario file.

    Attributes:
        share: of all domains; domains are drawn by the seed, each has one role at most, and the founder has none.
    """

    kind: ClassVar[str]
    share: Share = 0.0

    def begin(self, run: SimulationContext, domains: Sequence[int]) -> None:
        """Take the domains of this role before they are made."""
        raise NotImplementedError
