"""A replica that counts: readers move to it, and it must keep up with the home. Pure.

A mark is the home's vector at a time. A replica that reaches its mark is given the home's present vector as the next one; one that does not reach
it within BEHIND_S is behind: its readers are given old events, or none. Marks are times of the home alone, so no domain's clock matters.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

BEHIND_S = 120.0
"""Seconds within which a replica that counts must reach the home's vector: links that fail for a moment are repaired sooner."""


class FreshnessMark(msgspec.Struct, frozen=True):
    """Requirements on a replica.

    Attributes:
        vector: the home's, at `at`.
        at: when, Unix seconds.
    """

    vector: Mapping[str, int]
    at: float


def reached(mark: FreshnessMark, theirs: Mapping[str, int]) -> bool:
    """Return whether a replica's vector has reached its mark."""
    return all(theirs.get(feed, 0) >= sequence for feed, sequence in mark.vector.items())


def following(mark: FreshnessMark, theirs: Mapping[str, int], own: Mapping[str, int], now: float) -> FreshnessMark:
    """Return the mark from now on.

    Args:
        theirs: the replica's vector.
        own: the home's.
    """
    if reached(mark, theirs):
        return FreshnessMark(own, now)
    return mark if mark.at <= now else FreshnessMark(mark.vector, now)  # the clock was set back


def is_behind(mark: FreshnessMark, theirs: Mapping[str, int], now: float) -> bool:
    """Return whether a replica has not reached its mark in time."""
    return now - mark.at > BEHIND_S and not reached(mark, theirs)


def moved_share(counts_for_s: float, spread_s: float) -> float:
    """Return the share of its readers that have moved to a replica, from 0 to 1.

    Args:
        counts_for_s: seconds since it counts; below 0 by a clock that was set back since, and then they have moved.
        spread_s: seconds in which they move.
    """
    return counts_for_s / spread_s if 0.0 <= counts_for_s < spread_s else 1.0
