"""The planner of placement, a pure state machine: observations in, steps, wanted delays and shortfalls out.

    planner = PlacementPlanner(state)
    for output in planner.handle(observed, now): ...   # PlacementStep, DelaysWanted, PlacementShortfall (steps.py)
    planner.begun(step, now)                           # it is carried out: it counts against the budget of its RP
    planner.refused(domain, now)                       # it refused or failed: it is not asked again for a while
    stored = planner.state                             # plain data; another process continues from it

The home is hot when its pressure exceeds HOT for HOT_S; an RP is, too, where its readers grow so that all that hold it will exceed
HOT within AHEAD_S. Then the RPs that cause most of the load get replicas, until what they need fits TARGET of all that hold them. Readers are spread over home and replicas by capacity (bounded
loads), so the pressure of the home by an RP stands for all that hold it: what a replica states of its own load chooses between
candidates and never counts as demand. Cool for COOL_S: the replicas that the planner placed are retired, while the others stay below
TARGET. At any time: a replica that fails is replaced, histories are spread over domains that share no risk, and a replica is added
where the placement report recommends one. While most replicas fail at once, nothing is retired (cut_off.py).

One step of an RP adds or retires STEP_SHARE of those that hold it and STEP_PLUS; budget.py bounds how often.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from eventing.operations.placement.rules import candidates as ranking
from eventing.operations.placement.rules.budget import (
    SETTLED_S,
    DemandPeak,
    PastStep,
    crowd_is_over,
    may_grow,
    may_shrink,
    noted,
    remembered,
)
from eventing.operations.placement.rules.candidates import BACK_OFFS_MAX, BackOff, backed_off, not_later
from eventing.operations.placement.rules.courses import HOT, TREND_FROM, PressureCourse
from eventing.operations.placement.rules.cut_off import most_fail_since, suspects_itself
from eventing.operations.placement.rules.histories import independent
from eventing.operations.placement.rules.loads import capacity_units
from eventing.operations.placement.rules.steps import (
    FAILING,
    HISTORIES,
    IDLE,
    LOAD,
    READERS,
    DelaysWanted,
    PlacementOutput,
    PlacementShortfall,
    PlacementStep,
)
from eventing.operations.placement.rules.views import PlacedDomain, PlacedRp, PlacementObserved

TARGET = 0.6
"""Pressure that a step plans for: between COOL and HOT, so that neither follows at once."""
STEP_SHARE = 0.25
STEP_PLUS = 2
STEP_S = 5.0
"""Least seconds between two steps of an RP."""
REPLACE_S = 60.0
"""Least seconds between a step and one that only replaces replicas that fail: they are replaced together."""
RETIRE_S = 300.0
"""Least seconds between two retirements of an RP."""
PART_MIN = 0.05
"""Share of the load of the home below which an RP gets no replica for load."""
RPS_MAX = 10_000  # bound: RPs whose past steps are remembered; those without a recent step are forgotten first
READERS_STEPS = 1
"""Changes in the last hour from which a recommendation of the report waits."""


class PlannerState(msgspec.Struct):
    """State of the planner: plain data, with the number of its format."""

    format: int = 1
    course: PressureCourse = msgspec.field(default_factory=PressureCourse)
    courses: dict[str, PressureCourse] = {}
    steps: dict[str, list[PastStep]] = {}
    peaks: dict[str, list[DemandPeak]] = {}
    back_offs: dict[str, BackOff] = {}
    most_fail: float | None = None


class PlacementPlanner:
    """The planner of one home.

    Args:
        state: from before; None: begins anew.
    """

    def __init__(self, state: PlannerState | None = None) -> None:
        self.state = state if state is not None else PlannerState()

    def handle(self, observed: PlacementObserved, now: float) -> list[PlacementOutput]:
        """Take in the present state of things. Steps are proposals: until `begun` they cost nothing."""
        self.state.course.note(observed.pressure, now)
        self._forget(now)
        replicas = [one for rp in observed.rps for one in rp.replicas]
        self.state.most_fail = most_fail_since(self.state.most_fail, replicas, now)
        self._note_demand(observed, now)
        named = {one.name: one for one in observed.domains}
        out: list[PlacementOutput] = []
        grown = False  # one step for load at a time: its replicas count for the next
        for rp in sorted(observed.rps, key=lambda one: (-one.units, one.rp)):
            growth = [] if grown else self._grow(rp, observed, named, now)
            grown = grown or any(isinstance(one, PlacementStep | DelaysWanted) for one in growth)
            found = (
                growth
                or self._replace(rp, observed, now)
                or self._spread(rp, observed, named, now)
                or self._shrink(rp, observed, named, now)
                or self._follow_report(rp, observed, now)
            )
            out += found
        return _together(out)

    def rests(self, observed: PlacementObserved) -> bool:
        """Return whether `handle` would return nothing and remember nothing but another sample of a low pressure, which decides nothing."""
        state = self.state
        remembers = state.courses or state.peaks or state.most_fail is not None or state.course.cool_since is None
        return not observed.rps and observed.pressure < TREND_FROM and not remembers

    def begun(self, step: PlacementStep, now: float) -> None:
        """Count a step that is carried out."""
        self.state.steps.setdefault(step.rp, []).append(PastStep(now, bool(step.adds)))

    def refused(self, domain: str, now: float) -> None:
        """Take notice that a domain refused an invitation, or did not serve what it accepted."""
        self.state.back_offs[domain] = backed_off(self.state.back_offs.get(domain), now)

    def accepted(self, domain: str) -> None:
        """Take notice that a domain serves a replica."""
        self.state.back_offs.pop(domain, None)

    # The rules, in their order

    def _replace(self, rp: PlacedRp, observed: PlacementObserved, now: float) -> list[PlacementOutput]:
        """Retire replicas that fail, and add as many elsewhere unless load is low."""
        failing = _failing(rp)
        if (
            not failing
            or suspects_itself(self.state.most_fail, now)
            or not self._may(rp, now, grows=True, pause_s=REPLACE_S)
        ):
            return []
        gone = failing[: _step_max(rp)]
        added: list[str] = []
        if not self.state.course.is_cool(now):
            chosen = self._choose(rp, observed, len(gone), now)
            if isinstance(chosen, DelaysWanted):
                return [chosen]
            added = chosen
        why = f"{', '.join(gone)} accepted a replica and does not serve it."
        return [_step(rp, observed, FAILING, why, adds=added, retires=gone)]

    def _spread(
        self, rp: PlacedRp, observed: PlacementObserved, named: Mapping[str, PlacedDomain], now: float
    ) -> list[PlacementOutput]:
        """Add replicas until the wanted number of histories share no risk."""
        wanted = rp.histories - 1
        holders = [named[one.domain] for one in rp.replicas if one.domain in named and not one.failing]
        there = independent(observed.home, holders, wanted)
        if wanted <= 0 or len(there) >= wanted:
            return []
        ranked = ranking.candidates(rp, observed.domains, self.state.back_offs, now)
        best = independent(observed.home, [*there, *ranked], wanted)
        if len(best) < wanted:
            why = f"No more than {1 + len(best)} of the domains that may be invited share no risk with each other."
            short = PlacementShortfall(
                rp=rp.rp, about="histories", wanted=rp.histories, reachable=1 + len(best), why=why
            )
        else:
            short = None
        chosen = [one for one in best if one not in there][: min(_step_max(rp), _room_for(rp))]
        outputs: list[PlacementOutput] = [short] if short is not None else []
        if not chosen or not self._may(rp, now, grows=True):
            return outputs
        unmeasured = ranking.unconfirmed(chosen)
        if unmeasured:
            return [*outputs, DelaysWanted(domains=tuple(unmeasured))]
        why = f"{1 + len(there)} of {rp.histories} wanted histories share no risk."
        return [*outputs, _step(rp, observed, HISTORIES, why, adds=[one.name for one in chosen])]

    def _grow(
        self, rp: PlacedRp, observed: PlacementObserved, named: Mapping[str, PlacedDomain], now: float
    ) -> list[PlacementOutput]:
        """Add replicas for load."""
        if rp.units <= 0 or rp.units < PART_MIN * observed.units:
            return []
        capacity = _home_capacity(observed)
        growth = self._growth(rp.rp)
        # Readers are spread by capacity: the share of the home stands for all that count.
        demand = rp.units * growth * (capacity + _spread_units(rp, named)) / capacity
        held = sum(_units_of(named, one.domain) for one in rp.replicas if one.awaited and not one.failing)
        others = _others_soon(rp, observed, named, capacity)
        hot = self.state.course.is_hot(now)
        soon = others / capacity + demand / (capacity + held)
        if not hot and (growth <= 1.0 or soon <= HOT):
            return []
        have = max(0.0, TARGET * capacity - others) + TARGET * held
        missing = demand - have
        if missing <= 0:
            return []
        room = _room_for(rp)
        if room <= 0:
            why = f"It has {rp.replicas_max} replicas already, which is the most that its bounds allow."
            return [PlacementShortfall(rp=rp.rp, about="load", wanted=demand, reachable=have, why=why)]
        if not self._may(rp, now, grows=True):
            return []
        ranked = ranking.candidates(rp, observed.domains, self.state.back_offs, now)
        if not ranked:
            why = "No domain that may be invited has room."
            return [PlacementShortfall(rp=rp.rp, about="load", wanted=demand, reachable=have, why=why)]
        unmeasured = ranking.unconfirmed(ranked)
        chosen: list[str] = []
        if growth > 1.0 or _grew_lately(self.state.steps.get(rp.rp, []), now):
            missing = 2 * max(demand, observed.units)  # a whole step, instead of many
        for one in ranking.confirmed(ranked):
            if missing <= 0 or len(chosen) >= min(_step_max(rp), room):
                break
            chosen.append(one.name)
            missing -= TARGET * min(one.room, capacity_units(one.capacity))
        enough = missing <= 0 or len(chosen) >= min(_step_max(rp), room)
        if not chosen or (unmeasured and not enough):
            return [DelaysWanted(domains=tuple(unmeasured))] if unmeasured else []
        predicted = observed.pressure * growth
        why = f"The pressure of {observed.home.name} is {observed.pressure:.0%}" + (
            "." if hot else f", and its readers grow by {growth - 1:.0%} in 30 s."
        )
        gone = _failing(rp)[: _step_max(rp)]
        return [
            _step(rp, observed, LOAD, why, adds=chosen, retires=gone, predicted=predicted, demand=demand, have=have)
        ]

    def _shrink(
        self, rp: PlacedRp, observed: PlacementObserved, named: Mapping[str, PlacedDomain], now: float
    ) -> list[PlacementOutput]:
        """Retire replicas that are no longer needed: those of the greatest delay first."""
        waits = self._growth(rp.rp) > 1.0 or suspects_itself(self.state.most_fail, now)
        if waits or not self.state.course.is_cool(now) or not self._may(rp, now, grows=False):
            return []
        capacity = _home_capacity(observed)
        holders = [one for one in rp.replicas if not one.failing]
        total = capacity + sum(_units_of(named, one.domain) for one in holders)
        demand = rp.units * total / capacity
        if not crowd_is_over(self.state.steps.get(rp.rp, []), now):
            demand = max([demand, *(one.units for one in self.state.peaks.get(rp.rp, []))])
        others = max(0.0, observed.units - rp.units)
        needed = [one.domain for one in holders if one.domain in rp.pinned or one.domain in rp.advised]
        domains = [named[one.domain] for one in holders if one.domain in named]
        needed += [one.name for one in independent(observed.home, domains, rp.histories - 1)]
        spare = [
            one.domain
            for one in holders
            if one.ours
            and one.counts
            and one.domain not in needed
            and not _is_hot(named.get(one.domain))
            and not self._backs_off(one.domain, now)
        ]
        spare.sort(key=lambda name: (-(named[name].delay_ms or 0.0) if name in named else 0.0, name))
        gone: list[str] = []
        for name in spare:
            left = total - _units_of(named, name)
            if len(gone) >= _step_max(rp) or demand / left + others / capacity > TARGET:
                break
            gone.append(name)
            total = left
        if not gone:
            return []
        why = f"The pressure of {observed.home.name} is {observed.pressure:.0%}; the others are enough."
        return [_step(rp, observed, IDLE, why, retires=gone, demand=demand)]

    def _follow_report(self, rp: PlacedRp, observed: PlacementObserved, now: float) -> list[PlacementOutput]:
        """Add a replica where the report recommends one, one at a time and rarely."""
        held = {one.domain for one in rp.replicas}
        wanted = [name for name in rp.advised if name not in held and name not in rp.excluded]
        steps = self.state.steps.get(rp.rp, [])
        recent = sum(1 for one in steps if one.at > now - 3600.0)
        if not wanted or recent >= READERS_STEPS or _room_for(rp) <= 0:
            return []
        ranked = [
            one for one in ranking.candidates(rp, observed.domains, self.state.back_offs, now) if one.name in wanted
        ][:1]
        if not ranked:
            return []
        if unmeasured := ranking.unconfirmed(ranked):
            return [DelaysWanted(domains=tuple(unmeasured))]
        name = ranked[0].name
        why = f"The placement report recommends a replica at {name}, whose people read much here."
        return [_step(rp, observed, READERS, why, adds=[name])]

    # Helpers

    def _choose(self, rp: PlacedRp, observed: PlacementObserved, many: int, now: float) -> list[str] | DelaysWanted:
        ranked = ranking.candidates(rp, observed.domains, self.state.back_offs, now)
        chosen = [one.name for one in ranking.confirmed(ranked)][:many]
        unmeasured = ranking.unconfirmed(ranked)
        if len(chosen) < many and unmeasured:
            return DelaysWanted(domains=tuple(unmeasured))
        return chosen

    def _backs_off(self, domain: str, now: float) -> bool:
        return domain in self.state.back_offs and self.state.back_offs[domain].until > now

    def _may(self, rp: PlacedRp, now: float, *, grows: bool, pause_s: float | None = None) -> bool:
        steps = self.state.steps.get(rp.rp, [])
        if pause_s is None:
            pause_s = STEP_S if grows else RETIRE_S
        if steps and now - steps[-1].at < pause_s:
            return False
        return may_grow(steps, now) if grows else may_shrink(steps, now)

    def _note_demand(self, observed: PlacementObserved, now: float) -> None:
        """Remember the demand of RPs with replicas, and its course of those with much load."""
        named = {one.name: one for one in observed.domains}
        peaks, courses = {}, {}
        capacity = _home_capacity(observed)
        for rp in observed.rps:
            demand = rp.units * (capacity + _spread_units(rp, named)) / capacity
            if rp.replicas:
                peaks[rp.rp] = noted(self.state.peaks.get(rp.rp, []), demand, now)
            if rp.units > 0 and rp.units >= PART_MIN * observed.units:
                courses[rp.rp] = self.state.courses.get(rp.rp) or PressureCourse()
                courses[rp.rp].note(demand / capacity, now)
        self.state.peaks, self.state.courses = peaks, courses

    def _growth(self, rp: str) -> float:
        course = self.state.courses.get(rp)
        return 1.0 if course is None else course.growth()

    def _forget(self, now: float) -> None:
        kept = {rp: left for rp, steps in self.state.steps.items() if (left := remembered(steps, now))}
        if len(kept) > RPS_MAX:
            newest = sorted(kept, key=lambda rp: -kept[rp][-1].at)[:RPS_MAX]
            kept = {rp: kept[rp] for rp in newest}
        self.state.steps = kept
        offs = self.state.back_offs = {name: not_later(off, now) for name, off in self.state.back_offs.items()}
        if len(offs) > BACK_OFFS_MAX:
            latest = sorted(offs, key=lambda name: -offs[name].until)[:BACK_OFFS_MAX]
            self.state.back_offs = {name: offs[name] for name in latest}


def _failing(rp: PlacedRp) -> list[str]:
    """Return the domains with a replica that fails and may be given up."""
    return [one.domain for one in rp.replicas if one.failing and one.ours and one.domain not in rp.pinned]


def _step_max(rp: PlacedRp) -> int:
    """Return how many replicas one step changes, by those that hold the RP, the home included."""
    return int(STEP_SHARE * (1 + len(rp.replicas))) + STEP_PLUS


def _grew_lately(steps: list[PastStep], now: float) -> bool:
    """Return whether the RP grew within the hour: the last step was too small."""
    return any(one.grew and now - one.at < SETTLED_S for one in steps)


def _room_for(rp: PlacedRp) -> int:
    return max(0, rp.replicas_max - len(rp.replicas))


def _home_capacity(observed: PlacementObserved) -> float:
    """Return the units of capacity that the home really has: a busy machine may be full below what its class can do."""
    stated = capacity_units(observed.home.capacity)
    if observed.pressure <= 0 or observed.units <= 0:
        return stated
    return min(stated, max(observed.units / observed.pressure, stated / 100))


def _others_soon(
    rp: PlacedRp, observed: PlacementObserved, named: Mapping[str, PlacedDomain], capacity: float
) -> float:
    """Return the load of the home by other RPs, once the replicas of these that were invited serve readers."""
    others = max(0.0, observed.units - sum(one.units for one in observed.rps))
    for one in observed.rps:
        if one.rp == rp.rp:
            continue
        held = sum(_units_of(named, it.domain) for it in one.replicas if not it.failing)
        others += one.units * (capacity + _spread_units(one, named)) / (capacity + held)
    return others


def _spread_units(rp: PlacedRp, named: Mapping[str, PlacedDomain]) -> float:
    """Return the capacity of the replicas that serve readers, as far as these have moved to them."""
    return sum(_units_of(named, one.domain) * one.spread for one in rp.replicas if one.counts and not one.failing)


def _units_of(named: Mapping[str, PlacedDomain], domain: str) -> float:
    return capacity_units(named[domain].capacity) if domain in named else capacity_units(0)


def _is_hot(domain: PlacedDomain | None) -> bool:
    return domain is not None and domain.pressure is not None and domain.pressure >= ranking.FULL


def _step(
    rp: PlacedRp,
    observed: PlacementObserved,
    reason: str,
    why: str,
    *,
    adds: list[str] | None = None,
    retires: list[str] | None = None,
    **inputs: float,
) -> PlacementStep:
    known = {"pressure": observed.pressure, "units": observed.units, "rp_units": rp.units, **inputs}
    return PlacementStep(
        rp=rp.rp,
        adds=tuple(adds or ()),
        retires=tuple(retires or ()),
        reason=reason,
        why=why,
        inputs={name: round(value, 4) for name, value in known.items()} | {"replicas": float(len(rp.replicas))},
    )


def _together(outputs: list[PlacementOutput]) -> list[PlacementOutput]:
    """Join wanted delays into one output, the first CONFIRMED_MAX of each step."""
    wanted: dict[str, None] = {}
    for one in outputs:
        if isinstance(one, DelaysWanted):
            wanted.update(dict.fromkeys(one.domains))
    others: list[PlacementOutput] = [one for one in outputs if not isinstance(one, DelaysWanted)]
    return [*others, DelaysWanted(domains=tuple(wanted)[: 4 * ranking.CONFIRMED_MAX])] if wanted else others
