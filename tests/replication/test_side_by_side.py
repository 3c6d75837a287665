"""Sending and receiving at the same time: what comes while a request is built goes neither back nor by a pruned link.

The order that overlay/broadcast.py asks for, shown in outbound.py and inbound.py. That this order brings links to rest is
shown by test_convergence.py, that any other does not was seen in the live domains (docs/federation/numbers.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from eventing.conf import config
from eventing.core.seals.seals import seal_read
from eventing.log import control, federated_bulk, watermarks
from eventing.overlay import link_state
from eventing.overlay.feed_tree import FeedTree
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import inbound, outbound, outbound_request, wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.services.sealing import seal_own
from tests.planes import events_made
from tests.replication import shared_rp
from tests.replication.answering import FakePeer, own
from tests.replication.shared_rp import BOUNDS, Origin, head, send_runs

pytestmark = pytest.mark.usefixtures("shared_stores")


class Scene(shared_rp.Scene):
    """We forward to b, which has said that it holds nothing; both have a feed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.of_b, self.of_c = Origin(self.b, self.rp), Origin(self.c, self.rp, "cccccccc")
        self.answering = FakePeer()
        self.monkeypatch = monkeypatch
        monkeypatch.setattr(outbound, "begin", self.answering.begin)
        wakeups.wake("b.test", [self.rp])
        forward("b.test")
        control.append(self.rp, events_made(3, 0), BOUNDS)

    def during(self, step: str, happens: Callable[[], Any]) -> None:
        """Have something happen just before the forwarder takes this step, once."""
        original = getattr(outbound_request, step)
        done: list[Any] = []

        def wrapped(*arguments: Any) -> Any:
            if not done:
                done.append(True)
                happens()
            return original(*arguments)

        self.monkeypatch.setattr(outbound_request, step, wrapped)

    def forwarded(self) -> list[tuple[str, int]]:
        """Forward until nothing is left; the feeds and last sequences of what went to b."""
        self.answering.requests.clear()
        wakeups.wake("b.test", [self.rp])
        forward("b.test")
        sent = (run for request in self.answering.requests for part in request.parts for run in part.runs)
        return [(run.path[0], seal_read(run.seal).last) for run in sent]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


@pytest.mark.parametrize("step", ["seals_next", "runs_after_all"])
def test_what_the_peer_sends_while_a_request_to_it_is_built_is_not_sent_back(scene: Scene, step: str) -> None:
    run = scene.of_b.run(2)
    scene.during(step, lambda: send_runs(scene.peer, scene.rp, run, have={scene.of_b.feed.key: 2}))
    assert [origin for origin, _ in scene.forwarded()] == [config().domain]
    assert head(scene.rp).foreign == {scene.of_b.feed.key: 2}


@pytest.mark.parametrize("step", ["seals_next", "runs_after_all"])
def test_what_comes_of_a_pruned_feed_while_a_request_is_built_goes_as_a_vector(scene: Scene, step: str) -> None:
    key = scene.of_c.feed.key
    watermarks.links_change(
        "b.test", [scene.rp], lambda _, link: msgspec.structs.replace(link, tree=FeedTree(lazy=frozenset([key])))
    )
    send_runs(scene.other, scene.rp, scene.of_c.run(2), have={key: 2})
    run = scene.of_c.run(2)
    scene.during(step, lambda: send_runs(scene.other, scene.rp, run, have={key: 4}))
    assert [origin for origin, _ in scene.forwarded()] == [config().domain]
    assert scene.answering.requests[-1].parts[0].have[key] == 4


def test_what_comes_while_a_request_is_built_goes_with_the_next(scene: Scene) -> None:
    run = scene.of_c.run(2)
    scene.during("runs_after_all", lambda: send_runs(scene.other, scene.rp, run, have={scene.of_c.feed.key: 2}))
    assert scene.forwarded() == [(config().domain, 3), ("c.test", 2)]
    assert scene.answering.vectors[scene.rp] == {own(scene.rp): 3, scene.of_c.feed.key: 2}


def test_the_link_knows_what_its_peer_holds_and_what_came_through_others_before_the_log_has_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, known = scene.of_b.feed.key, []
    send_runs(scene.other, scene.rp)  # it is met
    receive_all = federated_bulk.receive_all

    def looked(runs: Any) -> Any:
        found = {peer: watermarks.links_read(peer, [scene.rp])[scene.rp] for peer in ("b.test", "c.test")}
        known.append({peer: link_state.holds(link, key) for peer, link in found.items()})
        return receive_all(runs)

    monkeypatch.setattr(inbound, "receive_all", looked)
    run = msgspec.structs.replace(scene.of_b.run(2), path=["b.test", "c.test"])
    send_runs(scene.other, scene.rp, run, have={key: 2})
    assert known == [{"b.test": 2, "c.test": 2}]


def test_a_run_that_two_peers_bring_at_once_is_pruned_where_it_was_second(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are judged before either is in the log."""
    key, receive_all, answers = scene.of_c.feed.key, federated_bulk.receive_all, []
    run = scene.of_c.run(2)
    by_b = msgspec.structs.replace(run, path=["c.test", "b.test"])

    def raced(runs: Any) -> Any:
        monkeypatch.setattr(inbound, "receive_all", receive_all)
        answers.append(send_runs(scene.other, scene.rp, run, have={key: 2}))
        return receive_all(runs)

    monkeypatch.setattr(inbound, "receive_all", raced)
    second = send_runs(scene.peer, scene.rp, by_b, have={key: 2})
    assert (answers[0].prune, second.prune) == ([], [key])
    assert key in watermarks.links_read("b.test", [scene.rp])[scene.rp].tree.pruned


def test_our_own_run_that_a_peer_sends_us_is_pruned(scene: Scene) -> None:
    seal_own(scene.rp)
    assert [origin for origin, _ in scene.forwarded()] == [config().domain]
    (mine,) = (run for request in scene.answering.requests for part in request.parts for run in part.runs)
    back = wire.SealedRun(mine.seal, mine.events, mine.leaves, [*mine.path, "b.test"])
    answer = send_runs(scene.peer, scene.rp, back, have={own(scene.rp): 3})
    assert answer.prune == [own(scene.rp)]
