"""A run that ends because something does not hold that must."""

from __future__ import annotations

from collections.abc import Sequence

from eventing.sim.checkers.violation import Violation
from eventing.sim.errors import ScenarioError

SHOWN_MAX = 5
"""Violations that an error shows; one fault is seldom found in one domain only."""


class CheckFailed(ScenarioError):
    """Something does not hold. The text has the seed, the time and the domain of each violation.

    Attributes:
        violations: all that were found at that moment.
    """

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = list(violations)
        more = len(self.violations) - SHOWN_MAX
        lines = [violation.text() for violation in self.violations[:SHOWN_MAX]]
        super().__init__("\n".join(lines + ([f"and {more} more"] if more > 0 else [])))
