"""What forwarding counts of a link: events that were acknowledged, those that were not, and requests without any."""

from __future__ import annotations

import pytest

from eventing.peering.wire.client import PeerError
from eventing.replication.forwarding import wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.store.link_tallies import LinkTally, tallies_flush, tallies_read
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer, own, publish, shared

pytestmark = pytest.mark.usefixtures("shared_stores")


def tally() -> LinkTally:
    tallies_flush(at_once=True)
    return tallies_read(["b.test"])["b.test"]


def sent(rp: str) -> None:
    wakeups.wake("b.test", [rp])
    forward("b.test")


def test_a_request_whose_events_are_acknowledged_is_one_delivery_however_many_they_are(
    peer: FakePeer, b: OtherDomain
) -> None:
    tallies_flush(at_once=True)
    rp = shared(b, 5)
    sent(rp)
    assert peer.vectors[rp] == {own(rp): 5}
    found = tally()
    assert (found.delivered, found.lost, found.silent) == pytest.approx((1, 0, 0), abs=0.01)
    assert found.answered >= 0.99, "the vector before it is a trial without events"
    assert found.delay_ms > 0


def test_a_peer_that_answers_and_takes_nothing_loses_what_it_is_sent(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 1)
    sent(rp)
    before = tally()
    peer.deaf = True
    publish(rp, 1)
    sent(rp)
    after = tally()
    assert after.lost >= before.lost + 0.99
    assert after.delivered == pytest.approx(before.delivered, abs=0.01)


def test_a_request_with_events_that_gets_no_answer_is_a_loss_and_one_without_is_silence(
    peer: FakePeer, b: OtherDomain
) -> None:
    rp = shared(b, 5)
    peer.fails = [PeerError("unreachable", "Cut.")]
    sent(rp)
    assert tally()[:4] == pytest.approx((0, 0, 0, 1), abs=0.01)


def test_a_peer_that_asks_for_patience_or_refuses_says_nothing_of_the_link(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 5)
    peer.fails = [PeerError("refused", "You are suspended.")]
    sent(rp)
    assert tally()[:4] == (0, 0, 0, 0)
