"""The path of one event: what this domain knows of it, what it tells a linked domain, and what it believes of answers."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from eventing.access.services.tokens import token_create
from eventing.conf import config
from eventing.core.errors import NotFound, RateLimited
from eventing.log import control
from eventing.peering.models import Peer
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import Sender
from eventing.replication.paths import asking, handler
from eventing.replication.paths.asking import path_ask, path_shown
from eventing.replication.paths.messages import PATH_BYTES_MAX, PathReply, encode, question, reply_read
from eventing.replication.paths.places import path_at, path_of
from eventing.rps.models import RendezvousPoint
from tests.peering.other_domain import OtherDomain
from tests.planes import events_made, problem_code
from tests.replication import shared_rp
from tests.replication.shared_rp import BOUNDS, Origin, head, link, peer_made, send_runs

pytestmark = pytest.mark.usefixtures("shared_stores")
OWN = "localhost"


class Scene(shared_rp.Scene):
    """An RP at which b publishes three events, which come here from b."""

    def __init__(self) -> None:
        super().__init__()
        self.feed = Origin(self.b, self.rp)
        self.key = self.feed.feed.key
        send_runs(self.peer, self.rp, self.feed.run(3), have={self.key: 3})

    @property
    def row(self) -> RendezvousPoint:
        return RendezvousPoint.objects.get(id=self.rp)

    def asked_by(self, peer: Peer, sequence: int, *, rp: str = "") -> PathReply:
        """What is answered to a peer that asks for an event's path."""
        return reply_read(handler.path(Sender(peer.name, "k", peer), question(rp or self.rp, self.key, sequence)))

    def answering(self, monkeypatch: pytest.MonkeyPatch, **answers: PathReply | bytes | PeerError) -> dict[str, Any]:
        """Have peers, by their letter, answer so; return the body of the question to each."""
        asked: dict[str, Any] = {}

        def call(url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
            asked[domain] = body
            answer = answers[domain[0]]
            if isinstance(answer, PeerError):
                raise answer
            return answer if isinstance(answer, bytes) else encode(answer)

        monkeypatch.setattr(asking, "call", call)
        return asked

    def gathered(self, sequence: int = 2) -> Any:
        known = path_of(self.rp, self.key, sequence)
        return path_shown(self.row, known, path_ask(self.rp, known))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_an_event_is_found_by_offset_and_by_feed_and_sequence_with_the_domains_that_carried_it(scene: Scene) -> None:
    control.append(scene.rp, events_made(2, 1), BOUNDS)
    send_runs(scene.other, scene.rp, scene.feed.run(2, "c.test"), have={scene.key: 5})
    assert path_at(scene.rp, 2) == path_of(scene.rp, scene.key, 2)
    far = path_of(scene.rp, scene.key, 5)
    assert (far.origin, far.path, far.offset, far.held) == ("b.test", ("b.test", "c.test"), 7, True)
    own = path_at(scene.rp, 5)
    assert (own.origin, own.path, own.sequence) == (OWN, (), 2)
    assert path_of(scene.rp, own.feed, 2) == own
    assert not path_of(scene.rp, scene.key, 6).held
    with pytest.raises(NotFound):
        path_at(scene.rp, 8)


def test_an_event_that_has_left_the_history_keeps_its_path_as_long_as_its_seal(scene: Scene) -> None:
    control.trim_log_before(scene.rp, head(scene.rp).epoch, 3)
    known = path_of(scene.rp, scene.key, 2)
    assert (known.held, known.offset, known.path) == (True, None, ("b.test",))
    assert path_shown(scene.row, known).route == ["b.test", OWN]


def test_a_linked_domain_is_told_the_path_and_who_holds_the_event_and_any_other_nothing(scene: Scene) -> None:
    told = scene.asked_by(scene.other, 2)
    assert (told.held, told.path, told.holders) == (True, ["b.test"], {"b.test": True})
    assert told.stored_ms > 0
    assert not scene.asked_by(scene.other, 4).held
    stranger = peer_made(OtherDomain("d.test"))
    with pytest.raises(NotFound):
        scene.asked_by(stranger, 2)
    with pytest.raises(NotFound):
        scene.asked_by(scene.other, 2, rp="z" * 26)
    for body in (b"", b"\xff", encode([1, scene.rp, scene.key, 0]), b"x" * (PATH_BYTES_MAX + 1)):
        with pytest.raises(wire.BadMessage):
            handler.path(Sender("c.test", "k", scene.other), body)


def test_answers_of_linked_domains_make_a_tree_with_those_who_state_each_hop(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 1_800_000_000_000
    asked = scene.answering(
        monkeypatch,
        b=PathReply(1, True, [], at, {OWN: True, "c.test": True, "d.test": True}),
        c=PathReply(1, True, ["b.test", OWN], at + 250, {"e.test": False}),
    )
    path = scene.gathered()
    assert set(asked) == {"b.test", "c.test"}
    hops = {(hop.source, hop.target): hop for hop in path.hops}
    assert set(hops) == {("b.test", OWN), (OWN, "c.test")}
    assert hops[OWN, "c.test"].stated_by == ["c.test"]
    assert hops["b.test", OWN].stated_by == [OWN, "c.test"]
    assert hops[OWN, "c.test"].at is not None
    assert hops[OWN, "c.test"].at.endswith("00.250000Z")
    about = {one.domain: one for one in path.domains}
    assert about["c.test"].answered
    assert about["c.test"].route == ["b.test", OWN, "c.test"]
    assert path.route == ["b.test", OWN]


@pytest.mark.parametrize(
    "lie",
    [
        PathReply(1, True, [OWN], 1),  # another origin than the feed's
        PathReply(1, True, ["b.test", "c.test"], 1),  # through itself
        PathReply(1, True, ["b.test", OWN, "b.test"], 1),  # a cycle
        PathReply(1, True, ["b.test", "<script>"], 1),
        PathReply(1, True, ["b.test"], 2**53 - 1),  # a time that no calendar has
        PathReply(1, True, ["b.test"], 1, {"no domain!": True}),
        b"\xff\xff",
        encode([1, True, ["x" * 254]]),
        encode([1, True, [f"d{number}.test" for number in range(33)]]),
        PeerError("unreachable", "It did not answer."),
    ],
)
def test_an_answer_that_cannot_be_true_is_shown_as_none_and_changes_nothing_else(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, lie: PathReply | bytes | PeerError
) -> None:
    scene.answering(monkeypatch, b=PathReply(1, True), c=lie)
    path = scene.gathered()
    about = {one.domain: one for one in path.domains}
    assert about["c.test"].answered is False
    assert about["c.test"].detail
    assert about["c.test"].route is None
    assert about["b.test"].answered is True
    assert [(hop.source, hop.target) for hop in path.hops] == [("b.test", OWN)]


def test_paths_are_asked_for_at_a_bounded_rate_and_of_a_bounded_number_of_domains(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    link(scene.rp, *(other for number in range(3) if peer_made(other := OtherDomain(f"e{number}.test"))))
    monkeypatch.setattr(asking, "ASKED_MAX", 2)
    asked = scene.answering(monkeypatch, b=PathReply(1, True), c=PathReply(1, False), e=PathReply(1, False))
    known = path_of(scene.rp, scene.key, 2)
    for _ in range(int(asking.ASKS.per_s * asking.ASKS.window_s)):
        path_ask(scene.rp, known)
    with pytest.raises(RateLimited):
        path_ask(scene.rp, known)
    assert len(asked) == 2


def test_rest_shows_a_path_by_each_kind_of_place_and_asks_others_for_overseers_only(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def api(subject: str = "ann", *, admin: bool = False) -> APIClient:
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(subject=subject, admin=admin).token}")
        return client

    asked = scene.answering(monkeypatch, b=PathReply(1, True), c=PathReply(1, False))
    path, ann, root = f"/api/v1/rps/{scene.rp}/path", api(), api("root", admin=True)
    epoch = head(scene.rp).epoch
    answers = [
        ann.get(path, query).json()
        for query in ({"offset": "2"}, {"cursor": f"{epoch}:2"}, {"feed": scene.key, "sequence": "2"})
    ]
    assert answers[0] == answers[1] == answers[2]
    assert (answers[0]["route"], answers[0]["asked"]) == (["b.test", config().domain], False)
    assert not asked
    assert root.get(path, {"offset": "2", "ask": "true"}).json()["asked"] is True
    assert set(asked) == {"b.test", "c.test"}
    for query, status, code in (
        ({}, 400, "invalid-request"),
        ({"offset": "1", "feed": scene.key, "sequence": "1"}, 400, "invalid-request"),
        ({"feed": scene.key}, 400, "invalid-request"),
        ({"sequence": "2"}, 400, "invalid-request"),
        ({"feed": "short", "sequence": "2"}, 400, "invalid-request"),
        ({"offset": "1", "ask": "perhaps"}, 400, "invalid-request"),
        ({"cursor": "zzzzzzzz:1"}, 400, "invalid-cursor"),
        ({"offset": "9"}, 404, "not-found"),
        ({"offset": "1", "ask": "true"}, 403, "forbidden"),
    ):
        refused = ann.get(path, query)
        assert (refused.status_code, problem_code(refused)) == (status, code), query
