"""replication/forwarding/fork_detection.py: two forks of one length are found at the first exchange, without any event to send."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eventing.conf import config
from eventing.core.events.feeds import Feed
from eventing.core.seals import heads
from eventing.core.signing import Signed
from eventing.log import control, federated, watermarks
from eventing.peering.models import Evidence, Quarantine
from eventing.peering.selectors.evidence import evidence_pending
from eventing.peering.services.misbehaviour import misbehaviour_flush
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import fork_detection, outbound, wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.services.sealing import seal_own
from tests.peering.other_domain import OtherDomain
from tests.planes import events_made
from tests.replication import shared_rp
from tests.replication.shared_rp import (
    BOUNDS,
    Origin,
    counted,
    head,
    held,
    link,
    peer_made,
    send,
    send_runs,
)

pytestmark = pytest.mark.usefixtures("shared_stores")


class Scene(shared_rp.Scene):
    """`mine` is the story that c, the liar, tells us, `told_b` the one it tells b."""

    def __init__(self) -> None:
        super().__init__()
        self.liar = self.other
        self.mine, self.told_b = Origin(self.c, self.rp), Origin(self.c, self.rp)
        self.key = self.mine.feed.key

    def said(self, last: int, seal: Signed | None) -> wire.RpPart:
        """What b says to hold of the liar's feed."""
        have = {self.key: last}
        return wire.RpPart(
            self.rp, have, heads=heads.packed(have, {} if seal is None else {self.key: heads.head_of(seal)})
        )

    def asked(self, last: int, seal: Signed | None) -> wire.RpAnswer:
        """What b is answered when it says so."""
        return send(self.peer, self.said(last, seal)).parts[0]


@pytest.fixture
def scene() -> Scene:
    return Scene()


class Answering:
    """The peer b as we call it: it answers every request about the RP with these seals."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, scene: Scene, *seals: Signed, have: int = 3) -> None:
        self.requests: list[wire.ExchangeRequest] = []
        self.seals, self.have = list(seals), {scene.key: have}
        self.heads: bytes = b""
        self.meanwhile: Callable[[], object] = lambda: None
        monkeypatch.setattr(outbound, "begin", self.begin)

    def begin(
        self, url: str, domain: str, path: str, body: bytes, timeout_s: float, key: object = None
    ) -> Callable[[], bytes]:
        request = wire.request(body)
        self.requests.append(request)
        self.meanwhile()
        parts = [wire.RpAnswer(part.rp, self.have, seals=self.seals, heads=self.heads) for part in request.parts]
        return lambda: wire.encode(wire.ExchangeAnswer(wire.VERSION, parts))


def test_who_holds_another_seal_at_the_same_place_is_shown_ours(scene: Scene) -> None:
    run, told_b = scene.mine.run(3, "c.test"), scene.told_b.run(3)
    send_runs(scene.liar, scene.rp, wire.SealedRun(run.seal, run.events, b"", ["c.test"]))
    assert head(scene.rp).foreign_heads == {scene.key: heads.head_of(run.seal)}
    assert scene.asked(3, run.seal).seals == []
    assert scene.asked(3, None).seals == [], "a sender that knows of no tips"
    assert scene.asked(2, told_b.seal).seals == [run.seal], "a seal that ends within ours"
    assert scene.asked(3, told_b.seal).seals == [run.seal]
    assert scene.asked(4, told_b.seal).seals == [], "it is further, and will send what we lack"
    assert counted() == {}, "a tip proves nothing"
    assert not Quarantine.objects.exists()


def test_who_holds_less_is_compared_at_the_end_of_what_it_holds(scene: Scene) -> None:
    runs = [scene.mine.run(count) for count in (3, 2, 4)]
    told_b = scene.told_b.run(5)
    send_runs(scene.liar, scene.rp, *runs)
    assert scene.asked(5, runs[1].seal).seals == []
    assert scene.asked(5, told_b.seal).seals == [runs[1].seal]
    assert scene.asked(4, told_b.seal).seals == [runs[1].seal], "honest runs do not overlap"


def test_our_own_feed_is_not_ours_to_judge(scene: Scene) -> None:
    control.append(scene.rp, events_made(2), BOUNDS)
    seal_own(scene.rp)
    own = Feed(config().domain, head(scene.rp).epoch).key
    stored = federated.seal_of(scene.rp, own, 2)
    assert stored is not None
    assert head(scene.rp).own_head == heads.head_of(fork_detection._signed(stored.seal))
    have = {own: 2}
    answer = send(scene.peer, wire.RpPart(scene.rp, have, heads=heads.packed(have, {own: b"x" * 16}))).parts[0]
    assert answer.seals == []


def test_many_tips_cost_a_bounded_number_of_looks(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_detection, "COMPARED_MAX", 1)
    told = {}
    for number in range(2):
        domain = OtherDomain(f"d{number}.test")
        one = Origin(domain, scene.rp)
        link(scene.rp, domain)
        send_runs(peer_made(domain), scene.rp, one.run(1))
        told[one.feed.key] = 1
    part = wire.RpPart(scene.rp, told, heads=heads.packed(told, dict.fromkeys(told, b"x" * 16)))
    assert len(send(scene.peer, part).parts[0].seals) == 1


def test_a_seal_that_contradicts_ours_proves_two_stories_with_no_new_event(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = scene.mine.run(3), scene.told_b.run(3)
    send_runs(scene.liar, scene.rp, mine)
    b = Answering(monkeypatch, scene, other.seal)
    wakeups.wake("b.test", [scene.rp])
    assert forward("b.test") is False
    (first, *_) = b.requests
    (part,) = first.parts
    assert heads.unpacked(part.have, part.heads)[scene.key] == heads.head_of(mine.seal)
    assert part.runs == [], "the first exchange has no runs: b has not said yet what it holds"
    assert Quarantine.objects.get().origin == "c.test"
    assert counted()[("equivocation", "b.test", "c.test")] == 1
    (told,) = [proof for request in b.requests for proof in request.evidence]
    assert {told.one, told.other} == {mine.seal, other.seal}, "b, which held one of the two, is told of both"


def test_what_came_while_a_request_was_under_way_is_compared_with_its_answer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither b, when it was asked, nor we, when we asked, knew both stories; afterwards both believe to hold the same."""
    mine, other = scene.mine.run(3), scene.told_b.run(3)
    b = Answering(monkeypatch, scene)
    b.heads = heads.packed(b.have, {scene.key: heads.head_of(other.seal)})
    b.meanwhile = lambda: send_runs(scene.liar, scene.rp, mine)
    wakeups.wake("b.test", [scene.rp])
    forward("b.test")
    first, second = b.requests
    assert first.parts[0].have == {}
    assert heads.unpacked(second.parts[0].have, second.parts[0].heads) == {scene.key: heads.head_of(mine.seal)}


def test_an_answer_that_more_came_after_is_compared_here_and_its_peer_is_not_asked_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks again does not know meanwhile what the peer holds: in a busy ring, runs went twice because of that."""
    first, second = scene.mine.run(3), scene.mine.run(2)
    b = Answering(monkeypatch, scene)
    b.heads = heads.packed(b.have, {scene.key: heads.head_of(first.seal)})
    b.meanwhile = lambda: send_runs(scene.liar, scene.rp, first, second)
    wakeups.wake("b.test", [scene.rp])
    forward("b.test")
    assert b.requests[0].parts[0].have == {}
    assert [len(request.parts[0].runs) for request in b.requests] == [0, 1], "it gets what it lacks at once"
    assert watermarks.links_read("b.test", [scene.rp])[scene.rp].met


def test_an_answer_says_by_which_seals_it_ends(scene: Scene) -> None:
    first, second = scene.mine.run(3), scene.mine.run(2)
    send_runs(scene.liar, scene.rp, first)
    answer = scene.asked(1, None)
    assert heads.unpacked(answer.have, answer.heads) == {scene.key: heads.head_of(first.seal)}
    answer = send_runs(scene.liar, scene.rp, second)
    assert answer.have == {scene.key: 5}
    assert heads.unpacked(answer.have, answer.heads) == {}, "it has just come from who asks"


def test_the_same_contradiction_is_judged_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = scene.mine.run(3), scene.told_b.run(3)
    send_runs(scene.liar, scene.rp, mine)
    for _ in range(3):
        fork_detection.seals_met(scene.rp, {scene.key: 3}, [other.seal], carrier="b.test")
    misbehaviour_flush()
    assert counted() == {("equivocation", "b.test", "c.test"): 1}
    assert Evidence.objects.count() == 1
    assert [one.one for one in evidence_pending("b.test")]


def test_a_seal_that_was_made_up_convicts_who_showed_it(scene: Scene) -> None:
    mine = scene.mine.run(3)
    send_runs(scene.liar, scene.rp, mine)
    made_up = Origin(OtherDomain("c.test"), scene.rp).run(3)
    fork_detection.seals_met(scene.rp, {scene.key: 3}, [made_up.seal], carrier="b.test")
    fork_detection.seals_met(scene.rp, {scene.key: 3}, [Signed(b"no seal", "k", bytes(64))], carrier="b.test")
    fork_detection.seals_met(scene.rp, {scene.key: 9}, [scene.told_b.run(3).seal], carrier="b.test")
    misbehaviour_flush()
    assert counted() == {("forged", "b.test", "c.test"): 1, ("malformed", "b.test", ""): 2}
    assert not Quarantine.objects.exists()


def test_a_peer_that_shows_the_very_seal_that_is_held_is_not_to_blame(scene: Scene) -> None:
    mine = scene.mine.run(3)
    send_runs(scene.liar, scene.rp, mine)
    fork_detection.seals_met(scene.rp, {scene.key: 3}, [mine.seal], carrier="b.test")
    misbehaviour_flush()
    assert counted() == {}


def test_a_domain_that_was_put_back_and_grew_as_long_again_learns_it_by_its_own_seal(scene: Scene) -> None:
    """Equal lengths, other events: without heads nobody would ever have seen it."""
    control.append(scene.rp, events_made(2), BOUNDS)
    seal_own(scene.rp)
    was = head(scene.rp)
    own = Feed(config().domain, was.epoch)
    before = federated.seal_of(scene.rp, own.key, 2)
    assert before is not None
    us = OtherDomain(config().domain)
    us.keys = [_our_key()]
    shown = Origin(us, scene.rp, was.epoch).run(2).seal
    fork_detection.seals_met(scene.rp, {own.key: 2}, [shown], carrier="b.test")
    assert head(scene.rp).epoch != was.epoch
    assert not Quarantine.objects.exists()


def test_two_stories_that_go_on_are_found_by_the_link_between_their_seals(scene: Scene) -> None:
    """b has heard more of its story: it sends what follows, which names another seal before it."""
    scene.told_b.run(3)
    send_runs(scene.liar, scene.rp, scene.mine.run(3))
    send_runs(scene.peer, scene.rp, scene.told_b.run(2, "b.test"))
    assert Quarantine.objects.get().origin == "c.test"
    assert len(held(scene.rp)) == 3


def test_the_tips_of_a_log_are_gone_with_its_feeds(scene: Scene) -> None:
    send_runs(scene.liar, scene.rp, scene.mine.run(3))
    control.append(scene.rp, events_made(1), BOUNDS)
    seal_own(scene.rp)
    was = head(scene.rp)
    assert was.own_head
    assert was.foreign_heads
    federated.renumber(scene.rp, was.epoch)
    assert (head(scene.rp).own_head, head(scene.rp).foreign_heads) == (b"", {})


def _our_key() -> dict[str, object]:
    from eventing.access.selectors.keys import signing_key

    key = signing_key()
    assert key is not None
    return key
