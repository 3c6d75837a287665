"""Draining: which domain takes over the home of an RP, and the state of a drain. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

TRIES_MAX = 5  # bound: domains asked in turn to take over one RP; then it stays until the drain is begun anew


class HomeCandidate(NamedTuple):
    """A participant that may become the home of an RP.

    Attributes:
        elector: its place in the succession plan; None: it is no elector.
        behind: events of this domain that it lacks; None: not known, as without a link.
    """

    domain: str
    elector: int | None
    behind: int | None


def homes_in_order(candidates: Sequence[HomeCandidate], tried: Mapping[str, str]) -> list[str]:
    """Return the domains to ask, the best first: electors in their order, then those that lack least, then by name.

    Args:
        tried: domains that refused, with their reasons; they are left out.

    None is left, and the RP stays, once TRIES_MAX refused.
    """
    linked = [one for one in candidates if one.behind is not None and one.domain not in tried]
    last = len(candidates)
    linked.sort(key=lambda one: (last if one.elector is None else one.elector, one.behind, one.domain))
    return [one.domain for one in linked][: max(0, TRIES_MAX - len(tried))]
