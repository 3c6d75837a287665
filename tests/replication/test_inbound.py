"""replication/forwarding/inbound.py against every attack of docs/federation.md: nothing untrue comes in, everything is counted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from eventing.conf import config
from eventing.core import merkle
from eventing.core.errors import RateLimited
from eventing.core.events.feeds import FEEDS_MAX, ORIGIN_FEEDS_MAX, Feed
from eventing.core.seals.heads import HEAD_BYTES
from eventing.core.signing import Signed
from eventing.log import control, federated, federated_bulk, gaps, watermarks
from eventing.log.federated import ReceivedRun
from eventing.log.federated_bulk import Incoming
from eventing.overlay import link_state, link_vector
from eventing.peering.models import Evidence, Peer, Quarantine
from eventing.peering.services.misbehaviour import misbehaviour_flush
from eventing.peering.wire import messages as wire
from eventing.peering.wire.endpoints import Sender
from eventing.replication.forwarding import inbound, run_validation
from eventing.replication.ports import forward_start
from eventing.replication.services.sealing import seal_own
from eventing.store import keys, peer_state
from eventing.store.client import client as redis_client
from tests.log.runs import runs_after
from tests.peering.other_domain import OtherDomain
from tests.planes import events_made
from tests.replication import shared_rp
from tests.replication.shared_rp import (
    BOUNDS,
    Origin,
    admit,
    counted,
    head,
    held,
    link,
    new_rp,
    peer_made,
    send,
    send_runs,
)

pytestmark = pytest.mark.usefixtures("shared_stores")


class Scene(shared_rp.Scene):
    """`b` has a feed."""

    def __init__(self) -> None:
        super().__init__()
        self.origin = Origin(self.b, self.rp)
        self.key = self.origin.feed.key


@pytest.fixture
def scene() -> Scene:
    return Scene()


def epoch(number: int) -> str:
    """One of many."""
    return "e" + oct(number)[2:].zfill(4).translate(str.maketrans("01", "ab"))


def woken(peer: Peer) -> set[str]:
    return {rp.decode() for rp in redis_client().smembers(f"herald:peer:{{{peer.name}}}:dirty")}  # type: ignore[union-attr]


def test_true_runs_come_in_once_in_order_and_go_on_to_the_other_links(scene: Scene) -> None:
    runs = [scene.origin.run(3), scene.origin.run(2)]
    answer = send_runs(scene.peer, scene.rp, *runs, have={scene.key: 5})
    assert (answer.have, answer.error, answer.graft, answer.prune, answer.seals) == ({scene.key: 5}, "", [], [], [])
    assert held(scene.rp) == runs[0].events + runs[1].events
    assert woken(scene.other) == {scene.rp}
    assert woken(scene.peer) == set()
    assert counted() == {}


def test_an_event_that_its_origin_took_before_data_was_checked_is_taken_as_it_is(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It declares JSON and carries base64 of something else, which is refused of a publisher today."""
    event = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","datacontenttype":"application/json","data_base64":"ew=="}'
    monkeypatch.setattr(scene.origin, "events", lambda count: [event])
    answer = send_runs(scene.peer, scene.rp, scene.origin.run(1))
    assert (answer.have, answer.error) == ({scene.key: 1}, "")
    assert held(scene.rp) == [event]
    assert counted() == {}


def test_what_was_taken_of_a_peer_is_counted_copies_apart(scene: Scene) -> None:
    first, second = scene.origin.run(3), scene.origin.run(2)
    send_runs(scene.peer, scene.rp, first)
    send_runs(scene.peer, scene.rp, first, second)
    assert peer_state.traffic_taken("b.test") == {"requests": 2, "runs": 3, "events": 5, "copies": 3, "sent": 0}
    assert peer_state.traffic_taken("c.test") == {"requests": 0, "runs": 0, "events": 0, "copies": 0, "sent": 0}


def test_the_same_runs_again_change_nothing_and_prune_nothing_when_they_come_by_the_same_link(scene: Scene) -> None:
    runs = [scene.origin.run(3), scene.origin.run(2)]
    for _ in range(3):
        answer = send_runs(scene.peer, scene.rp, *runs, have={scene.key: 5})
    assert held(scene.rp) == runs[0].events + runs[1].events
    assert answer.prune == []
    assert counted() == {}


def test_a_run_that_had_come_by_another_link_is_answered_by_a_prune(scene: Scene) -> None:
    run = scene.origin.run(3)
    send_runs(scene.peer, scene.rp, run, have={scene.key: 3})
    again = msgspec.structs.replace(run, path=["b.test", "c.test"])
    answer = send_runs(scene.other, scene.rp, again, have={scene.key: 3})
    assert answer.prune == [scene.key]
    assert len(held(scene.rp)) == 3


def test_a_carrier_is_as_good_as_the_origin(scene: Scene) -> None:
    answer = send_runs(scene.other, scene.rp, scene.origin.run(3, "c.test"))
    assert answer.have == {scene.key: 3}
    assert link_state.holds(watermarks.links_read("b.test", [scene.rp])[scene.rp], scene.key) == 3


@pytest.mark.parametrize("attack", ["altered", "dropped from the middle", "reordered", "added"])
def test_tampering_by_a_carrier(scene: Scene, attack: str) -> None:
    run = scene.origin.run(3, "c.test")
    one, two, three = run.events
    run.events = {
        "altered": [one, two.replace(b'"t"', b'"x"'), three],
        "dropped from the middle": [one, three],
        "reordered": [one, three, two],
        "added": [one, two, three, three],
    }[attack]
    answer = send_runs(scene.other, scene.rp, run)
    assert answer.have == {}
    assert held(scene.rp) == []
    assert counted() == {("tampered", "c.test", "b.test"): 1}


def test_dropping_a_whole_run_from_the_middle_leaves_a_hole_that_is_grafted(scene: Scene) -> None:
    first, _, third = (scene.origin.run(2, "c.test") for _ in range(3))
    answer = send_runs(scene.other, scene.rp, first, third)
    assert answer.have == {scene.key: 2}
    assert answer.graft == [scene.key]
    assert held(scene.rp) == first.events
    assert woken(scene.peer) == {scene.rp}


def test_forging_a_seal_with_another_key(scene: Scene) -> None:
    forged = Origin(OtherDomain("b.test"), scene.rp).run(3, "c.test")
    send_runs(scene.other, scene.rp, forged)
    assert held(scene.rp) == []
    assert counted() == {("forged", "c.test", "b.test"): 1}


def test_a_seal_of_another_rendezvous_point_is_replayed_here(scene: Scene) -> None:
    send_runs(scene.peer, scene.rp, Origin(scene.b, new_rp()).run(3))
    assert held(scene.rp) == []
    assert counted() == {("tampered", "b.test", ""): 1}


def test_an_origin_that_the_home_did_not_admit_or_whose_admission_has_ended(scene: Scene) -> None:
    stranger, late = OtherDomain("d.test"), OtherDomain("e.test")
    for domain in (stranger, late):
        peer_made(domain)
    admit(scene.rp, late, for_s=-3600)
    for domain in (stranger, late):
        send_runs(scene.peer, scene.rp, Origin(domain, scene.rp).run(1, "b.test"))
    assert held(scene.rp) == []
    assert counted() == {("not-admitted", "b.test", "d.test"): 1, ("not-admitted", "b.test", "e.test"): 1}


@pytest.mark.parametrize("path", [[], ["c.test"], ["b.test", "d.test"], ["b.test", "d.test", "d.test", "c.test"]])
def test_a_path_that_cannot_be_true(scene: Scene, path: list[str]) -> None:
    send_runs(scene.other, scene.rp, msgspec.structs.replace(scene.origin.run(1), path=path))
    assert held(scene.rp) == []
    assert counted() == {("loop", "c.test", "b.test"): 1}


def test_a_seal_that_does_not_follow_the_one_before(scene: Scene) -> None:
    send_runs(scene.peer, scene.rp, scene.origin.run(2, previous=b"x" * 32))
    assert held(scene.rp) == []
    assert counted() == {("unchained", "b.test", ""): 1}


def test_a_seal_that_names_another_one_before_it_than_the_one_there_is_proves_two_stories(scene: Scene) -> None:
    send_runs(scene.peer, scene.rp, scene.origin.run(2))
    send_runs(scene.peer, scene.rp, scene.origin.run(2, previous=b"x" * 32))
    assert len(held(scene.rp)) == 2
    assert counted() == {("unchained", "b.test", ""): 1, ("equivocation", "b.test", ""): 1}
    assert Quarantine.objects.get().origin == "b.test"


def test_a_seal_whose_digest_is_stored_with_the_log_is_not_read_to_compare_its_successor(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_runs(scene.peer, scene.rp, scene.origin.run(2))
    read: list[tuple[str, str, int]] = []
    monkeypatch.setattr(inbound, "last_seals", lambda places: read.extend(places) or [None] * len(places))
    send_runs(scene.peer, scene.rp, scene.origin.run(2))
    assert read == []
    assert len(held(scene.rp)) == 4


def test_a_log_with_heads_instead_of_digests_is_compared_by_the_seal_itself(scene: Scene) -> None:
    """As logs are that were written by the version before."""
    for count in (2, 3):
        send_runs(scene.peer, scene.rp, scene.origin.run(count))
        field, name = f"x{scene.key}", keys.meta_key(scene.rp)
        redis_client().hset(name, field, redis_client().hget(name, field)[:HEAD_BYTES])  # type: ignore[index]
        assert head(scene.rp).foreign_digests == {}
        assert len(head(scene.rp).foreign_heads[scene.key]) == HEAD_BYTES
    send_runs(scene.peer, scene.rp, scene.origin.run(1, previous=b"x" * 32))
    assert len(held(scene.rp)) == 5
    assert counted() == {("unchained", "b.test", ""): 1, ("equivocation", "b.test", ""): 1}


def test_equivocation_is_kept_as_proof_and_the_origin_quarantined_whoever_carries_it(scene: Scene) -> None:
    one, other = scene.origin, Origin(scene.b, scene.rp)
    send_runs(scene.peer, scene.rp, one.run(3))
    send_runs(scene.other, scene.rp, other.run(3, "c.test"))
    assert Evidence.objects.count() == 1
    assert Quarantine.objects.get().origin == "b.test"
    assert counted()[("equivocation", "c.test", "b.test")] == 1
    send_runs(scene.peer, scene.rp, one.run(3))
    assert len(held(scene.rp)) == 3
    assert counted()[("quarantined", "b.test", "")] == 1


def test_a_proof_that_a_peer_spreads_is_checked_and_not_believed(scene: Scene) -> None:
    one, other = scene.origin.run(3), Origin(scene.b, scene.rp).run(3)
    false = Origin(OtherDomain("b.test"), scene.rp).run(3)
    send(scene.other, evidence=[wire.SealPair(one.seal, false.seal)])
    assert not Quarantine.objects.exists()
    assert counted() == {("forged", "c.test", "b.test"): 1}
    send(scene.other, evidence=[wire.SealPair(one.seal, other.seal)])
    assert Quarantine.objects.get().origin == "b.test"


def test_a_proof_that_is_new_is_told_to_every_peer_once_and_one_that_is_known_to_nobody(scene: Scene) -> None:
    for number in range(3):
        peer_made(OtherDomain(f"d{number}.test"), gossip=number > 0)
    sent: list[str] = []
    forward_start.connect(sent.append)
    stories = [scene.origin.seal(scene.origin.events(1)) for _ in range(4)]
    proof, *more = (wire.SealPair(stories[0], other) for other in stories[1:])
    send(scene.other, evidence=[proof, *more, *[proof] * 60])
    assert sorted(sent) == ["b.test", "d1.test", "d2.test"]
    peer_state.hold_off("b.test", 60.0)  # it fails: its pause ends by no request of anybody else
    sent.clear()
    answer = send(scene.other, evidence=[proof] * 32 + [wire.SealPair(proof.other, proof.one)] * 32)
    assert answer == wire.ExchangeAnswer(wire.VERSION, [], 0.0)
    assert sent == []
    assert Evidence.objects.count() == 3
    assert counted() == {("equivocation", "c.test", "b.test"): 3}


def test_what_is_no_proof_is_counted_once_however_often_a_request_repeats_it(scene: Scene) -> None:
    false = Origin(OtherDomain("b.test"), scene.rp).run(3)
    send(scene.other, evidence=[wire.SealPair(scene.origin.run(3).seal, false.seal)] * 64)
    assert counted() == {("forged", "c.test", "b.test"): 1}


def test_no_proofs_are_taken_of_a_peer_that_takes_no_part_in_gossip(scene: Scene) -> None:
    Peer.objects.filter(name="c.test").update(gossip=False)
    one, other = (scene.origin.seal(scene.origin.events(1)) for _ in range(2))
    send(scene.other, evidence=[wire.SealPair(one, other)])
    assert not Evidence.objects.exists()
    assert counted() == {}


def test_what_an_origin_sealed_must_be_events(scene: Scene) -> None:
    events = [b'{"not": "an event"}']
    run = wire.SealedRun(scene.origin.seal(events), events, b"", ["b.test"])
    send_runs(scene.peer, scene.rp, run)
    assert held(scene.rp) == []
    assert counted() == {("malformed", "b.test", ""): 1}


@pytest.mark.parametrize("at_once", [64, 1])
@pytest.mark.parametrize("way", [["b.test"], ["b.test", "c.test"]], ids=["by-itself", "by-a-carrier"])
def test_an_origin_cannot_take_the_feed_places_of_all_others(scene: Scene, at_once: int, way: list[str]) -> None:
    """What nobody ever frees: one event in each of 64 epochs of its own choosing."""
    carrier = scene.peer if way == ["b.test"] else scene.other
    runs = [Origin(scene.b, scene.rp, epoch(number)).run(1, *way[1:]) for number in range(64)]
    for at in range(0, 64, at_once):
        answer = send_runs(carrier, scene.rp, *runs[at : at + at_once])
    assert len(answer.have) == ORIGIN_FEEDS_MAX
    misbehaviour_flush()
    assert counted() == {("oversize", way[-1], "b.test" if len(way) > 1 else ""): 64 - ORIGIN_FEEDS_MAX}
    assert watermarks.links_read("b.test", [scene.rp])[scene.rp].presumed.upto.keys() <= set(answer.have)
    honest = [Origin(scene.c, scene.rp, epoch(number)) for number in range(3)]  # put back from a copy twice
    for origin in honest:
        answer = send_runs(scene.other, scene.rp, origin.run(2))
        assert answer.have[origin.feed.key] == 2


def test_runs_of_feeds_that_are_here_ask_nothing_of_how_many_there_are(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    origins = [Origin(scene.b, scene.rp, epoch(number)) for number in range(ORIGIN_FEEDS_MAX)]
    monkeypatch.setattr(federated, "feeds_of_origin", lambda *_: pytest.fail("the log was asked"))
    send_runs(scene.peer, scene.rp, *(origin.run(1) for origin in origins))
    answer = send_runs(scene.peer, scene.rp, *(origin.run(1) for origin in origins))
    assert set(answer.have.values()) == {2}


def test_oversize_events_requests_and_messages(scene: Scene) -> None:
    events = [events_made(1)[0].body.replace(b'"t"}', b'"t","data":"%s"}' % (b"x" * config().event_bytes_max))]
    send_runs(scene.peer, scene.rp, wire.SealedRun(scene.origin.seal(events), events, b"", ["b.test"]))
    assert held(scene.rp) == []
    assert counted() == {("oversize", "b.test", ""): 1}
    runs = [scene.origin.run(600), scene.origin.run(600)]
    with pytest.raises(wire.BadMessage, match="at most 1000 events"):
        send_runs(scene.peer, scene.rp, *runs)
    with pytest.raises(wire.BadMessage, match="at most"):
        inbound.exchange(Sender("b.test", "k", scene.peer), b"x" * (wire.BODY_BYTES_MAX + 1))
    assert counted() == {("oversize", "b.test", ""): 3}
    with pytest.raises(wire.BadMessage, match="not understood"):
        inbound.exchange(Sender("b.test", "k", scene.peer), b"\xc1")
    assert counted()[("malformed", "b.test", "")] == 1


def test_flooding_over_the_rate_is_refused_with_the_time_to_come_back_and_an_honest_peer_is_told_before() -> None:
    b, rp = OtherDomain("b.test"), new_rp()
    peer = peer_made(b, events_per_s=10)
    link(rp, b)
    origin = Origin(b, rp)
    assert send(peer, wire.RpPart(rp, {}, [origin.run(10)])).pause_s == 0
    assert send(peer, wire.RpPart(rp, {}, [origin.run(10)])).pause_s > 0
    with pytest.raises(RateLimited) as refused:
        send(peer, wire.RpPart(rp, {}, [origin.run(10)]))
    assert refused.value.retry_after_s is not None
    assert len(held(rp)) == 20
    assert counted() == {("flooding", "b.test", ""): 1}


def test_documents_of_domains_that_are_not_known_cost_no_signature_but_the_bytes_they_take(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed, held_twice = OtherDomain("unknown.example"), OtherDomain("b.test")
    for _ in range(3):
        keyed.add_key()
    documents = [keyed.document() for _ in range(60)] + [held_twice.document() for _ in range(4)]
    looked_at: list[Signed] = []
    monkeypatch.setattr(
        "eventing.peering.rules.domain_documents.verified",
        lambda context, statement, jwk: looked_at.append(statement) or False,
    )
    send(scene.peer, domains=documents)
    assert looked_at == []
    Peer.objects.filter(pk=scene.peer.pk).update(bytes_per_s=1000)
    assert send(scene.peer, domains=documents).pause_s > 0
    with pytest.raises(RateLimited, match="bytes"):
        send(scene.peer, domains=documents)
    assert counted() == {("flooding", "b.test", ""): 1}


def test_a_peer_that_holds_less_of_its_own_feed_than_we_do_is_shown_its_newest_seal(scene: Scene) -> None:
    """It may have been put back from a copy: its own seal proves it at once, the number alone would not."""
    runs = [scene.origin.run(3), scene.origin.run(2)]
    send_runs(scene.peer, scene.rp, *runs)
    for have, shown in (
        ({}, [runs[1].seal]),
        ({scene.key: 3}, [runs[1].seal]),
        ({scene.key: 5}, []),
        ({scene.key: 9}, []),
    ):
        assert send_runs(scene.peer, scene.rp, have=have, own=scene.key).newest == shown
    assert send_runs(scene.peer, scene.rp).newest is None, "nobody asked"
    assert send_runs(scene.peer, scene.rp, own="z" * 16).newest == [], "nothing is held of that feed"


def test_a_request_full_of_runs_behind_a_gap_has_the_other_links_read_once_for_each_feed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who leaves out the first run of a feed could else make each of a thousand others cost a look at every link."""
    missing = scene.origin.run(1)
    runs = [scene.origin.run(1) for _ in range(50)]
    noted = gaps.missing
    looks: list[str] = []

    def looked(*args: Any, **more: Any) -> gaps.MissingEvents:
        looks.append(args[1])
        return noted(*args, **more)

    monkeypatch.setattr(gaps, "missing", looked)
    assert send_runs(scene.peer, scene.rp, *runs).graft == [scene.key]
    assert looks == [scene.key]
    answer = send_runs(scene.peer, scene.rp, runs[0], missing, *runs)
    assert answer.have == {scene.key: 51}, "what fills the gap is taken wherever it stands"


def test_newest_seals_are_looked_for_at_a_bounded_number_of_rps(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "NEWEST_MAX", 0)
    send_runs(scene.peer, scene.rp, scene.origin.run(3))
    assert send_runs(scene.peer, scene.rp, own=scene.key).newest is None


def test_a_vector_of_our_own_feed_that_nobody_can_have(scene: Scene) -> None:
    control.append(scene.rp, events_made(3), BOUNDS)
    seal_own(scene.rp)
    own = Feed(config().domain, head(scene.rp).epoch).key
    send_runs(scene.peer, scene.rp, have={own: 3})
    assert counted() == {}
    send_runs(scene.peer, scene.rp, have={own: 4})
    assert counted() == {("false-vector", "b.test", ""): 1}
    assert head(scene.rp).own == 3


def test_a_peer_that_invents_feeds_does_not_make_its_link_grow(scene: Scene) -> None:
    sizes = set()
    for at in range(10):
        have, graft = ([Feed(f"{kind}{at}", str(number)).key for number in range(64)] for kind in ("have", "graft"))
        send_runs(scene.peer, scene.rp, have=dict.fromkeys(have, 1), graft=graft)
        kept = watermarks.links_read("b.test", [scene.rp])[scene.rp]
        sizes.add(len(kept.theirs))
        assert kept.theirs.keys() >= set(have)
    assert max(sizes) == link_vector.THEIRS_MAX


def test_an_rp_that_is_not_shared_with_the_sender_is_not_found_and_the_others_go_on(scene: Scene) -> None:
    foreign, run = new_rp(), scene.origin.run(1)
    answer = send(
        scene.peer, wire.RpPart(foreign, {}, [Origin(scene.b, foreign).run(1)]), wire.RpPart(scene.rp, {}, [run])
    )
    assert [part.error for part in answer.parts] == ["not-found", ""]
    assert held(foreign) == []
    assert held(scene.rp) == run.events


def test_a_peer_that_may_not_push_is_forbidden_to_but_may_ask() -> None:
    b, rp = OtherDomain("b.test"), new_rp()
    peer = peer_made(b, push=False)
    link(rp, b)
    assert send_runs(peer, rp, Origin(b, rp).run(1)).error == "forbidden"
    assert send_runs(peer, rp).error == ""
    assert held(rp) == []


def test_history_that_its_origin_has_trimmed_is_a_signed_gap(scene: Scene) -> None:
    scene.origin.run(4)
    run = scene.origin.run(2)
    answer = send_runs(
        scene.other,
        scene.rp,
        msgspec.structs.replace(run, path=["b.test", "c.test"]),
        low_water_marks=[scene.origin.floor(5)],
    )
    assert answer.have == {scene.key: 6}
    assert held(scene.rp) == run.events
    assert counted() == {}
    assert list(gaps.low_water_marks_of(scene.rp)) == [scene.key]


def test_a_floor_that_its_origin_did_not_sign(scene: Scene) -> None:
    scene.origin.run(4)
    false = Origin(OtherDomain("b.test"), scene.rp).floor(5)
    answer = send_runs(scene.peer, scene.rp, scene.origin.run(2), low_water_marks=[false])
    assert answer.have == {}
    assert counted() == {("forged", "b.test", ""): 1}


def kept(rp: str, what: str) -> set[str]:
    """The feeds of which low-water marks, or gaps, are kept."""
    found: set[bytes] = set(redis_client().hkeys(f"herald:{{{rp}}}:{what}"))  # type: ignore[arg-type]
    return {feed.decode() for feed in found}


def test_floors_of_feeds_that_are_not_here_and_do_not_come_along_are_not_kept(scene: Scene) -> None:
    others = [Origin(scene.b, scene.rp, epoch(number)) for number in range(200)]
    for at in range(0, 200, 50):
        send_runs(scene.peer, scene.rp, low_water_marks=[origin.floor(5) for origin in others[at : at + 50]])
    assert kept(scene.rp, "floors") == set()
    send_runs(scene.peer, scene.rp, scene.origin.run(2))
    send_runs(
        scene.peer, scene.rp, low_water_marks=[scene.origin.floor(2), *(origin.floor(5) for origin in others[:60])]
    )
    assert kept(scene.rp, "floors") == {scene.key}
    for at in range(0, 200, 50):  # not even with runs, where these are not true
        made_up = [msgspec.structs.replace(origin.run(5, "x"), path=["b.test"]) for origin in others[at : at + 50]]
        for run in made_up:
            run.events = run.events[:1]
        send_runs(scene.peer, scene.rp, *made_up, low_water_marks=[origin.floor(5) for origin in others[at : at + 50]])
    assert kept(scene.rp, "floors") == {scene.key}


def test_a_floor_of_an_origin_that_is_not_admitted_or_quarantined_is_not_kept_and_counted(scene: Scene) -> None:
    stranger = OtherDomain("d.test")
    peer_made(stranger)
    send_runs(scene.peer, scene.rp, low_water_marks=[Origin(stranger, scene.rp).floor(5)])
    assert counted() == {("not-admitted", "b.test", "d.test"): 1}
    send_runs(scene.peer, scene.rp, scene.origin.run(3))
    send_runs(scene.other, scene.rp, Origin(scene.b, scene.rp).run(3, "c.test"))
    assert Quarantine.objects.get().origin == "b.test"
    send_runs(scene.other, scene.rp, low_water_marks=[scene.origin.floor(2)])
    assert counted()[("quarantined", "c.test", "b.test")] == 1
    assert kept(scene.rp, "floors") == set()


def test_a_peer_that_may_not_push_has_no_floor_kept(scene: Scene) -> None:
    send_runs(scene.peer, scene.rp, scene.origin.run(3))
    Peer.objects.filter(pk="b.test").update(push=False)
    assert send_runs(scene.peer, scene.rp, low_water_marks=[scene.origin.floor(2)]).error == ""
    assert kept(scene.rp, "floors") == set()


def test_a_floor_that_says_no_more_than_what_is_kept_has_no_signature_verified(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_runs(scene.peer, scene.rp, scene.origin.run(9), low_water_marks=[scene.origin.floor(5)])
    verified: list[int] = []
    really = run_validation.low_water_mark_signed
    monkeypatch.setattr(
        run_validation,
        "low_water_mark_signed",
        lambda floor, *more: (verified.append(floor.first), really(floor, *more)),
    )
    send_runs(scene.peer, scene.rp, low_water_marks=[scene.origin.floor(first) for first in (5, 2, 8, 7, 6)])
    assert verified == [8]
    assert gaps.low_water_marks_of(scene.rp)[scene.key][0] == 8


def test_floors_of_an_rp_are_no_more_than_its_feeds_may_be(scene: Scene) -> None:
    statement = scene.origin.floor(5)
    feeds = [Feed("b.test", epoch(number)).key for number in range(200)]
    for at in range(0, 200, 50):
        gaps.low_water_marks_keep({scene.rp: (dict.fromkeys(feeds[at : at + 50], (5, statement)), [])})
    assert len(kept(scene.rp, "floors")) == FEEDS_MAX
    send_runs(scene.peer, scene.rp, scene.origin.run(6), low_water_marks=[statement])
    assert kept(scene.rp, "floors") == {scene.key}, "those of feeds that are not here make room"


def test_floors_count_for_the_rate_as_events_do() -> None:
    b, rp = OtherDomain("b.test"), new_rp()
    peer = peer_made(b, events_per_s=10)
    link(rp, b)
    floors = [Origin(b, rp).floor(5)] * 30
    send_runs(peer, rp, low_water_marks=floors)
    with pytest.raises(RateLimited):
        send_runs(peer, rp, low_water_marks=floors)
    assert counted() == {("flooding", "b.test", ""): 1}


def test_an_origin_that_leaves_gaps_in_ever_other_feeds_fills_no_notes(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(80):
        origin = Origin(scene.b, scene.rp, epoch(number))
        origin.run(4)
        send_runs(scene.peer, scene.rp, origin.run(1))
    assert len(kept(scene.rp, "gaps")) == gaps.ORIGIN_NOTES_MAX
    honest = Origin(scene.c, scene.rp)
    honest.run(4)
    late = honest.run(1)
    send_runs(scene.other, scene.rp, late)
    assert honest.feed.key in kept(scene.rp, "gaps"), "another's gap is noted all the same"
    later = time.time() + 11
    monkeypatch.setattr(time, "time", lambda: later)
    send_runs(scene.peer, scene.rp)
    assert send_runs(scene.other, scene.rp, late).have == {honest.feed.key: 5}
    assert honest.feed.key not in kept(scene.rp, "gaps")
    later = time.time() + gaps.NOTE_S_MAX + 60
    next_one = Origin(scene.b, scene.rp, epoch(99))
    next_one.run(4)
    send_runs(scene.peer, scene.rp, next_one.run(1))
    assert kept(scene.rp, "gaps") == {next_one.feed.key}, "notes of what never came again make room"


def test_withheld_events_wait_for_whoever_has_them_and_are_then_held_against_the_carrier(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = scene.origin.run(5, "c.test")
    withholding = wire.SealedRun(run.seal, run.events[3:], merkle.leaves(run.events[:3]), run.path)
    assert send_runs(scene.other, scene.rp, withholding).have == {}
    assert send_runs(scene.other, scene.rp, withholding).graft == [scene.key]
    later = time.time() + 60
    monkeypatch.setattr(time, "time", lambda: later)
    assert send_runs(scene.other, scene.rp, withholding).have == {}, "b has not been heard: it may have them"
    send_runs(scene.peer, scene.rp)
    answer = send_runs(scene.other, scene.rp, withholding)
    assert answer.have == {scene.key: 5}
    assert held(scene.rp) == run.events[3:]
    assert counted() == {("withheld", "c.test", "b.test"): 1}


def test_two_peers_that_left_out_the_same_are_not_waited_for_each_for_the_sake_of_the_other(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each says to hold the feed to its end, and neither has its beginning: found by test_convergence.py."""
    run = scene.origin.run(5)
    less, more = (
        wire.SealedRun(run.seal, run.events[kept:], merkle.leaves(run.events[:kept]), run.path) for kept in (3, 2)
    )
    by_c = msgspec.structs.replace(less, path=["b.test", "c.test"])
    assert send_runs(scene.other, scene.rp, by_c, have={scene.key: 5}).have == {}
    assert send_runs(scene.peer, scene.rp, more, have={scene.key: 5}).have == {}
    later = time.time() + 11
    monkeypatch.setattr(time, "time", lambda: later)
    assert send_runs(scene.other, scene.rp, by_c, have={scene.key: 5}).have == {}, "b has one more than c"
    assert send_runs(scene.peer, scene.rp, more, have={scene.key: 5}).have == {scene.key: 5}
    assert held(scene.rp) == run.events[2:]


def test_who_waits_no_longer_is_not_heard_though_its_runs_are_taken(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have lost its data meanwhile, and have said so: what it said before would be believed for good."""
    take_in = federated_bulk.receive_all

    def slowly(runs: Sequence[Incoming]) -> list[ReceivedRun | None]:
        later = time.monotonic() + inbound.LATE_S + 1
        monkeypatch.setattr(time, "monotonic", lambda: later)
        return take_in(runs)

    send_runs(scene.peer, scene.rp)
    run = scene.origin.run(3)
    monkeypatch.setattr(inbound, "receive_all", slowly)
    assert send_runs(scene.peer, scene.rp, run, have={scene.key: 3, "c" * 16: 9}).error == "unavailable"
    assert held(scene.rp) == run.events
    assert woken(scene.other) == {scene.rp}
    assert watermarks.links_read("b.test", [scene.rp])[scene.rp].timer.awaited == {}


def test_our_own_events_come_back_and_are_known(scene: Scene) -> None:
    control.append(scene.rp, events_made(3), BOUNDS)
    seal_own(scene.rp)
    own = Feed(config().domain, head(scene.rp).epoch).key
    stored = runs_after(scene.rp, {}, own)[0]
    seal = msgspec.msgpack.decode(stored.seal, type=Signed)
    send_runs(scene.peer, scene.rp, wire.SealedRun(seal, stored.events, b"", [config().domain, "b.test"]))
    assert len(held(scene.rp)) == 3
    assert counted() == {}


def test_contact_of_a_peer_that_could_not_be_reached_has_it_tried_and_clears_nothing(scene: Scene) -> None:
    sent: list[str] = []
    forward_start.connect(sent.append)
    peer_state.failing_set("b.test", True)
    send_runs(scene.peer, scene.rp)
    assert sent == ["b.test"]
    assert peer_state.failing("b.test")
    assert peer_state.probed("b.test")
