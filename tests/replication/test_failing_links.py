"""Where many links fail at once, lazy ones are reopened: failing_links.py, and the requests that say so, received and sent."""

from __future__ import annotations

import time

import msgspec
import pytest

from demo.harness.servers import wait_for
from eventing.log import watermarks
from eventing.overlay.feed_tree import FeedTree
from eventing.overlay.reopening import DOUBT_S, EVERY_S, FOR_S
from eventing.replication.forwarding import failing_links
from eventing.replication.forwarding.failing_links import RequestsUnderWay, links_failing
from eventing.replication.forwarding.new_events import events_forward
from eventing.store.client import client
from eventing.store.keys import REOPENING_KEY, VECTORS_URGENT_KEY
from eventing.store.waiting_vectors import reopening_begins, vectors_take, vectors_waiting
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer, forward_woken, own, publish, shared
from tests.replication.shared_rp import Origin, Scene, send_runs

pytestmark = pytest.mark.usefixtures("shared_stores")


def made_lazy(peer: str, rp: str, feed: str) -> None:
    tree = FeedTree(lazy=frozenset([feed]), pruned=frozenset([feed]))
    watermarks.links_change(peer, [rp], lambda _, link: msgspec.structs.replace(link, tree=tree))


def tree(peer: str, rp: str) -> FeedTree:
    return watermarks.links_read(peer, [rp])[rp].tree


def announced(b: OtherDomain, started: list[str]) -> str:
    """An RP with an event that b, whose link is lazy, is only to be announced."""
    rp = shared(b)
    forward_woken(rp)
    made_lazy("b.test", rp, own(rp))
    started.clear()
    publish(rp, 1)
    events_forward({"b.test": [rp]})
    assert started == []
    return rp


@pytest.mark.parametrize("taken", [False, True])
def test_with_half_of_the_peers_silent_the_others_are_sent_what_is_or_was_to_be_announced(
    peer: FakePeer, b: OtherDomain, started: list[str], taken: bool
) -> None:
    rp = announced(b, started)
    if taken:
        vectors_take("b.test", 10)
    links_failing({"c.test", "d.test"}, ["b.test", "c.test", "d.test"])
    assert started == ["b.test"]
    forward_woken(rp)
    (part,) = peer.requests[-1].parts
    assert (len(part.runs), part.graft) == (1, [own(rp)])
    assert tree("b.test", rp) == FeedTree(), "eager from now on"
    publish(rp, 1)
    forward_woken(rp)
    (part,) = peer.requests[-1].parts
    assert (len(part.runs), part.graft) == (1, [])


def test_with_a_single_peer_silent_the_others_are_announced_it_soon(
    peer: FakePeer, b: OtherDomain, started: list[str]
) -> None:
    rp = announced(b, started)
    links_failing({"c.test"}, ["b.test", "c.test", "d.test"])
    assert tree("b.test", rp).lazy == {own(rp)}
    assert vectors_waiting(["b.test"]), "and it waits a quarter of a second only"
    assert client().exists(VECTORS_URGENT_KEY)
    assert started == ["b.test"]


def test_links_are_reopened_for_some_seconds_of_a_minute(shared_stores: None) -> None:
    now = time.time()
    assert reopening_begins(now, FOR_S, EVERY_S)
    assert reopening_begins(now + FOR_S - 0.1, FOR_S, EVERY_S)
    assert not reopening_begins(now + FOR_S, FOR_S, EVERY_S)
    assert 0 < client().ttl(REOPENING_KEY) <= EVERY_S


@pytest.mark.parametrize("lately", [False, True])
def test_new_events_that_are_grafted_go_on_by_all_links_unless_that_was_done_lately(
    shared_stores: None, lately: bool
) -> None:
    scene = Scene()
    origin = Origin(scene.b, scene.rp)
    feed = origin.feed.key
    first, second = origin.run(1), origin.run(1)
    send_runs(scene.other, scene.rp, have={})
    send_runs(scene.peer, scene.rp, first, have={feed: 1})
    for name in ("b.test", "c.test"):
        made_lazy(name, scene.rp, feed)
    if lately:
        reopening_begins(time.time() - FOR_S - 1, FOR_S, EVERY_S)
    answer = send_runs(scene.peer, scene.rp, second, have={feed: 2}, graft=[feed])
    assert (answer.have, answer.prune) == ({feed: 2}, [])
    assert tree("b.test", scene.rp) == FeedTree(), "the link by which they came is eager at this end too"
    assert tree("c.test", scene.rp).reopened == (frozenset() if lately else {feed})
    assert tree("c.test", scene.rp).lazy == ({feed} if lately else frozenset())


def test_a_peer_that_is_silent_for_longer_than_usual_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    requests = RequestsUnderWay()
    requests._watching = True  # the test looks itself
    names = ["b.test", "c.test", "never-asked.test"]
    requests.asked("b.test", names)
    requests.asked("c.test", names)
    requests.ended("c.test")
    assert requests.look() == (set(), [])
    now[0] += DOUBT_S
    assert requests.look() == ({"b.test"}, ["b.test", "c.test"]), (
        "a request that has ended is no doubt, but a failure or none"
    )
    assert requests.look() == (set(), []), "once"
    assert requests.doubted() == {"b.test"}
    requests.answered("b.test")
    assert requests.doubted() == set()


def test_what_is_remembered_of_requests_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing_links, "PEERS_MAX", 3)
    requests = RequestsUnderWay()
    requests._watching = True
    for number in range(10):
        requests.asked(f"{number}.test", ())
    assert len(requests.linked([f"{number}.test" for number in range(10)])) <= 3
    assert requests.look() == (set(), [])


def test_a_request_that_is_not_answered_soon_counts_before_it_fails(
    peer: FakePeer, b: OtherDomain, started: list[str]
) -> None:
    rp = shared(b, 1)
    peer.slow_s = 4 * DOUBT_S
    forward_woken(rp)
    wait_for(lambda: client().exists(VECTORS_URGENT_KEY), 5.0, about="the doubt is noted")
    assert peer.requests, "and the request is answered all the same"
