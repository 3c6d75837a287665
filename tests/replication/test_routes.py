"""Routes of an RP with a target, in Redis and SQL: what is measured of links becomes planned feeds, and what arrived is counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

import msgspec
import pytest
from django.utils import timezone

from eventing.core.ids import admin_id
from eventing.log import watermarks
from eventing.membership.ports import links_measured, route_participants
from eventing.operations.alarms.evaluation import Finding
from eventing.operations.alarms.measurements import Measurements
from eventing.outbox.models import OutboxEntry
from eventing.overlay.link_rows import MeasuredLink, links_of, links_payload
from eventing.overlay.link_state import Link
from eventing.peering.wire import messages as wire
from eventing.replication.reliability import arrivals
from eventing.replication.reliability.planning import decision_of, routes_plan
from eventing.replication.reliability.presenting import reliability_shown
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.reliability import IN_TIME_S
from eventing.rps.rules.watches import WatchRule
from eventing.rps.selectors.watches import InForce, Watched
from eventing.store.link_rows import LinkRow, link_rows_store
from eventing.store.link_tallies import delivery_note, probe_note, tallies_flush
from eventing.store.rp_routes import arrivals_add, arrivals_read, routed_rps
from tests.admin_rp.proving import validate
from tests.replication.shared_rp import Origin, Scene, send, send_runs

pytestmark = pytest.mark.usefixtures("shared_stores")
ME = "localhost"


@pytest.fixture
def scene() -> Iterator[Scene]:
    """An RP of this domain with a target, and b and c, whose links with each other and with this domain are measured."""
    tallies_flush(at_once=True)
    made = Scene()
    aim(made, 0.999)
    for peer in ("b.test", "c.test"):
        trials(peer, 1000)
    rows(b={ME: 0.99, "c.test": 0.99}, c={ME: 0.99, "b.test": 0.99})
    yield made
    tallies_flush(at_once=True)


def aim(scene: Scene, target: float | None) -> None:
    RendezvousPoint.objects.filter(id=scene.rp).update(reliability=target)


def trials(peer: str, delivered: int, lost: int = 0) -> None:
    for number in range(delivered + lost):
        delivery_note(peer, delivered=number < delivered, took_s=0.01)
    tallies_flush(at_once=True)


def rows(**stated: dict[str, float]) -> None:
    """Rows of other participants, as gossip brings them."""
    link_rows_store(
        [
            LinkRow(
                f"{name}.test",
                3,
                links_payload(MeasuredLink(peer, round(of * 1e6), 5, 1, 512) for peer, of in links.items()),
            )
            for name, links in stated.items()
        ],
        60.0,
    )


def link_with(scene: Scene, peer: str) -> Link:
    return watermarks.links_read(peer, [scene.rp])[scene.rp]


def told(scene: Scene, kind: str) -> list[dict[str, object]]:
    """Events that were committed for the RP's administrative log, checked against the catalogue."""
    where = admin_id(scene.rp)
    entries = OutboxEntry.objects.filter(rp=where, kind="event").order_by("pk").values_list("content", flat=True)
    found = [{**one, "datacontenttype": "application/json"} for one in entries if one["type"] == f"io.herald.{kind}"]
    for event in found:
        validate(event, where)
    return [event["data"] for event in found]


def alarmed(scene: Scene, now: float) -> list[Finding]:
    """What the rule `reliability` of the RP finds at a time."""
    rule = WatchRule("r", scene.rp, "reliability", "warning", 0, {"missed_s": 60})
    watched = Watched(scene.rp, "/localhost/x/", timezone.now(), (rule,))
    return [finding for one in Measurements().measure(InForce((), (watched,)), now) for finding in one.findings]


def test_both_links_are_planned_for_a_feed_that_the_tree_alone_carries_too_badly(scene: Scene) -> None:
    origin = Origin(scene.b, scene.rp)
    send_runs(scene.peer, scene.rp, origin.run(3))
    assert routes_plan(at_once=True) == 1
    decision = decision_of(scene.rp)
    assert decision is not None
    assert decision.state == "met"
    assert len(decision.chosen["b.test"]) == 3, "a path by c beside the direct link, and all of it for c"
    for peer in ("b.test", "c.test"):
        assert origin.feed.key in link_with(scene, peer).tree.planned
    (planned,) = told(scene, "routes.planned")
    assert planned["reason"] == "The rendezvous point has a target reliability now."
    assert routes_plan(at_once=True) == 0, "nothing changed"


def test_a_planned_feed_stays_eager_whatever_either_side_prunes(scene: Scene) -> None:
    origin = Origin(scene.b, scene.rp)
    run = origin.run(3)
    send_runs(scene.peer, scene.rp, run)
    routes_plan(at_once=True)
    answer = send_runs(scene.other, scene.rp, msgspec.structs.replace(run, path=["b.test", "c.test"]))
    assert answer.prune == [], "the second copy is wanted"
    assert origin.feed.key not in link_with(scene, "c.test").tree.lazy


def test_a_link_that_drops_events_and_answers_probes_is_left_for_others(scene: Scene) -> None:
    send_runs(scene.peer, scene.rp, Origin(scene.b, scene.rp).run(3))
    aim(scene, 0.95)
    routes_plan(at_once=True)
    before = decision_of(scene.rp)
    assert before is not None
    assert ("b.test", ME) in before.chosen["b.test"]
    for _ in range(3000):
        probe_note("b.test", answered=True, took_s=0.01)
    trials("b.test", 100, 1500)
    assert routes_plan(at_once=True) == 1
    after = decision_of(scene.rp)
    assert after is not None
    assert after.state == "met"
    assert after.chosen["b.test"] == (("b.test", "c.test"), ("c.test", ME))
    assert told(scene, "routes.planned")[-1]["reason"] == after.reason
    assert after.reason.startswith("The link of b.test and localhost delivers 0")


def test_a_target_that_no_choice_meets_is_reported_with_the_best_and_its_end_as_well(scene: Scene) -> None:
    send_runs(scene.peer, scene.rp, Origin(scene.b, scene.rp).run(1))
    aim(scene, 0.999999)
    routes_plan(at_once=True)
    began = time.time()
    assert [finding.about for finding in alarmed(scene, began + 61)] == ["b.test", "c.test", ME]
    assert [finding.broken for finding in alarmed(scene, began)] == [False]
    (missed,) = told(scene, "reliability.missed")
    assert str(missed["missed"]).count("unreachable: best 0.99") >= 1
    aim(scene, 0.99)
    routes_plan(at_once=True)
    assert [one["state"] for one in told(scene, "reliability.recovered")] == ["met"]
    assert [finding.broken for finding in alarmed(scene, began + 61)] == [False]


def test_without_a_target_nothing_is_planned_and_a_target_that_is_taken_away_leaves_links_as_trees_make_them(
    scene: Scene,
) -> None:
    origin = Origin(scene.b, scene.rp)
    send_runs(scene.peer, scene.rp, origin.run(3))
    aim(scene, None)
    assert routes_plan(at_once=True) == 0
    assert decision_of(scene.rp) is None
    assert link_with(scene, "b.test").tree.planned == frozenset()
    aim(scene, 0.999)
    routes_plan(at_once=True)
    assert link_with(scene, "b.test").tree.planned
    aim(scene, None)
    routes_plan(at_once=True)
    link = link_with(scene, "b.test")
    assert link.tree.planned == frozenset()
    assert origin.feed.key not in link.tree.lazy, "it is pruned when it proves redundant, not before"
    assert routed_rps() == []


def test_what_is_known_of_few_links_only_is_no_miss(scene: Scene) -> None:
    rows()
    routes_plan(at_once=True)
    decision = decision_of(scene.rp)
    assert decision is not None
    link_rows_store([LinkRow("c.test", 3, links_payload([]))], 60.0)
    routes_plan(at_once=True)
    decision = decision_of(scene.rp)
    assert decision is not None
    assert decision.state == "unknown"
    assert told(scene, "reliability.missed") == []


def test_this_domain_states_its_links_while_it_takes_part_in_an_rp_with_a_target_and_only_then(scene: Scene) -> None:
    links = links_of(links_measured())
    assert links is not None
    assert [(link.peer, link.trials) for link in links] == [("b.test", 512), ("c.test", 512)]
    assert route_participants() == ["b.test", "c.test"]
    aim(scene, None)
    assert links_measured() == b""
    assert route_participants() == []


def test_events_count_as_arrived_by_what_participants_state_to_hold_in_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(arrivals, "time", SimpleNamespace(monotonic=lambda: now))
    arrivals.arrivals_measure()
    origin = Origin(scene.b, scene.rp)
    send_runs(scene.peer, scene.rp, origin.run(4))
    now += arrivals.MARK_S
    arrivals.arrivals_measure()
    send(scene.other, wire.RpPart(scene.rp, {origin.feed.key: 3}))
    now += IN_TIME_S
    arrivals.arrivals_measure()
    found = arrivals_read(scene.rp, ["b.test", "c.test"])
    assert found["c.test"].share == pytest.approx(0.75)
    assert found["b.test"].share is None, "its own events"
    send(scene.other, wire.RpPart(scene.rp, {origin.feed.key: 4}))
    now += IN_TIME_S
    arrivals.arrivals_measure()
    assert arrivals_read(scene.rp, ["c.test"])["c.test"].share == pytest.approx(0.75), "late is late"


def test_plan_and_measurement_are_shown_for_each_participant(scene: Scene) -> None:
    row = RendezvousPoint.objects.get(id=scene.rp)
    assert reliability_shown(row).state == "none", "before the first plan"
    send_runs(scene.peer, scene.rp, Origin(scene.b, scene.rp).run(1))
    routes_plan(at_once=True)
    arrivals_add({(scene.rp, "c.test"): (9, 1)})
    found = reliability_shown(row)
    assert (found.target, found.within_s, found.state) == (0.999, IN_TIME_S, "met")
    of = {one.domain: one for one in found.participants}
    assert list(of) == ["b.test", "c.test"]
    assert (of["c.test"].planned or 0.0) >= 0.999
    assert of["c.test"].measured == pytest.approx(0.9)
    assert of["b.test"].measured is None
    assert all(one.states_links for one in found.participants)
    assert {tuple(link.ends) for link in found.links} == {(ME, "b.test")[::-1], ("c.test", ME), ("b.test", "c.test")}
    row.reliability = None
    assert (reliability_shown(row).target, reliability_shown(row).links) == (None, [])
