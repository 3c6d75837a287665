"""replication/forwarding/holding.py: nothing of the own feed is sealed before the peers have said what they hold, and shown it."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from eventing.core.errors import Unavailable
from eventing.log import federated, watermarks
from eventing.overlay.link_state import Link
from eventing.overlay.link_vector import PeerVector
from eventing.replication.forwarding import holding
from eventing.replication.models import SealHead
from eventing.replication.services.proofs import event_proof
from eventing.replication.services.sealing import seal_own
from eventing.store.client import client as redis_client
from eventing.store.sealing_holds import held_since
from eventing.store.sweep_notes import sweep_notes
from tests.replication.own_logs import new_log, own_key, publish, state

PEERS = ("b.test", "c.test")


@pytest.fixture(autouse=True)
def _stores(transactional_db: None, redis_url: str) -> None:
    redis_client().flushdb()


@pytest.fixture
def rp() -> str:
    """An RP shared with PEERS, with 3 events that are sealed and 2 that are not, held at a start."""
    made = new_log()
    publish(made, 3)
    seal_own(made)
    publish(made, 2)
    holding.hold([made])
    return made


def say(peer: str, rp: str, own: int) -> None:
    """The peer has said that it holds our feed up to `own`, as outbound.py and inbound.py take it in."""
    holding.claimed(peer, holding.claims_of({rp: {own_key(rp): own}}, {rp: state(rp)}))
    watermarks.links_change(peer, [rp], lambda _, link: Link(PeerVector({own_key(rp): own}, met=True)))


def look(rp: str) -> bool:
    """Whether the RP is released when looked at now."""
    holding.check(PEERS[0], {rp: PEERS})
    return not held_since([rp])


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + seconds)


def test_nothing_is_sealed_while_an_rp_is_held(rp: str) -> None:
    assert seal_own(rp) == 3
    assert state(rp).sealed == 3
    with pytest.raises(Unavailable):
        event_proof(rp=rp, place=5)
    assert event_proof(rp=rp, place=2).sequence == 2


def test_an_rp_is_released_when_every_peer_has_said_its_vector(rp: str) -> None:
    say("b.test", rp, 3)
    assert not look(rp)
    say("c.test", rp, 2)
    assert look(rp)
    assert seal_own(rp) == 5


def test_a_peer_that_cannot_be_reached_holds_nothing_for_long(rp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    say("b.test", rp, 3)
    later(monkeypatch, holding.HOLD_S - 1)
    assert not look(rp)
    later(monkeypatch, 2)
    assert look(rp)


def test_a_peer_that_holds_more_than_we_have_sealed_is_heard_first(rp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    say("b.test", rp, 3)
    say("c.test", rp, 5)
    later(monkeypatch, holding.HOLD_S_MAX - 1)
    assert not look(rp)
    assert seal_own(rp) == 3


def test_a_claim_that_is_never_shown_holds_us_up_for_a_bounded_time(rp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    say("b.test", rp, 3)
    say("c.test", rp, 1_000_000)
    later(monkeypatch, holding.HOLD_S_MAX + 1)
    assert look(rp)


def test_what_is_held_is_looked_at_again_soon(rp: str) -> None:
    assert not look(rp)
    due = sweep_notes([PEERS[0]], 60).timers_at.get(PEERS[0])
    assert due is not None
    assert due <= time.time() + holding.CHECK_S + 0.01


def test_starts_that_follow_each_other_closely_hold_no_longer_than_one(
    rp: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = held_since([rp])
    later(monkeypatch, holding.HOLD_S_MAX - 1)
    holding.begin()
    holding.hold([rp])
    assert held_since([rp]) == since


def test_what_a_copy_says_of_holding_does_not_count(rp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The restored Redis has the entries of the start before the copy, and claims that were shown or given up since."""
    say("b.test", rp, 4)
    later(monkeypatch, holding.HOLD_S_MAX + 1)
    holding.begin()
    holding.hold([rp])
    say("b.test", rp, 5)
    say("c.test", rp, 0)
    assert not look(rp)
    assert seal_own(rp) == 3


@pytest.mark.parametrize("said_by", ["b.test", "c.test"])
def test_a_claim_that_comes_late_is_waited_for_as_long_as_one_at_the_start(
    rp: str, monkeypatch: pytest.MonkeyPatch, said_by: str
) -> None:
    """A peer was out of reach for longer than HOLD_S_MAX, likely in the same outage."""
    later(monkeypatch, 10 * holding.HOLD_S_MAX)
    for peer in PEERS:
        say(peer, rp, 5 if peer == said_by else 3)
    assert not look(rp)
    later(monkeypatch, holding.HOLD_S_MAX - 1)
    assert not look(rp)
    assert seal_own(rp) == 3
    later(monkeypatch, 2)
    assert look(rp)
    assert seal_own(rp) == 5


def test_a_peer_that_shares_an_rp_since_the_start_only_is_waited_for(rp: str) -> None:
    for peer in PEERS:
        say(peer, rp, 3)
    assert look(rp)
    say("b.test", rp, 5)
    assert not look(rp)
    assert seal_own(rp) == 3


def test_a_peer_is_waited_for_once_however_much_it_claims_then(rp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    say("c.test", rp, 3)
    for claim in (100, 200):
        say("b.test", rp, claim)
        later(monkeypatch, holding.HOLD_S_MAX - 1)
        assert look(rp) is (claim == 200)
        later(monkeypatch, 2)
        assert look(rp)
    watermarks.links_forget("b.test", [rp])  # nor when it has left and come back
    say("b.test", rp, 300)
    assert look(rp)
    assert seal_own(rp) == 5


def test_claims_of_several_peers_do_not_add_up(rp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    say("b.test", rp, 5)
    later(monkeypatch, holding.HOLD_S_MAX - 1)
    say("c.test", rp, 6)
    assert not look(rp)
    later(monkeypatch, 2)
    assert look(rp)
    say("b.test", rp, 8)
    say("c.test", rp, 9)
    assert look(rp)


def test_a_peer_that_has_no_seal_to_show_is_not_waited_for_any_more(rp: str) -> None:
    claims = holding.claims_of({rp: {own_key(rp): 5}}, {rp: state(rp)})
    holding.claimed("b.test", claims)
    say("c.test", rp, 3)
    watermarks.links_change("b.test", [rp], lambda _, link: Link(PeerVector(met=True)))
    assert not look(rp)
    holding.disproved("b.test", claims)
    assert look(rp)


def test_a_number_that_cannot_have_been_published_since_the_newest_seal_is_no_claim(rp: str) -> None:
    def credible(claimed: int) -> bool:
        return rp in holding.credible(holding.claims_of({rp: {own_key(rp): claimed}}, {rp: state(rp)}))

    assert credible(4)
    assert credible(100_000)
    assert not credible(2**33)
    assert not credible(2**50)
    SealHead.objects.update(sealed_at=timezone.now() - timedelta(days=365))
    assert credible(2**33), "the copy may be a year old"
    assert not credible(2**50)


def test_a_claim_about_an_epoch_that_ended_is_not_waited_for(rp: str) -> None:
    say("b.test", rp, 5)
    say("c.test", rp, 3)
    assert not look(rp)
    federated.renumber(rp)
    assert look(rp)


def test_where_nobody_could_be_reached_for_long_the_others_are_waited_for_from_the_first_one_on(
    rp: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that was down since the start comes back: peers are reached one after the other, in any order."""
    later(monkeypatch, 10 * holding.HOLD_S)
    watermarks.links_change("b.test", [rp], lambda _, link: Link(PeerVector(met=True, met_at=time.time())))
    later(monkeypatch, holding.HOLD_S - 1)
    assert not look(rp)
    later(monkeypatch, 2)
    assert look(rp)
