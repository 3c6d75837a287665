"""overlay/dissemination.py and broadcast.py: known faults of Plumtree's implementations, each as others met it, and none here."""

from __future__ import annotations

from random import Random
from typing import Any

from eventing.core.events.feeds import FEEDS_MAX
from eventing.overlay import broadcast, link_vector
from eventing.overlay.dissemination import Dissemination
from eventing.overlay.dissemination_messages import (
    DisseminationParameters,
    Grafted,
    LinkAnswer,
    LinkRequest,
    PeerDue,
    Publish,
    RunReceived,
)
from eventing.overlay.feed_tree import FeedTree, ReceivedFeeds
from eventing.overlay.graft_timer import GRAFT_S
from eventing.overlay.link_state import Link
from eventing.overlay.link_vector import PeerVector
from eventing.overlay.links import LinkDown, LinkUp, Reason
from eventing.overlay.machine import Down, Fired, MessageReceived, SendMessage
from eventing.overlay.presumed_vector import PRESUMED_S
from eventing.overlay.replica_log import FeedRun, ReplicaLog

F, G = "f" * 16, "g" * 16
NOW = 1000.0


class Alone:
    """One replica, whose peers are played by the test."""

    def __init__(self, *peers: int) -> None:
        self.machine = Dissemination(0, ReplicaLog(0, "own" * 5 + "o"), DisseminationParameters(anti_entropy_s=0.0))
        self.now = NOW
        self.chance = Random(1)
        for peer in peers:
            self.met(peer)

    def given(self, given: Any) -> list[Any]:
        return self.machine.handle(given, self.now, self.chance)

    def met(self, peer: int) -> None:
        (asked,) = requests(self.given(LinkUp(peer, True)))
        self.given(MessageReceived(peer, LinkAnswer(asked.number, {}, frozenset(), frozenset())))

    def heard(self, peer: int, have: dict[str, int], *runs: FeedRun) -> LinkAnswer:
        """Take in a request of a peer; return the answer."""
        out = self.given(MessageReceived(peer, LinkRequest(7, False, have, runs, frozenset(), {})))
        (answer,) = [one.message for one in out if type(one) is SendMessage and type(one.message) is LinkAnswer]
        found: LinkAnswer = answer
        return found

    def after(self, seconds: float, peer: int) -> list[Any]:
        self.now += seconds
        return self.given(Fired(PeerDue(peer)))


def requests(out: list[Any]) -> list[LinkRequest]:
    return [one.message for one in out if type(one) is SendMessage and type(one.message) is LinkRequest]


def run(sequence: int, *path: int) -> FeedRun:
    return FeedRun(F, path[0], sequence, sequence, 0, ("event",), path)


def grafts(out: list[Any]) -> list[frozenset[str]]:
    return [one.feeds for one in out if type(one) is Grafted]


def test_a_second_copy_makes_its_link_lazy_on_both_sides() -> None:
    """Asymmetric links never came to rest (iroh-gossip 0abface)."""
    one = Alone(1, 2)
    assert one.heard(1, {F: 1}, run(1, 9, 1)).prune == frozenset()
    assert one.heard(2, {F: 1}, run(1, 9, 2)).prune == {F}
    here = one.machine.peers[2].link.tree
    assert F in here.lazy
    assert F in here.pruned
    there = broadcast.on_message(
        Link(PeerVector({}, met=True)), {F: 1}, ours={F: 1}, now=NOW, jitter=0.0, prune=[F], answers=True
    ).link
    assert F in there.tree.lazy


def test_a_timer_that_has_ended_grafts_again_for_a_later_announcement() -> None:
    """A timer that was not cleared kept later announcements from grafting (iroh-gossip b65cdce)."""
    link = Link(PeerVector({}, met=True), FeedTree(pruned=frozenset([F])))
    now = NOW
    for sequence in range(1, 5):
        link = broadcast.on_message(link, {F: sequence}, ours={F: sequence - 1}, now=now, jitter=0.0).link
        due = broadcast.due(link, ours={F: sequence - 1}, now=now + link.timer.patience_s, jitter=0.0)
        assert due.ask, f"announcement {sequence}"
        now += 2.0
        held = {F: sequence}
        link = broadcast.on_message(
            due.link, held, ours=held, now=now, jitter=0.0, answers=True, received=ReceivedFeeds(new=frozenset([F]))
        ).link
        link = Link(link.peer, FeedTree(pruned=frozenset([F])), link.timer)


def test_what_is_remembered_of_announcements_is_bounded() -> None:
    """Identifiers that were never evicted grew by 40 bytes per message (iroh-gossip c1ad5da)."""
    one = Alone(1)
    for at in range(100):
        one.heard(1, {f"{number:0>16}": 10**9 for number in range(at * 64, at * 64 + 64)})
    link = one.machine.peers[1].link
    assert len(link.theirs) <= link_vector.THEIRS_MAX
    assert len(link.timer.awaited) <= link_vector.THEIRS_MAX
    assert len(link.tree.lazy) <= FEEDS_MAX


def test_an_announcement_grafts_nothing_before_the_timer_ends() -> None:
    """Grafting at once healed links that were not broken (riak_core#371)."""
    one = Alone(1, 2)
    one.heard(1, {F: 1}, run(1, 9, 1))
    one.heard(2, {F: 1}, run(1, 9, 2))
    one.heard(2, {F: 2})
    assert grafts(one.after(GRAFT_S - 0.01, 2)) == []
    one.heard(1, {F: 2}, run(2, 9, 1))
    assert grafts(one.after(5.0, 2)) == [], "it has arrived"
    one.heard(2, {F: 3})
    assert grafts(one.after(10.0, 2)) == [frozenset([F])], "it has not"


def test_of_several_announcing_peers_one_is_asked_and_another_only_if_the_first_sends_nothing() -> None:
    """Several that were grafted at once brought as many copies; one that did not answer must not be the only one."""
    one = Alone(1, 2, 3, 4)
    one.heard(1, {F: 1}, run(1, 9, 1))
    for peer in (2, 3, 4):
        one.heard(peer, {F: 1}, run(1, 9, peer))
        one.heard(peer, {F: 2})
    one.now += 2 * GRAFT_S
    first = [peer for peer in (2, 3, 4) if grafts(one.given(Fired(PeerDue(peer))))]
    assert len(first) == 1
    later = []
    for _ in range(20):
        one.now += 0.2
        later += [peer for peer in (2, 3, 4) if peer not in first and grafts(one.given(Fired(PeerDue(peer))))]
    assert later, "the alternative"


def test_a_new_link_is_asked_for_its_vector_at_once() -> None:
    """Events of the first seconds after a subscription never arrived (calimero#2236)."""
    one = Alone()
    one.given(Publish("event"))
    (asked,) = requests(one.given(LinkUp(1, True)))
    assert asked.whole
    assert asked.have == {one.machine.log.own: 1}
    out = one.given(MessageReceived(1, LinkAnswer(asked.number, {F: 5}, frozenset(), frozenset())))
    assert not requests(out), "between two requests there is a pause"
    one.now += 1.0
    (sent,) = requests(one.given(Fired(PeerDue(1))))
    assert [carried.feed for carried in sent.runs] == [one.machine.log.own], "what the peer lacks"
    assert broadcast.due(one.machine.peers[1].link, ours=one.machine.log.vector, now=one.now + 10.0, jitter=0.0).ask, (
        "what it holds and does not send is asked for"
    )


def test_inputs_about_peers_without_a_link_and_late_answers_are_harmless() -> None:
    one = Alone(1)
    for given in (
        MessageReceived(5, LinkRequest(1, True, {F: 1}, (run(1, 9, 5),), frozenset(), {})),
        MessageReceived(5, LinkAnswer(1, {}, frozenset(), frozenset())),
        MessageReceived(1, LinkAnswer(999, {F: 3}, frozenset(), frozenset())),
        Fired(PeerDue(5)),
        Down(5),
        LinkDown(5, Reason.TRANSPORT),
    ):
        assert one.given(given) == []
    assert one.machine.log.vector == {}


def test_a_run_whose_path_cannot_be_true_is_not_taken() -> None:
    one = Alone(1)
    for path in ((9, 2), (9, 3, 3, 1), (8, 9, 2)):
        out = one.given(MessageReceived(1, LinkRequest(7, False, {F: 1}, (run(1, *path),), frozenset(), {})))
        assert not [event for event in out if type(event) is RunReceived], path


def test_a_peer_that_was_doubted_and_states_less_is_sent_what_it_lost() -> None:
    one = Alone(1, 2)
    one.heard(1, {F: 1}, run(1, 9, 1))
    one.now += 1.0
    out = one.given(MessageReceived(2, LinkRequest(7, False, {F: 3}, (run(3, 9, 2),), frozenset(), {})))
    (asked,) = [sent for sent in requests(out) if sent.whole]
    one.given(MessageReceived(1, LinkAnswer(asked.number, {}, frozenset(), frozenset())))
    (sent,) = requests(one.after(1.0, 1))
    assert [carried.feed for carried in sent.runs] == [F]


def test_a_peer_that_was_presumed_to_hold_a_run_and_does_not_is_sent_it() -> None:
    one = Alone(1, 2)
    one.heard(2, {F: 1}, run(1, 9, 1, 2))
    assert not requests(one.after(1.0, 1)), "it passed through there"
    (asked,) = requests(one.after(PRESUMED_S, 1))
    one.given(MessageReceived(1, LinkAnswer(asked.number, {}, frozenset(), frozenset())))
    (sent,) = requests(one.after(1.0, 1))
    assert [carried.feed for carried in sent.runs] == [F]
