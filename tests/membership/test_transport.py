"""The transport: one exchange serves both ends of a link, and a domain that cannot be reached is reported once."""

from __future__ import annotations

import queue
import secrets
import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import ANY

import msgspec
import pytest

from eventing.membership.process.routes import DomainRoute, Routes
from eventing.membership.process.transport import (
    ABSENT_S,
    JUST_S,
    PLAIN_S,
    TIE_S,
    Exchanged,
    NotExchanged,
    OverlayTransport,
)
from eventing.membership.rules.records import keys_of
from eventing.membership.wire import codec, messages
from eventing.overlay.gossip_messages import GossipMessage, GossipPart
from eventing.overlay.links import Neighbor, NeighborReply
from eventing.overlay.liveness import ALIVE, BEAT, BEAT_S, Alive, Beat
from eventing.overlay.machine import Down, SendMessage
from eventing.peering.wire import signatures
from eventing.store.overlay_queues import overlay_lease, overlay_receive
from tests.membership.signers import Signer
from tests.peering.played_domain import Server, new_key, on_the_wire

ME, THEM = "b.example", Signer("c.example", at=time.time())
ANSWER_WITHIN_S = 60.0
ROUND = GossipMessage((GossipPart("load", ((0, 7),)),))


class RoutesToOne(Routes):
    """The way to the domain that the test plays."""

    def __init__(self, url: str) -> None:
        self.key = new_key()
        self.route = DomainRoute(url, keys_of(THEM.record()))

    def to(self, name: str) -> DomainRoute | None:
        return self.route if name == THEM.name else None


class Played:
    """The domain that the test plays, and a transport to it.

    Attributes:
        requests: decoded requests that it got.
        answers: what it answers, in turn: a status with a body, or messages.
    """

    def __init__(self) -> None:
        self.requests: list[messages.OverlayRequest] = []
        self.answers: list[Any] = []
        self.server = Server(self._behave)
        self.results: queue.Queue[Any] = queue.Queue()
        self.chain = [THEM.record()]
        self.routes = RoutesToOne(self.server.url)
        self.transport = self.make()

    def make(self, *, can_be_called: bool = True) -> OverlayTransport:
        return OverlayTransport(
            ME, self.routes, can_be_called=can_be_called, chain=lambda: self.chain, deliver=self.results.put
        )

    def send(self, message: Any, now: float) -> None:
        self.transport.send(SendMessage(THEM.name, message), now)

    def result(self, now: float) -> Any:
        """The next result, taken in by the transport."""
        found = self.results.get(timeout=ANSWER_WITHIN_S)
        if isinstance(found, Exchanged):
            self.transport.exchanged(found, now)
        elif isinstance(found, NotExchanged):
            self.transport.not_exchanged(found, now)
        return found

    def received(self) -> list[list[Any]]:
        return [codec.decode(request.messages) for request in self.requests]

    def _behave(self, connection: Any, request: signatures.SignedRequest, body: bytes) -> None:
        self.requests.append(messages.request_read(body))
        answer = self.answers.pop(0) if self.answers else []
        status, content = (
            answer
            if isinstance(answer, tuple)
            else (200, messages.answer_encode([codec.message_bytes(one) for one in answer]))
        )
        signed = signatures.answer_signed(
            request,
            status,
            content,
            content_type=signatures.CONTENT_TYPE,
            retry_after_s=None,
            key=THEM.identity,
            origin=THEM.name,
            nonce=secrets.token_urlsafe(18),
            now=time.time(),
        )
        connection.sendall(on_the_wire(status, signed.headers, content))


@pytest.fixture
def played(planes: None) -> Iterator[Played]:
    made = Played()
    yield made
    made.transport.close(wait=True)  # a thread may still write what it thinks of an answer
    made.server.close()


def test_a_message_is_answered_with_what_waited_for_us(played: Played) -> None:
    played.answers = [[NeighborReply(True)]]
    played.send(Neighbor(), 0.0)
    assert played.result(0.1) == Exchanged(THEM.name, [NeighborReply(True)], ANY)
    assert played.received() == [[Neighbor()]]


def test_the_first_request_presents_our_records_and_later_ones_do_not(played: Played) -> None:
    for now in (0.0, 1.0):
        played.send(Neighbor(), now)
        played.result(now)
    assert [len(request.chain) for request in played.requests] == [1, 0]


def test_messages_that_come_while_a_request_is_under_way_share_the_next_one(played: Played) -> None:
    for _ in range(5):
        played.send(Neighbor(), 0.0)
    played.result(0.1)
    played.result(0.2)
    assert played.received() == [[Neighbor()], [Neighbor()] * 4]


def test_an_exchange_of_either_side_puts_the_next_beat_off(played: Played) -> None:
    played.send(Neighbor(), 0.0)
    played.result(0.0)
    played.send(BEAT, 5.0)
    played.transport.due(BEAT_S - 0.01)
    assert len(played.requests) == 1
    played.transport.received(THEM.name, BEAT_S - 0.01)
    played.transport.due(BEAT_S + 0.01)
    assert played.results.empty(), "the other side has called meanwhile"
    played.send(BEAT, BEAT_S + 1)
    played.transport.due(2 * BEAT_S)
    played.result(2 * BEAT_S)
    assert played.received()[-1] == [Beat()]


def test_a_beat_that_a_request_brought_is_answered_by_the_exchange_itself(played: Played) -> None:
    played.transport.received(THEM.name, 5.0)
    played.send(ALIVE, 5.01)
    played.send(Alive(None, "d.example"), 5.02)
    played.result(5.1)
    played.send(ALIVE, 5.1 + JUST_S)
    played.result(5.2 + JUST_S)
    assert played.received() == [[Alive(None, "d.example")], [Alive()]]


def test_of_two_ends_the_one_with_the_greater_name_waits_a_little(played: Played) -> None:
    later = OverlayTransport("z.example", played.routes, can_be_called=True, chain=list, deliver=played.results.put)
    for transport in (played.transport, later):
        transport.received(THEM.name, 0.0)
        transport.send(SendMessage(THEM.name, BEAT), 1.0)
    assert played.transport.next_at() == BEAT_S
    assert later.next_at() == BEAT_S + TIE_S
    later.close()


def test_a_domain_that_only_calls_out_polls_for_the_answer_and_beats_itself(played: Played) -> None:
    played.transport = played.make(can_be_called=False)
    played.send(Neighbor(), 0.0)
    played.result(0.1)
    played.answers = [[NeighborReply(True)]]
    played.transport.due(0.3)
    assert played.result(0.4) == Exchanged(THEM.name, [NeighborReply(True)], ANY)
    played.transport.received(THEM.name, 5.0)
    played.send(BEAT, 5.0)
    played.result(5.1)
    assert played.received() == [[Neighbor()], [], [Beat()]]


def test_messages_for_a_domain_that_only_calls_out_wait_for_its_call(played: Played) -> None:
    played.routes.route = DomainRoute("", {})
    played.transport.received(THEM.name, 0.0)
    played.send(Neighbor(), 1.0)
    assert played.results.empty()
    overlay_lease("test", 60_000).acquire()
    assert overlay_receive(THEM.name, b"\x90") == [codec.message_bytes(Neighbor())]
    played.send(BEAT, 60.0)
    assert played.result(60.0) == Down(THEM.name), "it has not called for long"


def test_a_request_that_failed_is_sent_once_more_before_the_domain_counts_as_unreachable(played: Played) -> None:
    played.answers = [(503, b"{}"), (503, b"{}")]
    played.send(Neighbor(), 0.0)
    assert isinstance(played.result(0.0), NotExchanged)
    played.transport.due(1.0)
    assert isinstance(played.result(1.0), NotExchanged)
    assert played.result(1.0) == Down(THEM.name)
    assert played.received() == [[Neighbor()]] * 2


def test_a_domain_whose_rate_is_exceeded_is_waited_for(played: Played) -> None:
    played.answers = [(429, b"{}"), (429, b"{}"), [NeighborReply(True)]]
    played.send(Neighbor(), 0.0)
    for now in (0.0, 2.0):
        assert isinstance(played.result(now), NotExchanged)
        played.transport.due(now + 2.0)
    assert played.result(4.0) == Exchanged(THEM.name, [NeighborReply(True)], ANY)
    assert played.received() == [[Neighbor()]] * 3


def test_no_message_is_sent_within_the_pause_that_a_domain_asks_for(played: Played) -> None:
    played.answers = [(429, b"{}"), [NeighborReply(True)]]
    played.send(Neighbor(), 0.0)
    assert isinstance(played.result(0.0), NotExchanged)
    played.send(Neighbor(True), 0.1)
    played.transport.due(0.5)
    assert not played.transport.calling
    played.transport.due(2.0)
    assert played.result(2.0) == Exchanged(THEM.name, [NeighborReply(True)], ANY)
    assert played.received() == [[Neighbor()], [Neighbor(), Neighbor(True)]]


def test_a_domain_that_does_not_know_us_is_presented_our_records(played: Played) -> None:
    played.send(Neighbor(), 0.0)
    played.result(0.0)
    played.answers = [(403, b"{}"), []]
    played.send(Neighbor(), 1.0)
    played.result(1.0)
    played.transport.due(1.0)
    assert isinstance(played.result(1.0), Exchanged)
    assert [len(request.chain) for request in played.requests] == [1, 0, 1]


def test_a_domain_without_the_endpoint_is_left_alone(played: Played) -> None:
    played.answers = [(404, b"{}")]
    played.send(Neighbor(), 0.0)
    played.result(0.0)
    assert played.result(0.0) == Down(THEM.name)
    played.send(Neighbor(), ABSENT_S - 1)
    assert played.result(0.0) == Down(THEM.name)
    assert len(played.requests) == 1
    played.send(Neighbor(), ABSENT_S + 1)
    assert isinstance(played.result(0.0), Exchanged)


def test_an_answer_that_another_key_signed_is_none(played: Played) -> None:
    played.routes.route = DomainRoute(played.server.url, keys_of(Signer("x.example").record()))
    played.send(Neighbor(), 0.0)
    found = played.result(0.0)
    assert isinstance(found, NotExchanged)
    assert "not proven" in str(found.error)


@pytest.mark.parametrize(
    "answer", [b"\xc1", b"\x92\x01\x91\x91\xa4want", msgspec.msgpack.encode([1, [["want", ["A B"]]]])]
)
def test_an_answer_beyond_its_bounds_is_none(played: Played, answer: bytes) -> None:
    played.answers = [(200, answer)]
    played.send(Neighbor(), 0.0)
    assert isinstance(played.result(0.0), NotExchanged)


def test_messages_of_a_round_go_with_the_next_request_or_wait_a_beat(played: Played) -> None:
    played.transport.send(SendMessage(THEM.name, ROUND), 0.0, patient=True)
    played.transport.due(BEAT_S - 0.1)
    assert played.requests == []
    played.send(Neighbor(), BEAT_S - 0.1)
    played.result(BEAT_S - 0.1)
    played.transport.due(BEAT_S)
    played.transport.send(SendMessage(THEM.name, ROUND), 10.0, patient=True)
    played.transport.due(10.0 + BEAT_S)
    played.result(10.0 + BEAT_S)
    assert played.received() == [[ROUND, Neighbor()], [ROUND]]


def test_a_domain_that_refuses_gossip_gets_none_and_keeps_its_place(played: Played) -> None:
    played.answers = [(400, b"{}"), []]
    played.transport.send(SendMessage(THEM.name, ROUND), 0.0, patient=True)
    played.send(Neighbor(), 0.0)
    assert isinstance(played.result(0.0), NotExchanged)
    assert isinstance(played.result(0.1), Exchanged), "sent anew at once, without gossip"
    played.transport.send(SendMessage(THEM.name, ROUND), 1.0)
    played.send(Neighbor(), PLAIN_S - 1)
    played.result(PLAIN_S - 1)
    assert played.received() == [[ROUND, Neighbor()], [Neighbor()], [Neighbor()]]
    assert played.results.empty(), "the domain never counted as unreachable"


def test_round_trip_times_are_smoothed_and_shown_by_domain(played: Played) -> None:
    assert played.transport.rtt_ms() == {}
    for rtt_s in (0.1, 0.5):
        played.transport.exchanged(Exchanged(THEM.name, [], rtt_s), 0.0)
    assert played.transport.rtt_ms() == {THEM.name: 150.0}


def test_a_domain_without_a_route_is_unreachable(played: Played) -> None:
    played.transport.send(SendMessage("nowhere.example", Neighbor()), 0.0)
    assert played.result(0.0) == Down("nowhere.example")
