"""Observations of other domains' conduct: what forwarding sees reaches the process of the overlay, and its effects reach the links."""

from __future__ import annotations

import time
from datetime import timedelta

import msgspec
import pytest
from django.utils import timezone

from eventing.core.timestamps import timestamp
from eventing.log import watermarks
from eventing.membership.process.picture import NO_FIGURES
from eventing.membership.rules.observations import (
    LINK,
    DeedObserved,
    Observation,
    QueuesObserved,
    VectorsObserved,
    input_of,
    observations_read,
)
from eventing.membership.shapes import OverlayHealth, OverlayPicture, OverlayScore, OverlaySuspicion
from eventing.overlay import broadcast, link_state
from eventing.overlay.dissemination import EARLY_S
from eventing.overlay.scores import Deed, QueuesFull, VectorsShown
from eventing.peering.models import PeerDelivery
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire import messages as wire
from eventing.replication.scoring import comparison, effects
from eventing.replication.scoring.comparison import links_compare
from eventing.replication.scoring.effects import Avoided, avoided, links_demote
from eventing.replication.selectors.forwarding import participations
from eventing.replication.selectors.regions import region_of
from eventing.replication.services import conduct
from eventing.replication.services.conduct import conduct_flush, conduct_note
from eventing.store.client import client as redis_client
from eventing.store.overlay_pictures import picture_store
from eventing.store.overlay_queues import overlay_lease, overlay_take
from tests.peering.other_domain import OtherDomain
from tests.replication import shared_rp
from tests.replication.answering import FakePeer, forward_woken, own, publish
from tests.replication.shared_rp import Origin, link, peer_made, send, send_runs

pytestmark = pytest.mark.usefixtures("shared_stores")
OWNER = "test"


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> shared_rp.Scene:
    """A shared rendezvous point, and a process that runs the overlay; everything is handed over at once."""
    monkeypatch.setattr(conduct, "FLUSH_S", 0.0)
    monkeypatch.setattr(conduct, "FAULTS_S", 0.0)
    monkeypatch.setattr(effects, "READ_S", 0.0)
    assert overlay_lease(OWNER, 60_000).acquire()
    return shared_rp.Scene()


def handed_over() -> list[Observation]:
    found: list[Observation] = []
    while entries := overlay_take(OWNER, 0.01):
        for sender, data in entries:
            assert not sender
            found += observations_read(data)
    return found


def region(rp: str) -> str:
    return region_of(participations([rp], fresh=True)[rp], timezone.now())


def test_events_that_a_peer_delivers_first_are_its_deeds_in_their_region(scene: shared_rp.Scene) -> None:
    run = Origin(scene.b, scene.rp).run(3)
    send_runs(scene.peer, scene.rp, run)
    send_runs(scene.other, scene.rp, msgspec.structs.replace(run, path=["b.test", "c.test"]))
    assert handed_over() == [DeedObserved(region(scene.rp), "b.test", "FIRST", 3)]


def test_a_run_that_is_not_genuine_is_the_fault_of_who_carried_it(scene: shared_rp.Scene) -> None:
    forged = Origin(OtherDomain("b.test"), scene.rp).run(3, "c.test")
    send_runs(scene.other, scene.rp, forged)
    assert handed_over() == [DeedObserved(region(scene.rp), "c.test", "INVALID", 1)]


def test_a_fault_that_a_busy_machine_causes_as_well_counts_once_in_a_while(scene: shared_rp.Scene) -> None:
    for _ in range(5):
        conduct_note(Deed.SILENT, peer="b.test", rp=scene.rp)
    conduct_note(Deed.INVALID, peer="b.test", rp=scene.rp, count=2)
    conduct_flush()
    deeds = {(one.deed, one.count) for one in handed_over() if isinstance(one, DeedObserved)}
    assert deeds == {("SILENT", 1), ("INVALID", 2)}


def test_a_feed_that_a_peer_prunes_and_grafts_at_once_counts_once_in_a_while_and_not_in_other_requests(
    scene: shared_rp.Scene, peer: FakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)

    def graft(feed: str, after_s: float) -> list[Observation]:
        nonlocal now
        forward_woken(scene.rp)
        now += after_s
        send(scene.peer, wire.RpPart(scene.rp, peer.vectors.get(scene.rp, {}), graft=[feed]))
        return [one for one in handed_over() if isinstance(one, DeedObserved) and one.deed == "FLAPPING"]

    publish(scene.rp, 1)
    assert graft(own(scene.rp), 0.5) == [], "it had pruned nothing"
    peer.prunes = [own(scene.rp), "a" * 16]
    send(scene.peer, wire.RpPart(scene.rp, peer.vectors[scene.rp], graft=[own(scene.rp)]))
    publish(scene.rp, 1)
    assert graft("a" * 16, 0.5) == [], "of a feed that is not here a prune says nothing"
    publish(scene.rp, 1)
    assert graft(own(scene.rp), 0.5) == [DeedObserved(region(scene.rp), "b.test", "FLAPPING", 1)]
    publish(scene.rp, 1)
    assert graft(own(scene.rp), 0.5) == [], "one counts in a while"
    redis_client().delete("herald:peer:{b.test}:flapped")
    publish(scene.rp, 1)
    assert graft(own(scene.rp), EARLY_S + 0.1) == [], "it was patient"


def test_a_peer_that_has_the_same_events_sent_again_and_again_does_not_take_what_is_sent(
    scene: shared_rp.Scene,
) -> None:
    misbehaviour_note("false-loss", carrier="b.test", rp=scene.rp)
    assert handed_over() == [DeedObserved(region(scene.rp), "b.test", "SLOW", 1)]


def test_where_no_process_runs_the_overlay_nothing_is_scored(scene: shared_rp.Scene) -> None:
    overlay_lease(OWNER, 60_000).release()
    send_runs(scene.peer, scene.rp, Origin(scene.b, scene.rp).run(3))
    assert handed_over() == []


def test_vectors_of_a_region_s_links_are_shown_and_peers_that_do_not_take_what_waits(scene: shared_rp.Scene) -> None:
    third = OtherDomain("d.test")
    peer_made(third)
    link(scene.rp, third)
    origin = Origin(scene.b, scene.rp)
    send_runs(scene.peer, scene.rp, origin.run(3), have={origin.feed.key: 3})
    handed_over()
    late = timezone.now() - timedelta(seconds=comparison.QUEUE_S + 1)
    PeerDelivery.objects.create(
        peer_id="c.test", backlog=comparison.QUEUE_EVENTS, oldest_at=late, changed_at=timezone.now()
    )
    links_compare()
    vectors, queues = handed_over()
    assert isinstance(vectors, VectorsObserved)
    feed = f"{scene.rp} {origin.feed.key}"
    assert (vectors.region, vectors.ours[feed], vectors.theirs["b.test"][feed]) == (region(scene.rp), 3, 3)
    assert queues == QueuesObserved(((LINK, "c.test"),), 3)
    assert isinstance(input_of(vectors), VectorsShown)
    assert input_of(queues) == QueuesFull(((LINK, "c.test"),), 3)


def shown(*scores: OverlayScore, suspected: tuple[str, ...] = ()) -> None:
    """Show a picture as the process of the overlay does."""
    at = timestamp(timezone.now())
    health = OverlayHealth(state="well", wait_factor=1, observed=0, silent=0, accused_by=[])
    suspicions = [OverlaySuspicion(domain=name, since=at, accusers=[]) for name in suspected]
    picture = OverlayPicture(
        at=at, whole=NO_FIGURES, zones=[], suspected=suspicions, health=health, scores=list(scores), load=None
    )
    picture_store(msgspec.msgpack.encode(picture), 60.0)


def score(peer: str, of: str, *in_force: str) -> OverlayScore:
    return OverlayScore(peer=peer, region=of, score=-4.0, reason="", effects=list(in_force), held_back_s=0)


def test_the_links_with_a_demoted_domain_become_lazy_in_its_region_only(scene: shared_rp.Scene) -> None:
    origin = Origin(scene.b, scene.rp)
    for peer in (scene.peer, scene.other):
        send(peer, wire.RpPart(scene.rp, have={origin.feed.key: 3}))
    shown(score("b.test", "elsewhere", "demoted"), score("c.test", region(scene.rp), "demoted"))
    assert links_demote() == 1
    eager = {
        name: origin.feed.key not in watermarks.links_read(name, [scene.rp])[scene.rp].tree.lazy
        for name in ("b.test", "c.test")
    }
    assert eager == {"b.test": True, "c.test": False}


def test_who_is_not_chosen_condemned_or_suspected_gets_no_further_links(scene: shared_rp.Scene) -> None:
    shown(score("b.test", "r", "not-chosen"), score("c.test", LINK, "condemned"), suspected=("d.test",))
    found = avoided()
    assert [found.chooses("r", name) for name in ("b.test", "c.test", "d.test", "e.test")] == [
        False,
        False,
        False,
        True,
    ]
    assert found.chooses("another", "b.test")
    assert (found.condemns("c.test"), found.condemns("b.test")) == (True, False)


def test_without_a_picture_nobody_is_avoided(scene: shared_rp.Scene) -> None:
    assert avoided() == Avoided()
    assert links_demote() == 0
    assert broadcast.demoted(link_state.NEW, {}).tree == link_state.NEW.tree
