"""The present load of a domain, as those ask for it that serve the same RP."""

from __future__ import annotations

import pytest

from eventing.core.errors import NotFound
from eventing.membership.ports import own_load
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import BadMessage
from eventing.replication.loads import asking, handler
from eventing.replication.loads.asking import loads_asked
from eventing.replication.loads.messages import LOAD_BYTES_MAX, inquiry, statement, statement_read
from eventing.replication.rules.ranking import ReplicaServer
from tests.replication.shared_rp import Scene

pytestmark = pytest.mark.usefixtures("shared_stores")


def servers(*names: str) -> list[ReplicaServer]:
    return [ReplicaServer(name, f"https://{name}", 1000, 7) for name in names]


def test_a_domain_that_serves_the_rp_is_answered_and_no_other() -> None:
    scene = Scene()
    answer = handler.load(Sender(scene.peer.name, "k", scene.peer), inquiry(scene.rp))
    assert statement_read(answer) == own_load().sessions
    with pytest.raises(NotFound):
        handler.load(Sender("stranger.test", "k", scene.peer), inquiry(scene.rp))
    with pytest.raises(NotFound):
        handler.load(Sender(scene.peer.name, "k", scene.peer), inquiry("a" * 26))


@pytest.mark.parametrize("body", [b"", b"x" * (LOAD_BYTES_MAX + 1), b"\x92\x01\xff", statement(3)])
def test_a_question_that_is_none_is_refused(body: bytes) -> None:
    scene = Scene()
    with pytest.raises(BadMessage):
        handler.load(Sender(scene.peer.name, "k", scene.peer), body)


@pytest.mark.parametrize(
    ("answer", "sessions", "fresh"),
    [
        (statement(42), 42, True),
        (statement(2**49), 1000, True),  # no more than its capacity
        (b"\x92\x01\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", 7, False),  # infinity
        (b"\x92\x01\xff", 7, False),  # -1
        (PeerError("refused", "older"), 7, False),
    ],
)
def test_an_answer_counts_within_the_capacity_and_none_leaves_the_figure_of_the_overlay(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | PeerError, sessions: int, fresh: bool
) -> None:
    scene = Scene()

    def call(url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        assert (domain, body) == (scene.peer.name, inquiry(scene.rp))
        if isinstance(answer, PeerError):
            raise answer
        return answer

    monkeypatch.setattr(asking, "call", call)
    own, other, unlinked = loads_asked(scene.rp, servers("localhost", scene.peer.name, "far.test"), "localhost")
    assert (other.sessions, other.fresh) == (sessions, fresh)
    assert (own.fresh, unlinked.fresh) == (False, False)
