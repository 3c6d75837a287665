"""The watching machine: whatever is observed, an alarm is raised once, cleared once, and never by what nobody has seen."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.errors import InvalidRequest
from eventing.operations.alarms import findings
from eventing.operations.alarms.evaluation import (
    ABOUTS_MAX,
    CHANGED_S,
    CHANGES_PER_S,
    HEALTH_S_MIN,
    NO_RULE,
    RAISES_PER_S,
    ROWS_MAX,
    STALE_S,
    Finding,
    Machine,
    Observed,
    RulesInForce,
    TimePassed,
)
from eventing.operations.alarms.findings import EndpointMeasurement, LagMeasurement, LeaseMeasurement
from eventing.operations.rules.alarms import Changed, Cleared, Raised, Stated
from eventing.rps.rules.watches import KINDS, RULES_MAX, WatchRule, parse_rules, rules_of


def rule(name: str = "r", for_s: int = 10, kind: str = "lag", **settings: Any) -> WatchRule:
    return WatchRule(name, "rp", kind, "warning", for_s, settings)


def broken(about: str = "", detail: str = "It is broken.") -> Finding:
    return Finding(about, True, detail)


def kept(about: str = "") -> Finding:
    return Finding(about, False)


def kinds(outputs: list[Any]) -> list[str]:
    return [type(one).__name__ for one in outputs]


# -- one thing --------------------------------------------------------------------------------------------------------


def test_an_alarm_is_raised_after_for_s_and_cleared_after_as_long() -> None:
    machine, told = Machine([rule(for_s=10)], [], 0), []
    for now in range(11):
        told += [(now, one) for one in machine.handle(Observed("r", (broken(),)), now)]
    assert [(now, type(one)) for now, one in told] == [(10, Raised)]
    assert [one.alarm.since for _, one in told if isinstance(one, Raised)] == [0]
    told = []
    for now in range(11, 25):
        told += [(now, one) for one in machine.handle(Observed("r", (kept(),)), now)]
    assert [(now, type(one)) for now, one in told] == [(21, Cleared)]
    assert len(machine) == 0


def test_what_hovers_at_its_limit_is_one_alarm() -> None:
    machine, told = Machine([rule(for_s=0)], [], 0), []
    for now in range(60):
        told += machine.handle(Observed("r", (broken() if now % 2 else kept(),)), now)
    assert kinds(told) == ["Raised"]
    assert HEALTH_S_MIN > 1


def test_health_in_between_begins_the_wait_anew() -> None:
    machine = Machine([rule(for_s=10)], [], 0)
    for now in (0, 5, 9):
        assert machine.handle(Observed("r", (broken(),)), now) == []
    assert machine.handle(Observed("r", (kept(),)), 9.5) == []
    assert machine.handle(Observed("r", (broken(),)), 10) == []
    assert kinds(machine.handle(Observed("r", (broken(),)), 20)) == ["Raised"]


def test_what_nobody_has_seen_neither_raises_nor_clears() -> None:
    machine = Machine([rule("a", 10), rule("b", 10)], [], 0)
    machine.handle(Observed("a", (broken(),)), 0)
    machine.handle(Observed("b", (broken(),)), 0)
    assert kinds(machine.handle(Observed("b", (broken(),)), 10)) == ["Raised"]
    machine.handle(Observed("b", (kept(),)), 11)
    late = 11 + STALE_S + 1
    assert machine.handle(TimePassed(), late) == []
    assert machine.handle(Observed("a", (broken(),)), late) == [], "pending begins anew"
    assert machine.handle(Observed("b", (kept(),)), late) == [], "and so does health"
    assert kinds(machine.handle(Observed("b", (kept(),)), late + 10)) == ["Cleared"]
    assert kinds(machine.handle(Observed("a", (broken(),)), late + 10)) == ["Raised"]


def test_unknown_is_neither_broken_nor_kept() -> None:
    machine = Machine([rule(for_s=0)], [], 0)
    assert machine.handle(Observed("r", (Finding("", None),)), 0) == []
    assert kinds(machine.handle(Observed("r", (broken(),)), 1)) == ["Raised"]
    assert machine.handle(Observed("r", (Finding("", None),)), 2) == []
    assert machine.handle(Observed("r", (Finding("", None),)), 20) == []
    assert kinds(machine.handle(Observed("r", ()), 21)) == []
    assert kinds(machine.handle(Observed("r", ()), 24)) == ["Cleared"]


def test_other_numbers_are_told_now_and_then() -> None:
    machine, told = Machine([rule(for_s=0)], [], 0), []
    for now in range(31):
        told += [(now, one) for one in machine.handle(Observed("r", (broken("", f"{now} behind"),)), now)]
    assert [(now, type(one).__name__) for now, one in told] == [
        (0, "Raised"),
        *((at, "Changed") for at in range(int(CHANGED_S), 31, int(CHANGED_S))),
    ]
    assert {one.alarm.since for _, one in told if not isinstance(one, Cleared)} == {0}


def test_a_flood_of_alarms_is_told_at_a_bounded_rate_and_the_longest_waiting_first() -> None:
    """Many RPs of one stranger, each thing broken anew as soon as it may be, and other numbers at every look."""
    rules = [rule("calm", for_s=0), *(rule(f"r{number}", for_s=0) for number in range(20))]
    machine, told = Machine(rules, [], 0), []
    abouts = [str(number) for number in range(10)]
    for now in range(60):
        told += [(now, one) for one in machine.handle(TimePassed(), now)]
        for one in rules[1:]:
            seen = tuple(broken(about, f"{now} behind") for about in abouts)
            told += [(now, output) for output in machine.handle(Observed(one.id, seen), now)]
        if now == 1:
            told += [(now, output) for output in machine.handle(Observed("calm", (broken(),)), now)]
    raised = [(now, one) for now, one in told if isinstance(one, Raised)]
    changed = [now for now, one in told if isinstance(one, Changed)]
    assert len(raised) == 201, "all are raised"
    assert max(Counter(now for now, _ in raised).values()) <= RAISES_PER_S
    assert next(now for now, one in raised if one.alarm.rule == "calm") <= 201 // RAISES_PER_S + 1
    assert max(Counter(changed).values()) <= CHANGES_PER_S
    assert len(changed) > 200, "and all change, now and then"


def test_who_takes_over_goes_on_from_the_open_alarms() -> None:
    open_ = [
        Stated("r", "a", "rp", "lag", "warning", "It is.", (), "/", 5.0),
        Stated("gone", "", "", "lag", "critical", "x", (), "", 1.0),
    ]
    machine = Machine([rule(for_s=5)], open_, 100)
    assert machine.handle(TimePassed(), 100) == [Cleared("gone", "", NO_RULE)]
    assert machine.handle(Observed("r", (broken("a", "It is."),)), 101) == [], "it is raised already"
    machine.handle(Observed("r", ()), 102)
    assert kinds(machine.handle(Observed("r", ()), 107)) == ["Cleared"]


def test_alarms_of_a_rule_that_is_no_more_are_cleared() -> None:
    machine = Machine([rule(for_s=0), rule("s", for_s=100)], [], 0)
    assert kinds(machine.handle(Observed("r", (broken("a"), broken("b"))), 0)) == ["Raised", "Raised"]
    machine.handle(Observed("s", (broken(),)), 0)
    assert machine.handle(RulesInForce((rule("t"),)), 1) == [Cleared("r", "a", NO_RULE), Cleared("r", "b", NO_RULE)]
    assert len(machine) == 0
    assert machine.handle(Observed("r", (broken(),)), 2) == []


def test_the_state_is_bounded() -> None:
    rules = [rule(f"r{n}", for_s=0) for n in range(ROWS_MAX // ABOUTS_MAX + 10)]
    machine = Machine(rules, [], 0)
    many = tuple(broken(f"{n}") for n in range(ABOUTS_MAX * 3))
    raised = [
        len(machine.handle(Observed(one.id, many), now)) for now in range(ROWS_MAX // RAISES_PER_S) for one in rules
    ]
    assert sum(raised) == len(machine) == ROWS_MAX
    few = Machine([rule(for_s=0)], [], 0)
    assert len(few.handle(Observed("r", many), 0)) == ABOUTS_MAX
    few.handle(Observed("r", many[5:]), 1)
    told = few.handle(Observed("r", many[5:]), 1 + HEALTH_S_MIN)
    assert kinds(told) == ["Cleared"] * 5
    assert kinds(few.handle(Observed("r", many[5:]), 2 + HEALTH_S_MIN)) == ["Raised"] * 5, "and there is room again"


# -- any history ------------------------------------------------------------------------------------------------------

NAMES = ("r0", "r1", "r2")
seen = st.lists(
    st.tuples(st.sampled_from(("", "a", "b")), st.sampled_from((True, False, None))),
    max_size=3,
    unique_by=lambda one: one[0],
)
steps = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(st.just("observed"), st.sampled_from((*NAMES, "nobody")), seen),
            st.tuples(st.just("rules"), st.frozensets(st.sampled_from(NAMES)), st.none()),
            st.just(("tick", None, None)),
        ),
        st.floats(0, 50),
    ),
    max_size=60,
)


@given(steps, st.sampled_from((0, 5, 30)))
def test_whatever_comes_alarms_alternate_and_can_always_end(history: list[Any], for_s: int) -> None:
    machine, open_, now = Machine([rule(name, for_s) for name in NAMES], [], 0.0), set(), 0.0
    for (what, which, found), pause_s in history:
        now += pause_s
        if what == "observed":
            told = machine.handle(Observed(which, tuple(Finding(about, is_, f"{now}") for about, is_ in found)), now)
        elif what == "rules":
            told = machine.handle(RulesInForce(tuple(rule(name, for_s) for name in sorted(which))), now)
        else:
            told = machine.handle(TimePassed(), now)
        for one in told:
            match one:
                case Raised(alarm):
                    assert (alarm.rule, alarm.about) not in open_, "never twice"
                    open_.add((alarm.rule, alarm.about))
                case Changed(alarm):
                    assert (alarm.rule, alarm.about) in open_
                case Cleared(name, about, _):
                    open_.remove((name, about))
        assert len(open_) <= len(machine) <= 9
    turns = range(int((for_s + HEALTH_S_MIN) / (STALE_S / 2)) + 4)  # a look less often than each STALE_S begins anew
    for at in (now + turn * STALE_S / 2 for turn in turns):
        for name in NAMES:
            for one in machine.handle(Observed(name, ()), at):
                assert isinstance(one, Cleared)
                open_.remove((one.rule, one.about))
    assert open_ == set()
    assert len(machine) == 0


# -- what is found ----------------------------------------------------------------------------------------------------


def test_each_kind_says_what_is_wrong_in_one_sentence() -> None:
    now = 1000.0
    found = [
        findings.lag(
            rule(events=10, seconds=60),
            "/d/a/",
            [LagMeasurement("sub_1", 50, now - 90), LagMeasurement("sub_2", 3, now - 1)],
            now,
        ),
        findings.backlog(
            rule(oldest_s=60, peer="b"), "", [LagMeasurement("b", 4, now - 600), LagMeasurement("c", 9, 0)], now
        ),
        findings.lease_gap(
            rule(s=60),
            "/d/a/",
            [LeaseMeasurement("", "the rendezvous point", now + 30), LeaseMeasurement("x", "x", now + 70)],
            now,
        ),
        findings.silence(rule(s=60, source="/plant"), "/d/a/", now - 100, now),
        findings.audience(rule(label="auditors", at_least=1, publishing="refuse"), "/d/a/", {}),
        findings.history_quota(rule(percent=80), 90, 100),
        findings.process_lag(rule(ms=100), {"g": 250.0, "h": 3.0}),
        findings.endpoint(
            rule(failing_s=60),
            [
                EndpointMeasurement("sub_2", "/d/a/", "https://e.org/", "failing", "http-503", now - 5),
                EndpointMeasurement("sub_1", "/d/a/", "https://e.org/", "paused", "http-503", now - 600),
            ],
            now,
        ),
        findings.reliability(rule(missed_s=60), "/d/a/", 0.999, {"b": "unreachable: best 0.981"}, now - 90, now),
    ]
    worst = [one[0] for one in found]
    assert all(one.broken and one.detail.endswith(".") and one.link.startswith("/") and one.values for one in worst)
    assert all(value.value != value.limit for one in worst for value in one.values)
    assert [one.about for one in worst] == ["sub_1", "b", "", "", "auditors", "", "g", "sub_1", "b"]
    assert [[other.broken for other in one[1:]] for one in found] == [
        [False],
        [],
        [False],
        [],
        [],
        [],
        [False],
        [False],
        [],
    ]
    assert "50 events behind, 10 are allowed; it is behind for 90 s" in worst[0].detail


def test_what_may_be_longer_is_not_called_healthy() -> None:
    assert (
        findings.backlog(rule(oldest_s=60), "x", [LagMeasurement("b", 4, 995.0, sure=False)], 1000.0)[0].broken is None
    )
    assert findings.silence(rule(s=60), "x", 995.0, 1000.0, sure=False)[0].broken is None
    assert findings.silence(rule(s=60), "x", None, 1000.0)[0].broken is None
    assert findings.silence(rule(s=60), "x", 900.0, 1000.0, sure=False)[0].broken is True


# -- rules ------------------------------------------------------------------------------------------------------------


def test_rules_are_completed_and_have_an_id_by_content() -> None:
    (made,) = parse_rules([{"lag": {"events": 5.0}}])
    assert made == {"lag": {"events": 5}, "severity": "warning", "for_s": 10}
    (one,), (other,) = rules_of("a", [made]), rules_of("b", [made])
    assert (one.kind, one.for_s, one.settings) == ("lag", 10, {"events": 5})
    assert one.id != other.id
    assert rules_of("a", [{**made, "for_s": 11}])[0].id != one.id


@pytest.mark.parametrize(
    "wrong",
    [
        {"lag": {"events": 5}},
        [{"lag": {}}],
        [{"lag": {"events": 0}}],
        [{"lag": {"events": True}}],
        [{"lag": {"events": 5, "peer": "b"}}],
        [{"lag": {"events": 5}, "silence": {"s": 5}}],
        [{"severity": "warning"}],
        [{"lag": {"events": 5}, "severity": "fatal"}],
        [{"lag": {"events": 5}, "for_s": -1}],
        [{"silence": {"s": 5, "source": "a\nb"}}],
        [{"history_quota": {"percent": 5}}],
        [{"lag": {"events": 5}}] * 2,
        [{"lag": {"events": n}} for n in range(1, RULES_MAX + 2)],
        ["lag"],
        None,
    ],
    ids=lambda wrong: str(wrong)[:60],
)
def test_a_wrong_rule_is_refused_with_a_sentence(wrong: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^watch .*\.$"):
        parse_rules(wrong)


def test_every_kind_can_be_stated_where_it_belongs() -> None:
    for name, kind in KINDS.items():
        stated = {limit: of.low for limit, of in kind.limits.items()} | dict.fromkeys(kind.filters, "x")
        for domain, allowed in ((False, kind.rp), (True, kind.domain)):
            if allowed:
                assert parse_rules([{name: stated}], domain=domain)[0][name] == stated
            else:
                with pytest.raises(InvalidRequest):
                    parse_rules([{name: stated}], domain=domain)
