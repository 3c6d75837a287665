"""overlay/reopening.py: where many links fail at once, events go by lazy ones too; and what a liar can make of that."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from eventing.overlay import broadcast, link_planning
from eventing.overlay.dissemination_messages import LinkRequest, Overdue, Publish
from eventing.overlay.feed_tree import FeedTree, ReceivedFeeds
from eventing.overlay.link_planning import LinkPlan
from eventing.overlay.link_state import Link
from eventing.overlay.link_vector import PeerVector
from eventing.overlay.machine import Fired, MessageReceived, SendMessage
from eventing.overlay.reopening import DOUBT_S, EVERY_S, FOR_S, AnswerTimes, Reopening, many_doubted
from tests.overlay.test_dissemination import NOW, Alone, F, run

BOTH = frozenset([F])
LAZY = Link(PeerVector({F: 1}, met=True), FeedTree(lazy=BOTH, pruned=BOTH))


def test_a_peer_is_in_doubt_after_it_was_silent_for_longer_than_it_usually_is() -> None:
    times = AnswerTimes()
    assert not times.in_doubt(100.0), "it was asked nothing"
    times.asked(100.0)
    times.asked(100.4)
    assert not times.in_doubt(100.0 + DOUBT_S - 0.01)
    assert times.in_doubt(100.0 + DOUBT_S)
    times.heard(102.0)
    assert not times.in_doubt(200.0)
    times.asked(200.0)
    assert not times.in_doubt(205.9), "it had taken two seconds"
    assert times.in_doubt(206.0)
    times.heard(206.0)
    for second in range(300, 400):
        times.asked(second)
        times.heard(second + 0.1)
    times.asked(400.0)
    assert times.in_doubt(400.0 + DOUBT_S), "it is quick again"


@pytest.mark.parametrize(
    ("doubted", "links", "many"), [(1, 1, False), (1, 2, False), (2, 2, True), (3, 8, False), (4, 8, True)]
)
def test_half_of_the_links_and_two_are_many(doubted: int, links: int, many: bool) -> None:
    assert many_doubted(doubted, links) is many


def test_links_are_reopened_for_a_while_and_then_for_long_not() -> None:
    reopening = Reopening()
    since_start = {after: reopening.begins(NOW + after) for after in (0.0, FOR_S - 0.1, FOR_S, EVERY_S - 0.1, EVERY_S)}
    assert list(since_start.values()) == [True, True, False, False, True]


def test_a_reopened_link_carries_what_the_peer_lacks_and_grafts_it_once() -> None:
    assert broadcast.reopened(LAZY, {F: 1}) is LAZY, "the peer lacks nothing"
    assert link_planning.plan(LAZY, {F: 2}, now=NOW) is LinkPlan.VECTOR
    link = broadcast.reopened(LAZY, {F: 2})
    assert link_planning.plan(link, {F: 2}, now=NOW) is LinkPlan.RUNS
    assert link_planning.reopening(link, {F: 2}) == BOTH
    answered = broadcast.on_message(link, {F: 2}, ours={F: 2}, now=NOW, jitter=0.0, answers=True).link
    after = link_planning.on_sent(link, answered, {F: 2}, now=NOW)
    assert after.tree == FeedTree(), "eager, and not grafted again"


def test_new_events_that_are_grafted_open_the_link_at_the_other_end() -> None:
    def outcome(received: ReceivedFeeds, graft: frozenset[str]) -> broadcast.MessageOutcome:
        return broadcast.on_message(LAZY, {F: 2}, ours={F: 2}, now=NOW, jitter=0.0, received=received, graft=graft)

    opened = outcome(ReceivedFeeds(new=BOTH), BOTH)
    assert (opened.reopened, opened.prune, opened.link.tree) == (BOTH, frozenset(), FeedTree())
    for received, graft in ((ReceivedFeeds(new=BOTH), frozenset()), (ReceivedFeeds(known=BOTH), BOTH)):
        pruned = outcome(received, graft)
        assert (pruned.reopened, pruned.prune) == (frozenset(), BOTH), "a copy, or a prune that was lost"
        assert pruned.link.tree.lazy == BOTH


def made_lazy(one: Alone, feed: str, *peers: int) -> None:
    for peer in peers:
        exchange = one.machine.peers[peer]
        tree = FeedTree(lazy=frozenset([feed]), pruned=frozenset([feed]))
        exchange.link = msgspec.structs.replace(exchange.link, tree=tree)


def sent(out: list[Any]) -> dict[int, LinkRequest]:
    """The requests with events, by peer."""
    return {
        one.peer: one.message
        for one in out
        if type(one) is SendMessage and type(one.message) is LinkRequest and one.message.runs
    }


def test_a_domain_of_whose_links_half_are_silent_sends_by_the_others_whether_lazy_or_not() -> None:
    one = Alone(1, 2, 3, 4)
    own = one.machine.log.own
    made_lazy(one, own, 1, 2)
    one.now += 1.0
    assert sent(one.given(Publish("event"))).keys() == {3, 4}
    one.now += DOUBT_S - 0.1
    assert sent(one.given(Fired(Overdue()))) == {}
    one.now += 0.1
    requests = sent(one.given(Fired(Overdue())))
    assert {peer: request.graft for peer, request in requests.items()} == {1: {own}, 2: {own}}


def test_a_domain_that_is_sent_so_sends_on_by_all_its_links_but_only_for_a_while() -> None:
    one = Alone(1, 2, 3)
    made_lazy(one, F, 1, 2, 3)
    one.now += 1.0

    def brought(sequence: int) -> set[int]:
        message = LinkRequest(sequence, False, {F: sequence}, (run(sequence, 9, 1),), BOTH, {})
        return set(sent(one.given(MessageReceived(1, message))))

    assert brought(1) == {2, 3}
    one.now += FOR_S
    for peer in (2, 3):
        one.machine.peers[peer].flying = None
        one.machine.peers[peer].link = msgspec.structs.replace(LAZY, peer=PeerVector({F: 1}, met=True))
    assert brought(2) == set(), "a peer that does so all the time is a liar"
    one.now += EVERY_S
    assert brought(3) == {2, 3}
