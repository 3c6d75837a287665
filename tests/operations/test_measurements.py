"""What is looked at for watch rules is bounded so that no RP can keep the others from being watched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from eventing.core.events.cloudevents import Event
from eventing.core.events.history import HistoryBounds
from eventing.log import control
from eventing.operations.alarms import sources, watcher
from eventing.operations.alarms.evaluation import ABOUTS_MAX, Finding
from eventing.operations.alarms.measurements import Measurements
from eventing.operations.alarms.sources import Last, SourceMeasurements
from eventing.rps.selectors.watches import rules_in_force
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.services.subscriptions import subscription_create
from tests.replication.homes import ANN

pytestmark = pytest.mark.usefixtures("planes")

BOUNDS = HistoryBounds(10_000, 1 << 26, None)


def new_rp(*rules: dict[str, Any], lease_s: int = 7200) -> str:
    made = rendezvous_point_create(principal=ANN, lease_s=lease_s, watch=list(rules))
    control.ensure_log(made.id, BOUNDS)
    return str(made.id)


def stored(rp: str, *names: str, data: str = "") -> None:
    """An event of each of these sources."""
    body = '{"specversion":"1.0","id":"%s","source":"%s","type":"t","data":"%s"}'
    ids = [f"{source} {time.monotonic_ns()}" for source in names]
    made = [
        Event(source=source, id=one, type="t", body=(body % (one, source, data)).encode())
        for source, one in zip(names, ids, strict=True)
    ]
    control.append(rp, made, BOUNDS)


def asked(*rps: str, of: Iterable[str] = ("/a", "/b")) -> dict[str, frozenset[str]]:
    return {rp: frozenset(of) for rp in rps}


def test_a_log_is_read_once_for_all_its_sources_and_then_only_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    rp, reads = new_rp(), []
    read = control.read
    monkeypatch.setattr(control, "read", lambda *given: reads.append(given[1]) or read(*given))
    measurements = SourceMeasurements()
    assert measurements.measure(asked(rp)) == {(rp, "/a"): Last(None, True), (rp, "/b"): Last(None, True)}
    stored(rp, "/a", "/other", "/a", "/b", "/other")
    found = measurements.measure(asked(rp))
    assert all(last.sure and last.at is not None and abs(last.at - time.time()) < 60 for last in found.values())
    assert measurements.measure(asked(rp)) == found
    assert reads == [1], "one read of the five events for both sources, none where nothing is new"
    stored(rp, "/b")
    later = measurements.measure(asked(rp))
    assert (later[rp, "/a"], reads) == (found[rp, "/a"], [1, 6])
    assert (later[rp, "/b"].at or 0) >= (found[rp, "/b"].at or 0)
    assert measurements.measure(asked(rp, of=["/other"]))[rp, "/other"].sure, "another rule looks through what is there"


def test_of_events_that_were_before_the_first_look_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "EVENTS_MAX", 2)
    rp = new_rp()
    stored(rp, "/a", "/b", "/b")
    found = SourceMeasurements().measure(asked(rp))
    assert found[rp, "/b"].sure
    assert found[rp, "/a"].at is not None
    assert not found[rp, "/a"].sure


def test_who_publishes_much_keeps_no_other_rp_from_being_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn's bytes are bounded; whoever was not read waits unsure, and is read first in the next turn."""
    monkeypatch.setattr(sources, "TURN_BYTES_MAX", 2000)
    loud, quiet = new_rp(), new_rp()
    measurements = SourceMeasurements()
    measurements.measure(asked(loud, quiet))
    for _ in range(3):
        stored(loud, "/a", data="x" * 3000)
        stored(quiet, "/b")
        turns = [measurements.measure(asked(loud, quiet)) for _ in range(2)]
        assert [run_once[quiet, "/b"].sure for run_once in turns] in ([True, True], [False, True])
    for _ in range(3):
        measurements.measure(asked(loud, quiet))
    assert measurements.measure(asked(loud, quiet))[loud, "/a"].sure, "it catches up"


def findings_of(rp: str, measurements: Measurements, now: float) -> dict[str, Finding]:
    """What is found at the one rule of an RP, by what it is about."""
    rules = rules_in_force()
    (rule,) = next(one.rules for one in rules.rps if one.rp == rp)
    (observed,) = [one for one in measurements.measure(rules, now) if one.rule == rule.id]
    return {one.about: one for one in observed.findings}


def test_many_short_leases_at_one_rp_hide_none_of_another() -> None:
    crowded = new_rp({"lease_gap": {"s": 3600}})
    other = new_rp({"lease_gap": {"s": 3600}})
    for _ in range(ABOUTS_MAX + 5):
        subscription_create(reference=crowded, principal=ANN, lease_s=60)
    late = subscription_create(reference=other, principal=ANN, lease_s=600)
    subscription_create(reference=other, principal=ANN, lease_s=7200)
    now = datetime.now(UTC).timestamp()
    assert len(findings_of(crowded, Measurements(), now)) == ABOUTS_MAX + 1, "with the RP's own lease"
    assert {about for about, one in findings_of(other, Measurements(), now).items() if one.broken} == {late.id}


async def test_a_clock_that_is_set_back_makes_the_leader_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would wait until the clock has come to where it was."""
    clock = [datetime.now(UTC).timestamp()]
    leads: list[object] = []

    class Lead:
        def __init__(self) -> None:
            self.now = 0.0
            leads.append(self)

        def run_once(self, now: float) -> None:
            self.now = now

    monkeypatch.setattr(watcher, "_Lead", Lead)
    one = watcher.Watcher(SimpleNamespace(id="g", clock=lambda: clock[0]))
    monkeypatch.setattr(one, "_is_leader", lambda: asyncio.sleep(0, True))
    for step_s, expected in ((1.0, 1), (-watcher.CLOCK_BACK_S / 2, 1), (-3600.0, 2), (1.0, 2)):
        clock[0] += step_s
        await one.run_once()
        assert len(leads) == expected


def test_leases_that_end_later_than_any_rule_says_are_not_looked_at() -> None:
    rp = new_rp({"lease_gap": {"s": 60}})
    subscription_create(reference=rp, principal=ANN, lease_s=3600)
    assert findings_of(rp, Measurements(), datetime.now(UTC).timestamp()).keys() == {""}
    assert findings_of(rp, Measurements(), (datetime.now(UTC) + timedelta(hours=2)).timestamp())[""].broken


def test_endpoints_that_fail_are_found_and_not_those_that_their_owner_paused() -> None:
    rp = new_rp({"endpoint": {"failing_s": 60}})
    now = datetime.now(UTC)
    hook = {"mode": "webhook", "url": "https://hooks.example.org/in?key=hidden"}
    rows = [subscription_create(reference=rp, principal=ANN, deliver=hook).id for _ in range(5)]
    states = {"failing": "http-503", "throttled": "http-429", "paused": "schedule-exhausted: http-503"}
    for one, (state, reason) in zip(rows, states.items(), strict=False):
        fails = {"state": state, "reason": reason, "failing_since": now - timedelta(seconds=90)}
        PushEndpoint.objects.filter(pk=one).update(**fails)
    PushEndpoint.objects.filter(pk=rows[3]).update(state="paused", reason="by-owner")
    found = findings_of(rp, Measurements(), now.timestamp())
    assert {about for about, one in found.items() if one.broken} == set(rows[:3])
    assert found.keys() == set(rows[:3])
    assert "hidden" not in found[rows[0]].detail
    later = new_rp({"endpoint": {"failing_s": 600}})
    young = subscription_create(reference=later, principal=ANN, deliver=hook).id
    PushEndpoint.objects.filter(pk=young).update(state="failing", failing_since=now)
    assert [one.broken for one in findings_of(later, Measurements(), now.timestamp()).values()] == [False]
