"""States of a decision. Pure.

The life of a decision: the planner proposes a step -> it is approved, by itself in mode "apply", else by a person -> a task claims it
and carries it out, domain by domain -> done, or failed where no domain took part. A claim expires: a decision whose task was killed
is claimed again, and abandoned if it is too old by then. A proposal that nobody approves expires, or is replaced by a newer one.
"""

from __future__ import annotations

from collections.abc import Mapping

PROPOSED, APPROVED, WORKING = "proposed", "approved", "working"
DONE, FAILED, REJECTED, EXPIRED, ABANDONED = "done", "failed", "rejected", "expired", "abandoned"
STATES = (PROPOSED, APPROVED, WORKING, DONE, FAILED, REJECTED, EXPIRED, ABANDONED)
OPEN = (PROPOSED, APPROVED, WORKING)
GRAPH: Mapping[str, tuple[str, ...]] = {
    PROPOSED: (APPROVED, REJECTED, EXPIRED),
    APPROVED: (WORKING, REJECTED, ABANDONED),
    WORKING: (WORKING, DONE, FAILED, ABANDONED),
}
"""The states that may follow each; the others are final."""

PROPOSED_S = 900.0
"""Seconds for which a proposal stands."""
CLAIM_S = 90.0
"""Seconds for which a task has a decision; another one may claim it after."""
ABANDON_S = 600.0
"""Age from which a decision that was not carried out is abandoned: it rests on old numbers."""


def may_follow(state: str, following: str) -> bool:
    """Return whether a decision may change from a state to another."""
    return following in GRAPH.get(state, ())
