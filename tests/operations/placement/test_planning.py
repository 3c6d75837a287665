"""What the planner decides is recorded before it is carried out, carried out once, and told on the administrative RPs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from eventing.audit.models import AuditEntry
from eventing.core.errors import Conflict
from eventing.core.ids import DOMAIN_ADMIN, admin_id
from eventing.membership.services.directory import directory_store
from eventing.operations.models import Alarm
from eventing.operations.placement.models import PlacedReplicaRow, PlacementDecision, PlannerRecord
from eventing.operations.placement.rules.decisions import ABANDON_S, CLAIM_S, GRAPH, OPEN, STATES
from eventing.operations.placement.rules.freshness import BEHIND_S
from eventing.operations.placement.selectors.bounds import bounds_all
from eventing.operations.placement.selectors.observation import domains_observed, observation
from eventing.operations.placement.selectors.own_state import own_state
from eventing.operations.placement.services.bounds import placement_bound
from eventing.operations.placement.services.carrying import placement_carry_out
from eventing.operations.placement.services.decisions import decision_approve, decision_reject
from eventing.operations.placement.services.planning import placement_plan
from eventing.peering.models import Peer
from eventing.peering.selectors.peers import peers_active
from eventing.peering.wire.client import PeerError
from eventing.replication.models import ReplicaAdmission, ReplicaLink
from eventing.replication.services.reader_moves import reader_moves, readers_move
from eventing.rps.models import RendezvousPoint
from tests.admin_rp.proving import Proof
from tests.membership.signers import Signer
from tests.operations.placement.volunteers import Volunteers, famous, load_is, vector_of, volunteers_made
from tests.planes import events_at, types_at
from tests.replication.homes import ROOT

pytestmark = pytest.mark.usefixtures("home_stores")

NAMES = ("b.test", "c.test")


@pytest.fixture
def volunteers(monkeypatch: pytest.MonkeyPatch) -> Volunteers:
    return volunteers_made(monkeypatch, *NAMES)


@pytest.fixture
def rp(volunteers: Volunteers) -> RendezvousPoint:
    return famous(*NAMES)


class Turns:
    """Turns of the planner, a few seconds apart."""

    def __init__(self) -> None:
        self.now = timezone.now()

    def plan(self, count: int = 1, *, every_s: float = 3.0) -> int:
        done = 0
        for _ in range(count):
            done += placement_plan(now=self.now)
            self.now += timedelta(seconds=every_s)
        return done


@pytest.fixture
def turns() -> Turns:
    return Turns()


def apply() -> None:
    placement_bound(reference=None, principal=ROOT, mode="apply")


def decision() -> PlacementDecision:
    return PlacementDecision.objects.latest("id")


def test_a_famous_rp_gets_a_replica_that_counts_once_it_has_all_and_gives_it_back(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    load_is(rp.id, 9_000)
    assert turns.plan(4) == 1
    made = decision()
    assert (made.state, made.reason, len(made.adds)) == ("approved", "load", 1)
    assert made.inputs["pressure"] == 0.9
    assert volunteers.asked == [], "recorded before anything is done"
    placement_carry_out()
    made.refresh_from_db()
    assert (made.state, volunteers.asked) == ("done", [("invite", made.adds[0])])
    assert volunteers.expected == [7.0], "the invited domain can judge by the rate"
    placed = PlacedReplicaRow.objects.get()
    PlacedReplicaRow.objects.update(vector={"f" * 16: 7})
    turns.plan()
    placed.refresh_from_db()
    assert placed.counted_at is None, "its vector is behind"
    vector_of(placed.domain, rp.id, {"f" * 16: 7})
    turns.plan()
    placed.refresh_from_db()
    assert placed.counted_at is not None
    load_is(rp.id, 100)
    turns.now += timedelta(seconds=3700)
    turns.plan(5, every_s=100.0)
    assert decision().retires == [placed.domain]
    placement_carry_out()
    assert (decision().state, volunteers.asked[-1]) == ("done", ("release", placed.domain))
    assert list(PlacedReplicaRow.objects.values_list("domain", "decision")) == [], PlacementDecision.objects.values()
    assert {"placement.decided", "placement.changed"} <= set(types_at(admin_id(rp.id))) & set(types_at(DOMAIN_ADMIN))


@pytest.mark.parametrize(
    ("by", "moves"), [(None, ["placement"]), ("operator", ["operator", "placement"]), ("balancing", ["balancing"])]
)
def test_a_new_replica_gets_its_share_of_the_readers_unless_balancing_sees_to_it(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns, by: str | None, moves: list[str]
) -> None:
    apply()
    load_is(rp.id, 9_000)
    turns.plan(4)
    placement_carry_out()
    if by is not None:
        until = turns.now + timedelta(seconds=60)
        readers_move(rp=rp.id, share=0.5, until=until, reason="test", by=by, now=turns.now)
    turns.plan()
    assert PlacedReplicaRow.objects.get().counted_at is not None
    assert sorted(move.by for move in reader_moves(now=turns.now)) == moves


def test_a_replica_that_falls_behind_is_given_back_and_one_that_keeps_up_is_not(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    load_is(rp.id, 9_000)
    turns.plan(4)
    placement_carry_out()
    turns.plan()
    placed = PlacedReplicaRow.objects.get()
    assert placed.counted_at is not None
    lease = {"granted_s": 86_400, "warn_at": turns.now, "expires_at": turns.now + timedelta(days=1)}
    ReplicaLink.objects.get_or_create(rp=rp, peer=placed.domain, defaults={**lease, "changed_at": turns.now})
    load_is(rp.id, 5_000)
    PlacedReplicaRow.objects.update(vector={"f" * 16: 9}, marked_at=turns.now)
    turns.now += timedelta(seconds=BEHIND_S - 10)
    vector_of(placed.domain, rp.id, {"f" * 16: 9})
    turns.plan()
    placed.refresh_from_db()
    assert placed.marked_at == turns.now - timedelta(seconds=3), "it reached its mark, and is given the next one"
    PlacedReplicaRow.objects.update(vector={"f" * 16: 10})
    turns.now += timedelta(seconds=BEHIND_S - 10)
    assert turns.plan(3) == 0, "not yet"
    turns.now += timedelta(seconds=20)
    assert turns.plan(8) == 1
    made = decision()
    assert (made.reason, made.retires) == ("failing", [placed.domain])
    placement_carry_out()
    assert ("release", placed.domain) in volunteers.asked


def test_a_clock_that_is_set_back_leaves_readers_where_they_moved(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    load_is(rp.id, 9_000)
    turns.plan(4)
    placement_carry_out()
    turns.plan()
    turns.now -= timedelta(hours=5)
    (held,) = [one for one in observation(own_state(), {}, turns.now, bounds_all()).rps[0].replicas if one.counts]
    assert (held.spread, held.failing) == (1.0, False)


def test_a_proposal_waits_for_a_person_and_is_not_repeated(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    load_is(rp.id, 9_000)
    assert turns.plan(8) == 1
    assert placement_carry_out() == 0
    assert decision().state == "proposed"
    decision_approve(decision=str(decision().id), principal=ROOT)
    assert placement_carry_out() == 1
    assert (decision().state, decision().decided_by) == ("done", "root")
    assert AuditEntry.objects.filter(action="placement.approve").exists()
    with pytest.raises(Conflict, match="is done"):
        decision_reject(decision=str(decision().id), principal=ROOT)


def test_a_rejected_proposal_is_over_and_an_old_one_expires(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    load_is(rp.id, 9_000)
    turns.plan(4)
    decision_reject(decision=str(decision().id), principal=ROOT, note="maintenance")
    assert (decision().state, decision().detail) == ("rejected", "maintenance")
    turns.plan()
    old = decision()
    assert old.state == "proposed"
    turns.plan(every_s=0)
    turns.now += timedelta(seconds=1000)
    turns.plan()
    old.refresh_from_db()
    assert old.state == "expired"
    assert volunteers.asked == []


def test_every_change_is_an_event_as_the_catalogue_says(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    load_is(rp.id, 9_000)
    with Proof(rp.id) as proof:
        placement_bound(reference=rp.id, principal=ROOT, mode="apply", pinned=["b.test"])
        turns.plan(4)
        placement_carry_out()
    assert {"placement.bounded", "placement.decided", "placement.changed", "replica.added"} <= set(proof.types)
    decided = [
        it["data"]["decision"]["state"]
        for it in events_at(admin_id(rp.id))
        if ".placement." in it["type"] and "decision" in it["data"]
    ]
    assert decided == ["approved", "working", "working", "done"]


def test_off_is_off_and_one_rp_may_differ_from_the_domain(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    load_is(rp.id, 9_000)
    placement_bound(reference=rp.id, principal=ROOT, mode="apply")
    placement_bound(reference=None, principal=ROOT, mode="off")
    assert turns.plan(5) == 0
    assert not PlannerRecord.objects.exists()
    placement_bound(reference=None, principal=ROOT, mode="advise")
    turns.plan(5)
    assert decision().state == "approved"
    placement_bound(reference=rp.id, principal=ROOT, mode="off")
    PlacementDecision.objects.all().delete()
    assert turns.plan(5) == 0


@pytest.mark.parametrize("when", ["before the effect", "after the effect"])
def test_a_planner_that_is_killed_between_record_and_effect_is_continued_once(
    when: str, rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    load_is(rp.id, 9_000)
    turns.plan(4)
    volunteers.dies = True
    if when == "before the effect":
        volunteers.refuses = {name: KeyboardInterrupt() for name in NAMES}  # type: ignore[misc]
    with pytest.raises(KeyboardInterrupt):
        placement_carry_out()
    assert decision().state == "working"
    volunteers.dies, volunteers.refuses = False, {}
    assert placement_carry_out() == 0, "claimed"
    assert placement_carry_out(now=timezone.now() + timedelta(seconds=CLAIM_S + 1)) == 1
    assert decision().state == "done"
    assert ReplicaAdmission.objects.filter(rp=rp, revoked=False).count() == 1
    held = PlacedReplicaRow.objects.get().domain
    load_is(rp.id, 4_500)  # half of the readers have moved
    turns.plan(3)
    assert [(one.reason, one.adds, one.retires) for one in PlacementDecision.objects.all()] == [("load", [held], [])]


def test_a_decision_that_was_not_carried_out_in_time_is_abandoned(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    load_is(rp.id, 9_000)
    turns.plan(4)
    assert placement_carry_out(now=timezone.now() + timedelta(seconds=ABANDON_S + 60)) == 0
    assert (decision().state, volunteers.asked) == ("abandoned", [])


def test_a_domain_that_refuses_is_not_asked_again_and_the_other_is(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    refusal = PeerError("refused", "no", document={"code": "forbidden", "detail": "The standing policy accepts none."})
    volunteers.refuses = dict.fromkeys(NAMES, refusal)
    load_is(rp.id, 9_000)
    for _ in range(12):
        turns.plan(3)
        placement_carry_out()
    assert sorted(volunteers.asked) == [("invite", "b.test"), ("invite", "c.test")]
    assert decision().state == "failed"
    assert "standing policy" in decision().detail
    assert not PlacedReplicaRow.objects.exists()
    alarm = Alarm.objects.get(rule="placement")
    assert (alarm.rp, alarm.cleared_at) == (rp.id, None)
    assert "No domain that may be invited has room" in alarm.detail
    load_is(rp.id, 10)
    turns.plan()
    alarm.refresh_from_db()
    assert alarm.cleared_at is not None


def test_a_domain_that_does_not_answer_probes_is_not_invited(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    volunteers.silent = {"b.test"}
    load_is(rp.id, 9_000)
    turns.plan(6)
    assert decision().adds == ["c.test"]


def test_a_replica_that_is_used_stays_when_it_is_released(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    load_is(rp.id, 9_000)
    turns.plan(4)
    placement_carry_out()
    turns.plan()
    used = PeerError("refused", "used", document={"code": "conflict", "detail": "2 durable subscriptions would end."})
    used.code = "conflict"
    volunteers.refuses = dict.fromkeys(NAMES, used)
    load_is(rp.id, 100)
    turns.now += timedelta(seconds=3700)
    turns.plan(5, every_s=100.0)
    placement_carry_out()
    assert (decision().state, decision().retires) == ("failed", [volunteers.asked[-1][1]])
    before = PlacementDecision.objects.count()
    turns.plan(20, every_s=300.0)
    assert PlacementDecision.objects.count() == before, "it is not the planner's any more"


def test_what_is_decided_is_shown_with_its_inputs(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns, client_of: Callable[..., APIClient]
) -> None:
    client = client_of("root", admin=True)
    load_is(rp.id, 9_000)
    turns.plan(4)
    plan = client.get("/api/v1/plan").json()
    assert (plan["mode"], plan["pressure"], len(plan["open"])) == ("advise", 0.9, 1)
    one = client.get(f"/api/v1/plan/decisions/{plan['open'][0]['id']}").json()
    assert one["inputs"]["pressure"] == 0.9
    assert "90%" in one["why"]
    assert client.post(f"/api/v1/plan/decisions/{one['id']}/approve", {}, format="json").json()["state"] == "approved"
    page = client.get("/api/v1/plan/decisions", {"rp": rp.id, "state": "open"}).json()
    assert [item["id"] for item in page["items"]] == [one["id"]]
    event = next(it for it in events_at(DOMAIN_ADMIN) if it["type"].endswith("placement.decided"))
    assert event["data"]["decision"]["inputs"] == one["inputs"]
    bounds: dict[str, Any] = {"histories": 3, "pinned": ["b.test"]}
    assert client.patch(f"/api/v1/plan/rps/{rp.id}", bounds, format="json").json()["histories"] == 3
    assert client.patch("/api/v1/plan", {"mode": "sometimes"}, format="json").status_code == 400
    wrong = client.patch(f"/api/v1/plan/rps/{rp.id}", {"excluded": ["b.test"]}, format="json")
    assert (wrong.status_code, "pinned and excluded both contain b.test" in wrong.json()["detail"]) == (400, True)
    wrong = client.patch(f"/api/v1/plan/rps/{rp.id}", {"replicas_max": 1}, format="json")
    assert "at most 2" in wrong.json()["detail"]


def test_histories_that_share_a_risk_are_named_in_an_alarm(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    placement_bound(reference=rp.id, principal=ROOT, histories=4)
    load_is(rp.id, 10)
    turns.plan(3)
    assert (sorted(decision().adds), decision().reason) == (["b.test", "c.test"], "histories")
    assert "No more than 3" in Alarm.objects.get(rule="placement").detail


def test_the_graph_of_states_ends_and_knows_every_state() -> None:
    assert set(GRAPH) == set(OPEN)
    assert {after for following in GRAPH.values() for after in following} | {"proposed"} == set(STATES)


def test_a_clock_that_was_set_back_does_not_stop_the_planner(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    load_is(rp.id, 9_000)
    turns.plan()
    turns.now = datetime(2020, 1, 1, tzinfo=turns.now.tzinfo)
    rp.__class__.objects.update(expires_at=timezone.now() + timedelta(days=9000))
    assert turns.plan(6) == 1


def test_histories_are_placed_by_operator_address_prefix_and_sponsor(volunteers: Volunteers, turns: Turns) -> None:
    founder = Signer("a.test", at=turns.now.timestamp())
    b = Signer("b.test", founder, at=turns.now.timestamp())
    records = [founder.record(url="https://10.1.2.3"), b.record(url="https://10.1.2.9", operator="example-hosting")]
    directory_store(records, (), now=turns.now)
    Peer.objects.filter(name="b.test").update(url="https://10.1.2.9")
    groups = {one.name: one.groups for one in domains_observed(peers_active(), {}, turns.now)}
    assert groups["b.test"] == (
        "host:10.1.2.9", "operator:example-hosting", "sponsor:a.test", "prefix:10.1.2.0/24", "zone:eu-1"
    )  # fmt: skip
    assert groups["c.test"] == ("host:c.test",), "of a peer outside the overlay only the address is known"


def test_a_turn_with_nothing_to_plan_is_recorded_at_times_only_and_at_once_when_there_is_load(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    turns.plan()
    recorded = PlannerRecord.objects.get().at
    turns.plan(3, every_s=2.0)
    assert PlannerRecord.objects.get().at == recorded, "nothing has changed"
    turns.plan(3, every_s=2.0)
    shown = PlannerRecord.objects.get().at
    assert shown > recorded, "the pressure that people see is not old"
    load_is(rp.id, 9_000)
    turns.plan(every_s=2.0)
    record = PlannerRecord.objects.get()
    assert record.at > shown
    assert record.seen["pressure"] == 0.9
    assert turns.plan(3) == 1, "as soon as if each turn had been recorded"


def test_a_turn_that_has_a_shortfall_to_clear_is_recorded(
    rp: RendezvousPoint, volunteers: Volunteers, turns: Turns
) -> None:
    apply()
    turns.plan()
    PlannerRecord.objects.update(
        shortfalls=[{"rp": rp.id, "about": "load", "wanted": 2.0, "reachable": 1.0, "why": ""}]
    )
    turns.plan()
    assert PlannerRecord.objects.get().shortfalls == []
