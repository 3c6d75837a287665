"""Budget of changes of one RP: few, quick to grow, slow to shrink. Pure.

A change is one step of the planner, whatever number of replicas it adds or retires. Growth may use the whole flap budget;
shrinking leaves GROWTH_RESERVE of it. Load that rises and falls within the hour (steady, sawtooth) causes at most two changes an
hour, because a replica stays for SETTLED_S after the last growth, and while the greatest demand of the last SETTLED_S needs it. A crowd is the exception: where CROWD_STEPS steps of growth
followed each other within BUDGET_S, the replicas are retired as soon as load is low for the planner's COOL_S; if growth follows such
a retirement within CALM_S, the next retirement waits for SETTLED_S as all others do.
"""

from __future__ import annotations

import msgspec

BUDGET_S = 600.0
BUDGET_STEPS = 6  # bound: changes of an RP in BUDGET_S; a further one waits
GROWTH_RESERVE = 3
"""Changes of BUDGET_STEPS that retirements leave for growth."""
SETTLED_S = 3600.0
"""Seconds after the last growth for which replicas stay."""
CALM_S = 3600.0
CROWD_STEPS = 3
"""Steps of growth within BUDGET_S that distinguish a crowd from ordinary growth."""
KEPT_S = 6 * 3600.0
STEPS_KEPT_MAX = 64  # bound: past changes of an RP that are remembered; the oldest are forgotten


PEAK_S = 300.0
"""Seconds of which one greatest demand is remembered."""


class DemandPeak(msgspec.Struct, frozen=True, array_like=True):
    """The greatest demand of an RP in PEAK_S from `at` on, in units."""

    at: float
    units: float


def noted(peaks: list[DemandPeak], units: float, now: float) -> list[DemandPeak]:
    """Return the peaks of the last SETTLED_S with a further demand."""
    kept = [one for one in peaks if now - SETTLED_S < one.at <= now]
    if kept and now - kept[-1].at < PEAK_S:
        return [*kept[:-1], DemandPeak(kept[-1].at, max(kept[-1].units, units))]
    return [*kept, DemandPeak(now, units)]


class PastStep(msgspec.Struct, frozen=True, array_like=True):
    """A past change: when, and whether replicas were added or retired."""

    at: float
    grew: bool


def may_grow(steps: list[PastStep], now: float) -> bool:
    """Return whether replicas may be added now."""
    return steps_within(steps, now) < BUDGET_STEPS


def may_shrink(steps: list[PastStep], now: float) -> bool:
    """Return whether replicas may be retired now."""
    if steps_within(steps, now) >= BUDGET_STEPS - GROWTH_RESERVE:
        return False
    grown = [one.at for one in steps if one.grew]
    return not grown or now - grown[-1] >= SETTLED_S or crowd_is_over(steps, now)


def crowd_is_over(steps: list[PastStep], now: float) -> bool:
    """Return whether the last growth was that of a crowd, and no retirement was too early lately."""
    grown = [one.at for one in steps if one.grew]
    crowd = bool(grown) and sum(1 for at in grown if at > grown[-1] - BUDGET_S) >= CROWD_STEPS
    return crowd and not _reversed_lately(steps, now)


def remembered(steps: list[PastStep], now: float) -> list[PastStep]:
    """Return the changes that still matter. One that is later than now, by a clock that was set back since, counts as made now:
    it must not stop further ones until the clock is there again.
    """
    return [PastStep(min(one.at, now), one.grew) for one in steps if one.at > now - KEPT_S][-STEPS_KEPT_MAX:]


def steps_within(steps: list[PastStep], now: float) -> int:
    """Return the number of changes that count against the budget now."""
    return _since(steps, now - BUDGET_S)


def _since(steps: list[PastStep], since: float) -> int:
    return sum(1 for one in steps if one.at > since)


def _reversed_lately(steps: list[PastStep], now: float) -> bool:
    """Return whether growth followed a retirement within CALM_S, lately: that retirement was too early."""
    shrunk: float | None = None
    for one in steps:
        if not one.grew:
            shrunk = one.at
        elif shrunk is not None and one.at - shrunk < CALM_S and now - one.at < CALM_S:
            return True
    return False
