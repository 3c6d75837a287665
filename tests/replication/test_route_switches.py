"""Routes are planned, shown or left alone as the switches of the domain and of an RP state; a dry run changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from rest_framework.test import APIClient

from eventing.audit.models import AuditEntry
from eventing.core.errors import Conflict, Forbidden, InvalidRequest
from eventing.core.ids import DOMAIN_ADMIN
from eventing.outbox.models import OutboxEntry
from eventing.replication.models import RoutesSwitch
from eventing.replication.reliability import previewing
from eventing.replication.reliability.planning import decision_of, routes_plan
from eventing.replication.reliability.presenting import reliability_shown, routes_shown
from eventing.replication.reliability.previewing import routes_preview
from eventing.replication.services.route_modes import routes_switch
from eventing.rps.models import RendezvousPoint
from eventing.store.link_tallies import tallies_flush
from eventing.store.rp_routes import arrivals_add, routed_rps
from tests.planes import principal
from tests.replication.homes import ROOT
from tests.replication.shared_rp import Origin, Scene, send_runs
from tests.replication.test_routes import ME, aim, link_with, rows, told, trials

pytestmark = pytest.mark.usefixtures("shared_stores")


@pytest.fixture
def scene() -> Iterator[Scene]:
    """An RP of this domain with a target, whose best plan for b's events uses three links."""
    tallies_flush(at_once=True)
    made = Scene()
    aim(made, 0.999)
    for peer in ("b.test", "c.test"):
        trials(peer, 1000)
    rows(b={ME: 0.99, "c.test": 0.99}, c={ME: 0.99, "b.test": 0.99})
    send_runs(made.peer, made.rp, Origin(made.b, made.rp).run(3))
    yield made
    tallies_flush(at_once=True)


def switch(mode: str | None, reference: str | None = None) -> None:
    routes_switch(reference=reference, principal=ROOT, mode=mode)


def feeds_planned(scene: Scene) -> int:
    return sum(len(link_with(scene, peer).tree.planned) for peer in ("b.test", "c.test"))


def row_of(scene: Scene) -> RendezvousPoint:
    return RendezvousPoint.objects.get(id=scene.rp)


def test_a_plan_that_is_advised_is_shown_and_told_and_has_no_effect_until_it_is_applied(scene: Scene) -> None:
    switch("advise")
    assert routes_plan(at_once=True) == 1
    assert feeds_planned(scene) == 0
    shown = reliability_shown(row_of(scene))
    assert (shown.mode, shown.state, len([one for one in shown.links if one.origins])) == ("advise", "met", 3)
    assert [one["mode"] for one in told(scene, "routes.planned")] == ["advise"]
    switch("apply", scene.rp)
    assert routes_plan(at_once=True) == 0, "the plan is the same"
    assert feeds_planned(scene) >= 2
    switch(None, scene.rp)
    routes_plan(at_once=True)
    assert feeds_planned(scene) == 0, "the domain advises"


def test_off_ends_plans_at_every_rp_and_keeps_what_was_measured(scene: Scene) -> None:
    routes_plan(at_once=True)
    arrivals_add({(scene.rp, "b.test"): (9, 1)})
    switch("apply", scene.rp)
    switch("off")
    routes_plan(at_once=True)
    assert (feeds_planned(scene), decision_of(scene.rp), routed_rps()) == (0, None, [])
    (shown,) = routes_shown().items
    assert (shown.mode, shown.mode_in_force, shown.state, shown.measured) == ("apply", "off", "none", 0.9)


def test_each_switch_is_an_event_with_before_and_after_and_an_entry_of_the_audit(scene: Scene) -> None:
    switch("advise", scene.rp)
    switch("off", scene.rp)
    assert [(one["before"], one["after"], one["by"]) for one in told(scene, "routes.switched")] == [
        ("", "advise", ROOT.identity),
        ("advise", "off", ROOT.identity),
    ]
    switch("advise")
    entries = OutboxEntry.objects.filter(rp=DOMAIN_ADMIN, kind="event").order_by("pk").values_list("content", flat=True)
    assert [one["data"]["rp"] for one in entries if one["type"] == "io.herald.routes.switched"] == [
        scene.rp,
        scene.rp,
        None,
    ]
    acts = AuditEntry.objects.filter(action="routes.switch").order_by("id")
    assert [(one.on_kind, one.details["before"], one.details["after"]) for one in acts] == [
        ("rp", "", "advise"),
        ("rp", "advise", "off"),
        ("domain", "", "advise"),
    ]
    with pytest.raises(Forbidden):
        routes_switch(reference=None, principal=principal("ann"), mode="off")


def test_a_dry_run_compares_with_the_plan_in_force_and_records_nothing(scene: Scene) -> None:
    before = routes_preview(row_of(scene))
    assert (before.met, decision_of(scene.rp)) == (True, None)
    assert {one.in_force for one in before.receivers} == {None}
    routes_plan(at_once=True)
    there = decision_of(scene.rp)
    closer = routes_preview(row_of(scene), target=0.9)
    assert sum(one.planned for one in closer.links) == 2, "a tree is enough"
    assert sum(one.in_force for one in closer.links) == 3
    assert all((one.in_force or 0.0) > 0.999 > one.planned > 0.9 for one in closer.receivers)
    unreachable = routes_preview(row_of(scene), target=0.999999)
    assert not unreachable.met
    assert all("unreachable" in str(one.missed) for one in unreachable.receivers)
    assert decision_of(scene.rp) == there


def test_a_dry_run_that_would_cost_too_much_or_has_no_target_is_refused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    aim(scene, None)
    with pytest.raises(InvalidRequest, match="no target"):
        routes_preview(row_of(scene))
    with pytest.raises(InvalidRequest, match="above 0"):
        routes_preview(row_of(scene), target=1.0)
    monkeypatch.setattr(previewing, "PREVIEW_PARTICIPANTS_MAX", 2)
    with pytest.raises(Conflict, match="advise"):
        routes_preview(row_of(scene), target=0.9)


def test_the_switch_of_an_ended_rp_is_removed_with_the_next_one(scene: Scene) -> None:
    switch("off", scene.rp)
    RendezvousPoint.objects.filter(id=scene.rp).delete()
    switch("advise")
    assert list(RoutesSwitch.objects.values_list("rp", flat=True)) == [""]


def test_rest_shows_switches_and_runs_dry(client_of: Callable[..., APIClient], scene: Scene) -> None:
    client = client_of("root", admin=True)
    routes_plan(at_once=True)
    found = client.get("/api/v1/plan/routes").json()
    assert found["switch"] == {
        "rp": None,
        "mode": None,
        "mode_in_force": "apply",
        "changed_at": None,
        "changed_by": "",
    }
    (item,) = found["items"]
    assert (item["rp"], item["target"], item["state"], item["links"], item["links_known"]) == (
        scene.rp,
        0.999,
        "met",
        3,
        3,
    )
    answer = client.patch("/api/v1/plan/routes", {"mode": "advise"}, format="json")
    assert answer.json()["switch"]["mode_in_force"] == "advise"
    answer = client.patch(f"/api/v1/plan/routes/{scene.rp}", {"mode": "on"}, format="json")
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:herald:problem:invalid-request")
    answer = client.get(f"/api/v1/plan/routes/{scene.rp}?target=0.9")
    assert len([one for one in answer.json()["links"] if one["planned"]]) == 2
    assert client.get(f"/api/v1/plan/routes/{scene.rp}?target=much").status_code == 400
