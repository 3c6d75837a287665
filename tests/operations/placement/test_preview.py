"""A dry run of the planner says what it would do and why, records nothing, and answers where the planner is off as well."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from rest_framework.test import APIClient

from eventing.audit.models import AuditEntry
from eventing.core.ids import DOMAIN_ADMIN
from eventing.operations.placement.models import PlacementDecision, PlannerRecord
from eventing.operations.placement.selectors.preview import placement_loads, placement_preview
from eventing.operations.placement.services.bounds import placement_bound, standing_policy_set
from eventing.operations.placement.services.carrying import placement_carry_out
from eventing.operations.placement.services.planning import placement_plan, planner_told
from eventing.rps.models import RendezvousPoint
from tests.operations.placement.volunteers import Volunteers, famous, load_is, volunteers_made
from tests.planes import events_at
from tests.replication.homes import ROOT

pytestmark = pytest.mark.usefixtures("home_stores")

NAMES = ("b.test", "c.test")


@pytest.fixture
def volunteers(monkeypatch: pytest.MonkeyPatch) -> Volunteers:
    return volunteers_made(monkeypatch, *NAMES)


@pytest.fixture
def rp(volunteers: Volunteers) -> RendezvousPoint:
    return famous(*NAMES)


def turns(many: int) -> None:
    """Turns of the planner, the last one now."""
    for left in reversed(range(many)):
        placement_plan(now=timezone.now() - timedelta(seconds=3 * left))


def test_a_dry_run_states_the_step_that_the_next_turn_takes_and_records_nothing(rp: RendezvousPoint) -> None:
    load_is(rp.id, 9_000)
    turns(3)  # hot for long enough, delays measured
    PlacementDecision.objects.all().delete()
    before = PlannerRecord.objects.get()
    shown = placement_preview()
    (step,) = shown.steps
    assert (step.reason, step.mode, shown.rps) == ("load", "advise", 1)
    assert "90%" in step.why
    assert step.inputs["pressure"] == 0.9
    after = PlannerRecord.objects.get()
    assert (after.state, after.at, PlacementDecision.objects.count()) == (before.state, before.at, 0)
    placement_plan(now=timezone.now() + timedelta(seconds=2))
    assert PlacementDecision.objects.get().adds == step.adds


def test_a_dry_run_answers_where_the_planner_is_off(rp: RendezvousPoint) -> None:
    load_is(rp.id, 9_000)
    turns(3)
    placement_bound(reference=None, principal=ROOT, mode="off")
    (step,) = placement_preview().steps
    assert step.mode == "off"


def test_loads_have_the_fair_share_of_those_that_are_known(
    rp: RendezvousPoint, client_of: Callable[..., APIClient]
) -> None:
    load_is(rp.id, 5_000)
    with transaction.atomic():
        planner_told(refused=["c.test"], now=timezone.now())
    loads = placement_loads()
    home, b, c = loads.domains
    assert (home.here, home.pressure, loads.fair, loads.bound) == (True, 0.5, 0.5, 1.25)
    assert (b.domain, b.pressure, b.not_asked_until) == ("b.test", None, None)
    assert c.not_asked_until is not None
    assert loads.cool < loads.target < loads.hot
    answered = client_of("root", admin=True).get("/api/v1/plan/loads").json()
    assert [one["domain"] for one in answered["domains"]] == ["localhost", "b.test", "c.test"]


def test_changes_count_against_a_budget_that_is_shown(rp: RendezvousPoint, client_of: Callable[..., APIClient]) -> None:
    client = client_of("root", admin=True)
    placement_bound(reference=None, principal=ROOT, mode="apply")
    load_is(rp.id, 9_000)
    turns(4)
    assert client.get("/api/v1/plan").json()["budgets"] == []
    placement_carry_out()
    (budget,) = client.get("/api/v1/plan").json()["budgets"]
    assert (budget["rp"], budget["steps"], budget["steps_max"], budget["may_grow"]) == (rp.id, 1, 6, True)


def test_each_switch_says_what_was_before_to_those_who_follow_and_in_the_audit(rp: RendezvousPoint) -> None:
    placement_bound(reference=None, principal=ROOT, mode="apply")
    placement_bound(reference=None, principal=ROOT, mode="off")
    standing_policy_set(principal=ROOT, policy={"whom": "nobody"})
    found = [one["data"] for one in events_at(DOMAIN_ADMIN) if ".placement." in one["type"]]
    assert [(one["before"]["mode"], one["mode"]) for one in found[:2]] == [("", "apply"), ("apply", "off")]
    assert [one["whom"] for one in (found[2]["before"], found[2]["policy"])] == ["trusted-peers", "nobody"]
    acts = AuditEntry.objects.filter(action__startswith="placement.").order_by("id")
    assert [one.details["before"].get("mode") for one in acts][:2] == ["", "apply"]
