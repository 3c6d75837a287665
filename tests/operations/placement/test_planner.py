"""The planner grows quickly, shrinks slowly, changes little, and believes nobody's word about load."""

from __future__ import annotations

from math import inf, nan, sin, tau

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.operations.placement.rules import budget
from eventing.operations.placement.rules.candidates import BACK_OFF_S_MAX, BackOff, backed_off, candidates, not_later
from eventing.operations.placement.rules.cut_off import SUSPECTS_ITSELF_S, most_fail_since, suspects_itself
from eventing.operations.placement.rules.freshness import BEHIND_S, FreshnessMark, following, is_behind, moved_share
from eventing.operations.placement.rules.histories import independent, share_risk
from eventing.operations.placement.rules.loads import (
    PRESSURE_MAX,
    capacity_units,
    claimed_pressure,
    claimed_units,
    own_pressure,
)
from eventing.operations.placement.rules.planner import PlacementPlanner
from eventing.operations.placement.rules.steps import (
    FAILING,
    HISTORIES,
    IDLE,
    LOAD,
    READERS,
    DelaysWanted,
    PlacementShortfall,
    PlacementStep,
)
from eventing.operations.placement.rules.views import (
    HeldReplica,
    PlacedDomain,
    PlacedRp,
    PlacementObserved,
    ReaderGroup,
    delay_known,
    delay_to_readers,
)
from eventing.overlay.load_rows import AMOUNT_MAX, DomainLoad
from tests.cpu_time import cpu_time
from tests.operations.placement.closed_loop import HOME, ClosedLoop, willing

HOUR_S, DAY_S = 3600.0, 86_400.0


def fame(at: float) -> float:
    """Load that grows a thousandfold within a minute, and is gone five minutes later."""
    if 60 <= at < 120:
        return 0.01 + 9.99 * (at - 60) / 60
    return 10.0 if 120 <= at < 360 else 0.01


def test_a_crowd_is_spread_before_the_home_suffers_and_drawn_in_after() -> None:
    loop = ClosedLoop(fame, willing(200)).run(0.75 * HOUR_S)
    assert max(pressure for _, pressure in loop.pressures) < 1.0
    assert loop.most_in(600.0) <= budget.BUDGET_STEPS
    assert {step.reason for _, step in loop.steps if step.adds} == {LOAD}
    first = next(at for at, step in loop.steps if step.retires)
    assert first >= 360 + 300, "slow to shrink"
    assert first < 360 + 330, "a crowd that is over does not keep its replicas for an hour"
    assert loop.joined == {}


def test_a_second_crowd_finds_the_replicas_of_the_first() -> None:
    loop = ClosedLoop(lambda at: fame(at % 600), willing(200)).run(1200)
    assert loop.most_in(600.0) <= budget.BUDGET_STEPS
    assert max(pressure for at, pressure in loop.pressures if at > 600) < 1.0


@pytest.mark.parametrize(
    ("period_s", "most"), [(600.0, 1.7), (1800.0, 1.2), (HOUR_S, 1.7), (2 * HOUR_S, 1.2), (6 * HOUR_S, 1.7)]
)
def test_a_load_that_rises_and_falls_causes_at_most_two_changes_an_hour(period_s: float, most: float) -> None:
    loop = ClosedLoop(lambda at: 0.05 + (most - 0.05) * (at % period_s) / period_s, willing(20), every_s=20.0)
    loop.run(DAY_S)
    assert 1 <= loop.most_in(HOUR_S) <= 2
    assert max(pressure for at, pressure in loop.pressures if at > period_s) < 1.0


def test_a_steady_load_changes_nothing_once_it_fits() -> None:
    loop = ClosedLoop(lambda at: 0.75 + 0.02 * sin(tau * at / 60), willing(20), every_s=20.0).run(DAY_S)
    assert loop.steps == []
    loop = ClosedLoop(lambda at: 1.5 + 0.1 * sin(tau * at / 60), willing(20), every_s=20.0).run(DAY_S)
    assert len(loop.steps) == 1


def test_a_short_peak_is_no_reason() -> None:
    assert ClosedLoop(lambda at: 0.9 if 100 <= at < 104 else 0.2, willing(5)).run(300).steps == []


@pytest.mark.parametrize("droppers", [("d0.test",), tuple(f"d{at}.test" for at in range(0, 40, 2))])
def test_volunteers_that_accept_and_drop_are_replaced_and_not_asked_again(droppers: tuple[str, ...]) -> None:
    loop = ClosedLoop(lambda at: 1.4 if at > 10 else 0.1, willing(40), droppers=droppers, every_s=3.0).run(HOUR_S)
    assert loop.pressures[-1][1] < 0.8
    assert not set(loop.joined) & set(droppers)
    assert loop.most_in(600.0) <= budget.BUDGET_STEPS
    asked = [name for _, step in loop.steps for name in step.adds]
    assert all(asked.count(name) <= 3 for name in droppers), "the back-off doubles"
    assert {step.reason for _, step in loop.steps} <= {LOAD, FAILING, IDLE}


def test_a_planner_that_is_killed_after_every_observation_decides_the_same() -> None:
    living, killed = (ClosedLoop(fame, willing(60), killed=one).run(1500) for one in (False, True))
    assert living.steps == killed.steps


def test_a_step_changes_a_quarter_and_two_at_most() -> None:
    loop = ClosedLoop(lambda at: 60.0 if at > 10 else 0.1, willing(200)).run(600)
    holders = 1
    for _, step in loop.steps:
        assert len(step.adds) <= 0.25 * holders + 2
        holders += len(step.adds)
    assert [step.reason for _, step in loop.steps] == [LOAD] * budget.BUDGET_STEPS


def test_bounds_that_stand_in_the_way_are_named() -> None:
    loop = ClosedLoop(lambda at: 30.0, willing(200), replicas_max=3).run(60)
    short = [one for one in loop.outputs if isinstance(one, PlacementShortfall)]
    assert len(loop.joined) == 3
    assert short[0].about == "load"
    assert "3 replicas already" in short[0].why
    assert short[0].wanted > short[0].reachable
    alone = ClosedLoop(lambda at: 1.4, ()).run(60)
    assert [one.why for one in alone.outputs if isinstance(one, PlacementShortfall)] == [
        "No domain that may be invited has room."
    ]


@given(
    claims=st.lists(
        st.builds(DomainLoad, *(st.sampled_from([0, 1, 10_000, AMOUNT_MAX]) for _ in range(7))), min_size=1, max_size=6
    ),
    capacity=st.integers(-5, 9),
)
def test_what_a_domain_states_counts_no_more_than_its_class(claims: list[DomainLoad], capacity: int) -> None:
    for claim in claims:
        assert 0 <= claimed_units(claim, capacity) <= capacity_units(capacity)
        assert 0 <= claimed_pressure(claim, capacity) <= 1


@pytest.mark.parametrize("claim", [0.0, 1.0])
def test_a_lie_about_load_chooses_no_more_than_one_place(claim: float) -> None:
    liar = PlacedDomain(
        name="liar.test", zone="north", capacity=1, pressure=claim, room=1.0 - claim, delay_ms=1.0, groups=()
    )
    honest = ClosedLoop(lambda at: 3.0 if at > 10 else 0.1, willing(40)).run(900)
    lied = ClosedLoop(lambda at: 3.0 if at > 10 else 0.1, (liar, *willing(40))).run(HOUR_S)
    assert [(at, len(step.adds)) for at, step in lied.steps] == [(at, len(step.adds)) for at, step in honest.steps]
    assert ("liar.test" in lied.joined) is (claim == 0.0)


@pytest.mark.parametrize("measured", [nan, inf, -inf, -1.0])
def test_a_measurement_that_cannot_be_changes_nothing(measured: float) -> None:
    assert 0 <= own_pressure(DomainLoad(sessions=10), 1, memory=measured, lag_ms=measured) <= PRESSURE_MAX
    assert delay_known(measured) is None


def seen(rp: PlacedRp, *domains: PlacedDomain, pressure: float = 0.2) -> PlacementObserved:
    return PlacementObserved(home=HOME, pressure=pressure, units=rp.units, domains=domains, rps=(rp,))


def place(name: str, *groups: str, **more: object) -> PlacedDomain:
    return msgspec.structs.replace(PlacedDomain(name=name, capacity=1, room=0.5, delay_ms=10.0, groups=groups), **more)


def test_histories_are_placed_where_they_share_no_risk() -> None:
    domains = [
        place("sister.test", "operator:home"),
        place("b.test", "operator:x", "zone:south"),
        place("c.test", "operator:x"),
        place("d.test", "zone:south"),
        place("e.test", "operator:y"),
    ]
    step = PlacementPlanner().handle(seen(PlacedRp(rp="r", histories=4), *domains), 0.0)[0]
    assert isinstance(step, PlacementStep)
    assert step.reason == HISTORIES
    assert set(step.adds) < {"c.test", "d.test", "e.test"}, "b.test would exclude two of them; a step is at most two"
    out = PlacementPlanner().handle(seen(PlacedRp(rp="r", histories=6), *domains), 0.0)
    assert isinstance(out[0], PlacementShortfall)
    assert (out[0].about, out[0].wanted, out[0].reachable) == ("histories", 6, 4)


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=3, unique=True), max_size=9))
def test_the_largest_set_without_shared_risk_is_found(risks: list[list[str]]) -> None:
    domains = [place(f"d{at}.test", *groups) for at, groups in enumerate(risks)]
    found = independent(HOME, domains, 99)
    assert not any(share_risk(one, other) for one in found for other in found if one is not other)
    best = 0
    for mask in range(1 << len(domains)):
        some = [one for at, one in enumerate(domains) if mask >> at & 1]
        if not any(share_risk(one, other) for one in some for other in some if one is not other):
            best = max(best, len(some))
    assert len(found) == best


def test_the_search_for_histories_is_bounded() -> None:
    domains = [place(f"d{at}.test", f"g:{at % 40}", f"h:{at % 37}") for at in range(400)]
    with cpu_time() as took:
        assert len(independent(HOME, domains, 15)) == 15
    assert took.seconds < 2


def test_candidates_are_near_the_readers_and_answer() -> None:
    rp = PlacedRp(
        rp="r", units=1.0, readers=(ReaderGroup(zone="south", share=0.9), ReaderGroup(zone="north", share=0.1))
    )
    near, far = place("near.test", zone="south"), place("far.test", zone="north")
    assert delay_to_readers(near, rp.readers) < delay_to_readers(far, rp.readers)
    assert [one.name for one in candidates(rp, (far, near), {}, 0.0)] == ["near.test", "far.test"]
    measured = ReaderGroup(zone="south", share=1.0, delays_ms={"near.test": 400.0, "far.test": 20.0})
    rp = msgspec.structs.replace(rp, readers=(measured,))
    assert next(one.name for one in candidates(rp, (far, near), {}, 0.0)) == "far.test"
    planner = PlacementPlanner()
    unmeasured = [msgspec.structs.replace(one, delay_ms=None) for one in (near, far)]
    for at in range(8):
        out = planner.handle(seen(rp, *unmeasured, pressure=0.95), float(at))
    assert out == [DelaysWanted(domains=("far.test", "near.test"))], "nobody is invited who was not measured"


def test_who_is_full_unwilling_excluded_or_backed_off_is_no_candidate() -> None:
    rp = PlacedRp(rp="r", replicas=(HeldReplica(domain="held.test"),), excluded=("not.test",))
    domains = (
        place("full.test", pressure=0.81),
        place("roomless.test", room=0.01),
        place("unwilling.test", willing=False),
        place("not.test"),
        place("held.test"),
        place("refused.test"),
        place("good.test"),
    )
    offs = {"refused.test": BackOff(100.0, 1)}
    assert [one.name for one in candidates(rp, domains, offs, 99.0)] == ["good.test"]
    assert {one.name for one in candidates(rp, domains, offs, 100.0)} == {"good.test", "refused.test"}
    off = None
    for _ in range(40):
        off = backed_off(off, 0.0)
    assert off is not None
    assert off.until == BACK_OFF_S_MAX


def test_the_report_adds_a_replica_rarely_and_keeps_it() -> None:
    planner, rp = PlacementPlanner(), PlacedRp(rp="r", advised=("b.test", "c.test"))
    domains = (place("b.test"), place("c.test"))
    step = planner.handle(seen(rp, *domains), 0.0)[0]
    assert isinstance(step, PlacementStep)
    assert (step.adds, step.reason) == (("b.test",), READERS)
    planner.begun(step, 0.0)
    rp = msgspec.structs.replace(rp, replicas=(HeldReplica(domain="b.test", ours=True),))
    assert planner.handle(seen(rp, *domains, pressure=0.1), 600.0) == [], "one an hour"
    later = planner.handle(seen(rp, *domains, pressure=0.1), 4000.0)[0]
    assert isinstance(later, PlacementStep)
    assert (later.adds, later.retires) == (("c.test",), ()), "b.test is advised, so it stays"


def test_what_a_person_asked_for_or_pinned_is_never_retired() -> None:
    replicas = (
        HeldReplica(domain="theirs.test"),
        HeldReplica(domain="pinned.test", ours=True),
        HeldReplica(domain="o.test", ours=True),
    )
    rp = PlacedRp(rp="r", units=0.01, replicas=replicas, pinned=("pinned.test",))
    planner = PlacementPlanner()
    for at in (0.0, 150.0, 301.0):
        out = planner.handle(seen(rp, *(place(one.domain) for one in replicas), pressure=0.05), at)
    assert isinstance(out[0], PlacementStep)
    assert (out[0].retires, out[0].reason) == (("o.test",), IDLE)


def test_a_clock_that_is_set_back_is_no_reason() -> None:
    loop = ClosedLoop(lambda at: 0.79, willing(5)).run(100)
    loop.at = -50_000.0
    assert loop.run(-49_900.0).steps == []


def replica(domain: str, *, failing: bool = False, ours: bool = True) -> HeldReplica:
    return HeldReplica(domain=domain, ours=ours, failing=failing)


def test_a_home_of_which_most_replicas_fail_at_once_suspects_itself_for_a_while() -> None:
    few = [replica("a", failing=True), replica("b", failing=True), replica("c")]
    assert most_fail_since(None, few, 5.0) is None, "two may fail"
    most = [*few[:2], replica("d", failing=True), replica("e"), replica("f", failing=False, ours=False)]
    assert most_fail_since(None, most, 5.0) == 5.0
    assert most_fail_since(5.0, most, 9.0) == 5.0
    assert most_fail_since(5.0, most, 2.0) == 2.0, "the clock was set back"
    assert most_fail_since(5.0, few, 9.0) is None
    assert suspects_itself(5.0, 5.0 + SUSPECTS_ITSELF_S - 1)
    assert not suspects_itself(5.0, 5.0 + SUSPECTS_ITSELF_S)
    assert not suspects_itself(None, 5.0)


def test_a_home_that_suspects_itself_retires_no_replica() -> None:
    def steps_at(now: float, planner: PlacementPlanner) -> list[PlacementStep]:
        held = tuple(replica(f"d{one}.test", failing=True) for one in range(4))
        rp = PlacedRp(rp="r", units=0.0, replicas=held)
        seen = PlacementObserved(home=HOME, pressure=0.0, units=0.0, domains=willing(8), rps=(rp,))
        return [one for one in planner.handle(seen, now) if isinstance(one, PlacementStep)]

    planner = PlacementPlanner()
    for second in range(0, 899, 50):
        assert steps_at(1000.0 + second, planner) == []
    assert steps_at(1000.0 + SUSPECTS_ITSELF_S, planner)[0].reason == FAILING


def test_a_clock_that_is_set_back_stops_neither_growth_nor_invitations() -> None:
    now = 1_000_000.0
    steps = [budget.PastStep(now + 86_400 + at, True) for at in range(6)]
    kept = budget.remembered(steps, now)
    assert [one.at for one in kept] == [now] * 6, "they count as made now"
    assert not budget.may_grow(kept, now)
    assert budget.may_grow(kept, now + budget.BUDGET_S)
    assert not_later(BackOff(now + 86_400, 1), now) == BackOff(now + 600, 1)
    assert not_later(BackOff(now + 500, 1), now) == BackOff(now + 500, 1)
    assert not_later(BackOff(now + 86_400, 12), now) == BackOff(now + 86_400, 12)


def test_a_replica_keeps_up_by_reaching_one_mark_after_the_other() -> None:
    mark = FreshnessMark({"f": 5}, 100.0)
    assert following(mark, {"f": 4}, {"f": 9}, 150.0) is mark
    assert not is_behind(mark, {"f": 4}, 100.0 + BEHIND_S)
    assert is_behind(mark, {"f": 4}, 101.0 + BEHIND_S)
    assert following(mark, {"f": 6}, {"f": 9}, 150.0) == FreshnessMark({"f": 9}, 150.0)
    assert following(mark, {}, {"f": 9}, 50.0) == FreshnessMark({"f": 5}, 50.0), "the clock was set back"
    assert [moved_share(at, 20.0) for at in (0.0, 5.0, 30.0, -3600.0)] == [0.0, 0.25, 1.0, 1.0]
