"""overlay/broadcast.py, overlay/exchange.py and peering/rules/deliveries.py: each decision by itself (all of them together: test_convergence.py)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.events.feeds import FEEDS_MAX
from eventing.core.events.vectors import SEQUENCE_MAX
from eventing.overlay import (
    broadcast,
    exchange,
    graft_timer,
    link_planning,
    link_refusals,
    link_state,
    link_vector,
    presumed_vector,
    stored_links,
)
from eventing.overlay.exchange import FeedGap
from eventing.overlay.feed_tree import FeedTree, ReceivedFeeds
from eventing.overlay.graft_timer import GraftTimer
from eventing.overlay.link_planning import LinkPlan
from eventing.overlay.link_refusals import LinkRefusals
from eventing.overlay.link_state import Link
from eventing.overlay.link_vector import PeerVector
from eventing.overlay.presumed_vector import PresumedVector
from eventing.peering.rules import deliveries
from eventing.peering.rules.deliveries import Failure

F, G = "a" * 16, "b" * 16
NOW = 1000.0


def met(theirs: dict[str, int], *, received_at: float = 0.0, **tree: frozenset[str]) -> Link:
    return Link(PeerVector(theirs, met=True, received_at=received_at), FeedTree(**tree))


def hear(link: Link, have: dict[str, int], ours: dict[str, int], **more: object) -> broadcast.MessageOutcome:
    return broadcast.on_message(link, have, ours=ours, now=NOW, jitter=0.0, **more)  # type: ignore[arg-type]


def test_a_peer_that_never_spoke_is_told_a_vector_first_and_runs_when_it_has_said_what_it_lacks() -> None:
    assert link_planning.plan(link_state.NEW, {F: 3}, now=NOW) is LinkPlan.VECTOR
    heard = hear(link_state.NEW, {}, {F: 3}, answers=True)
    assert link_planning.plan(heard.link, {F: 3}, now=NOW) is LinkPlan.RUNS
    assert link_planning.wanting(heard.link, now=NOW) == {}


def test_a_peer_that_was_met_is_asked_once_more_when_all_that_was_on_its_way_to_it_has_come_or_never_will() -> None:
    link = hear(link_state.NEW, {}, {}, answers=True).link
    at = NOW + link_vector.CONFIRM_S
    assert link_state.again_at(link) == at
    assert link_planning.plan(link, {}, now=at - 0.01) is LinkPlan.NOTHING
    assert link_planning.plan(link, {}, now=at) is LinkPlan.VECTOR
    asked = broadcast.on_message(link, {F: 2}, ours={}, now=at, jitter=0.0)
    assert link_planning.plan(asked.link, {}, now=at) is LinkPlan.VECTOR, "a request of the peer may be an older one"
    answered = broadcast.on_message(asked.link, {F: 2}, ours={F: 2}, now=at, jitter=0.0, answers=True).link
    assert link_state.again_at(answered) is None
    assert link_planning.plan(answered, {F: 2}, now=at) is LinkPlan.NOTHING


def test_a_peer_is_never_sent_what_it_said_it_holds() -> None:
    assert link_planning.plan(met({F: 3}), {F: 3}, now=NOW) is LinkPlan.NOTHING
    assert link_planning.plan(met({F: 9, G: 1}), {F: 3}, now=NOW) is LinkPlan.NOTHING


def test_a_pruned_feed_goes_as_vectors_and_the_other_feeds_as_runs() -> None:
    link = hear(met({}), {}, {F: 1, G: 1}, answers=True, prune=[F]).link
    assert link_planning.wanting(link, now=NOW) == {F: SEQUENCE_MAX}
    assert link_planning.plan(link, {F: 1, G: 1}, now=NOW) is LinkPlan.RUNS
    assert link_planning.plan(link, {F: 1}, now=NOW) is LinkPlan.VECTOR


def test_a_run_that_came_by_another_link_prunes_this_one_and_prunes_it_again_when_the_answer_was_lost() -> None:
    first = hear(met({}), {F: 2}, {F: 2}, received=ReceivedFeeds(known=frozenset([F]), redundant=frozenset([F])))
    assert first.prune == {F}
    again = hear(first.link, {F: 3}, {F: 3}, received=ReceivedFeeds(new=frozenset([F])))
    assert again.prune == {F}
    assert not broadcast.feeds(first.link, F)
    assert broadcast.feeds(first.link, G)


def test_a_link_that_is_pruned_or_grafted_is_so_in_both_directions() -> None:
    """Otherwise each useless link goes on carrying copies in the other direction (iroh-gossip 0abface)."""
    known = ReceivedFeeds(known=frozenset([F]), redundant=frozenset([F]))
    pruned = hear(met({}), {F: 2, G: 2}, {F: 2, G: 2}, received=known).link
    assert link_planning.plan(pruned, {F: 3, G: 2}, now=NOW) is LinkPlan.VECTOR
    assert link_planning.plan(pruned, {F: 3, G: 3}, now=NOW) is LinkPlan.RUNS
    waiting = hear(pruned, {F: 5, G: 2}, {F: 3, G: 2}).link
    grafted = broadcast.due(waiting, ours={F: 3, G: 2}, now=NOW + graft_timer.GRAFT_S, jitter=0.0).link
    assert F not in grafted.tree.lazy | grafted.tree.pruned
    hole = hear(pruned, {F: 5}, {F: 3}, received=ReceivedFeeds(holes=frozenset([F])))
    assert hole.graft == {F}
    assert F not in hole.link.tree.lazy | hole.link.tree.pruned


def test_what_the_peer_holds_is_asked_for_when_it_has_not_come_in_time_and_no_sooner() -> None:
    link = hear(met({}, pruned=frozenset([F])), {F: 5}, {}).link
    assert not broadcast.due(link, ours={}, now=NOW + graft_timer.GRAFT_S - 0.01, jitter=0.0).ask
    due = broadcast.due(link, ours={}, now=NOW + graft_timer.GRAFT_S, jitter=0.0)
    assert due.ask
    assert link_planning.grafts(due.link, {}) == {F}
    assert link_planning.plan(due.link, {}, now=NOW + 1) is LinkPlan.VECTOR
    received = broadcast.due(link, ours={F: 5}, now=NOW + graft_timer.GRAFT_S, jitter=0.0)
    assert not received.ask
    assert received.link.timer.ask_at is None


def test_what_the_peer_sends_anyway_is_asked_for_later_than_what_it_only_announces() -> None:
    link = hear(met({}, pruned=frozenset([G])), {F: 5, G: 3}, {}).link
    first = broadcast.due(link, ours={}, now=NOW + graft_timer.GRAFT_S, jitter=0.0)
    assert first.ask
    assert link_planning.grafts(first.link, {}) == {G}
    eager_at = NOW + graft_timer.EAGER_PATIENCE * graft_timer.GRAFT_S
    link = hear(met({}), {F: 5}, {}).link
    for now in (NOW + graft_timer.GRAFT_S, eager_at - 0.01):
        due = broadcast.due(link, ours={}, now=now, jitter=0.0)
        assert not due.ask
        assert not due.futile
        assert link_state.again_at(due.link) == eager_at
    link = due.link
    moving = hear(link, {F: 5, G: 1}, {G: 1}, received=ReceivedFeeds(new=frozenset([G]))).link  # other feeds go on
    for waiting in (link, moving):
        due = broadcast.due(waiting, ours={G: 1}, now=eager_at, jitter=0.0)
        assert due.ask
        assert link_planning.grafts(due.link, {G: 1}) == {F}


@pytest.mark.parametrize(("patience_s", "eager_s"), [(2.0, graft_timer.EAGER_S_MAX), (8.0, 8.0)])
def test_a_patient_link_does_not_wait_three_times_as_long_for_what_no_tree_brings(
    patience_s: float, eager_s: float
) -> None:
    timer = msgspec.structs.replace(graft_timer.IDLE, patience_s=patience_s)
    link = hear(msgspec.structs.replace(met({}, received_at=NOW), timer=timer), {F: 5}, {}).link
    due = broadcast.due(link, ours={}, now=NOW + eager_s - 0.01, jitter=0.0)
    assert not due.ask
    assert broadcast.due(due.link, ours={}, now=NOW + eager_s, jitter=0.0).ask


def test_what_is_announced_while_a_timer_runs_has_waited_since_then() -> None:
    timer = msgspec.structs.replace(graft_timer.IDLE, patience_s=2.0)
    both = frozenset([F, G])
    link = hear(msgspec.structs.replace(met({}, received_at=NOW, pruned=both), timer=timer), {F: 1}, {}).link
    more = broadcast.on_message(link, {F: 1, G: 1}, ours={}, now=NOW + 0.2, jitter=0.0).link
    asked = broadcast.due(more, ours={}, now=NOW + 2.0, jitter=0.0).link
    assert link_planning.grafts(asked, {}) == {F}, "the other was announced later"
    for came_s, ask_s in ((0.5, 2.2), (2.1, 2.1 + graft_timer.GRAFT_S)):
        came = broadcast.on_message(
            more if came_s < 2 else asked, {F: 1, G: 1}, ours={F: 1}, now=NOW + came_s, jitter=0.0
        ).link
        assert (came.timer.awaited, came.timer.awaited_at) == ({G: 1}, NOW + 0.2)
        assert came.timer.ask_at == pytest.approx(NOW + ask_s, abs=0.03), "its patience is learned"
    arrived = broadcast.on_message(more, {F: 1, G: 1}, ours={G: 1}, now=NOW + 0.5, jitter=0.0).link
    newer = broadcast.on_message(arrived, {F: 1, G: 2}, ours={F: 1, G: 1}, now=NOW + 0.6, jitter=0.0).link
    assert newer.timer.awaited_at == NOW + 0.6, "nothing was waited for beside the first"


@pytest.mark.parametrize("looked_at", ["by the next message", "by the timer"])
def test_a_link_waits_twice_as_long_as_what_it_announced_was_seen_to_be_lacking(looked_at: str) -> None:
    link = hear(met({}, pruned=frozenset([F])), {F: 5}, {}).link
    link = broadcast.on_message(link, {F: 6}, ours={}, now=NOW + 0.4, jitter=0.0).link
    assert link.timer.patience_s == graft_timer.GRAFT_S, "it may never come"
    if looked_at == "by the timer":
        link = broadcast.due(link, ours={F: 6}, now=NOW + 0.5, jitter=0.0).link
    else:
        link = broadcast.on_message(link, {F: 6}, ours={F: 6}, now=NOW + 0.5, jitter=0.0).link
    assert link.timer.patience_s == pytest.approx(graft_timer.PATIENCE_MARGIN * 0.4, rel=0.02)
    following = broadcast.on_message(link, {F: 9}, ours={F: 6}, now=NOW + 1.0, jitter=0.0).link
    assert following.timer.ask_at == pytest.approx(NOW + 1.0 + graft_timer.PATIENCE_MARGIN * 0.4, abs=0.02)


def test_what_catches_up_and_what_was_asked_for_teach_a_link_little() -> None:
    link = hear(met({}), {F: 1_000}, {}).link  # which this link brings itself, in many requests
    for at in range(1, 11):
        link = broadcast.on_message(link, {F: 1_000}, ours={F: 100 * at}, now=NOW + at, jitter=0.0).link
    assert link.timer.patience_s == graft_timer.GRAFT_S, "a repair elsewhere, or a backlog"
    link = hear(met({}, pruned=frozenset([F])), {F: 1_000}, {}).link
    link = broadcast.due(link, ours={}, now=NOW + graft_timer.GRAFT_S, jitter=0.0).link
    for at in range(1, 11):
        received = ReceivedFeeds(new=frozenset([F]))
        link = broadcast.on_message(
            link, {F: 1_000}, ours={F: 100 * at}, now=NOW + at, jitter=0.0, received=received
        ).link
    assert link.timer.patience_s == graft_timer.GRAFT_S


def test_a_graft_makes_the_feed_eager_again_and_believes_the_lower_vector() -> None:
    link = met({F: 5, G: 2}, lazy=frozenset([F]))
    heard = hear(link, {F: 3}, {F: 5, G: 2}, graft=[F]).link
    assert heard.tree.lazy == frozenset()
    assert heard.theirs == {F: 3, G: 2}
    assert link_planning.plan(heard, {F: 5, G: 2}, now=NOW) is LinkPlan.RUNS


def test_an_older_vector_that_was_overtaken_lowers_nothing() -> None:
    assert hear(met({F: 5}), {F: 3}, {F: 5}).link.theirs == {F: 5}
    assert hear(met({F: 5}), {F: 3}, {F: 5}, answers=True).link.theirs == {F: 5}


def test_what_a_message_shows_counts_before_the_message_is_worked_off() -> None:
    link = broadcast.on_vector(met({F: 5, G: 1}), {F: 3, G: 2})
    assert link.theirs == {F: 5, G: 2}
    assert link_planning.plan(link, {F: 5, G: 2}, now=NOW) is LinkPlan.NOTHING
    assert broadcast.on_vector(link, {F: 5}) is link
    assert broadcast.on_vector(link_state.NEW, {F: 3}) is link_state.NEW, "who never spoke says first what it holds"


def test_what_comes_into_the_log_while_a_request_is_built_waits_for_the_next() -> None:
    lazy = met({F: 3, G: 3}, lazy=frozenset([F]))
    assert link_planning.wanting(lazy, now=NOW)[F] >= 10**12, "whatever comes of a lazy feed until the runs are read"
    assert link_planning.within({F: 3}, F, 3)
    assert not link_planning.within({F: 3}, F, 4)
    assert not link_planning.within({F: 3}, G, 1)


def test_who_a_run_came_through_is_not_sent_it_and_is_asked_when_it_does_not_say_that_it_holds_it() -> None:
    link = broadcast.carried(met({F: 1}), F, 5, now=NOW)
    ours = {F: 5}
    until = NOW + presumed_vector.PRESUMED_S
    assert link_planning.plan(link, ours, now=until - 0.01) is LinkPlan.NOTHING
    assert link_state.again_at(link) == until
    assert hear(link, {F: 5}, ours).link.presumed.ask_at is None, "it said so itself"
    assert link_planning.plan(link, ours, now=until) is LinkPlan.VECTOR
    assert link_planning.asks(link, now=until)
    early = hear(link, {F: 1}, ours).link
    assert link_planning.plan(early, ours, now=NOW) is LinkPlan.NOTHING, "a vector from before"
    lost = broadcast.on_message(link, {}, ours=ours, now=until, jitter=0.0, answers=True).link
    assert link_state.again_at(lost) is None
    assert link_planning.plan(lost, ours, now=until) is LinkPlan.RUNS
    grafted = hear(link, {}, ours, graft=[F]).link
    assert link_planning.wanting(grafted, now=NOW) == {F: 0}


def test_runs_are_waited_for_longer_where_a_graft_was_too_early_and_by_and_by_less_long_again() -> None:
    known = ReceivedFeeds(known=frozenset([F]), redundant=frozenset([F]))
    link = hear(met({}, pruned=frozenset([F])), {F: 1}, {}).link
    for times in range(1, 8):
        assert link.timer.ask_at is not None
        here = {F: times}
        asked = broadcast.due(link, ours={}, now=link.timer.ask_at, jitter=0.0).link
        first = broadcast.early(asked, F)  # it came by this link first, and then by another
        second = hear(asked, here, here, received=known).link  # by another first
        assert (
            first.timer.patience_s
            == second.timer.patience_s
            == min(graft_timer.GRAFT_S * 2**times, graft_timer.PATIENCE_S_MAX)
        )
        assert broadcast.early(first, F) is first, "once for each graft"
        assert hear(second, here, here, received=known).link.timer.patience_s == second.timer.patience_s
        link = hear(second, {F: times + 1}, here).link
        assert link.timer.ask_at == NOW + link.timer.patience_s
    patient, here = link.timer.patience_s, {F: 9}
    later = broadcast.on_message(link, here, ours=here, now=NOW + graft_timer.PATIENCE_HALF_S, jitter=0.0).link
    assert later.timer.patience_s == pytest.approx(patient / 2)
    link = broadcast.on_message(later, here, ours=here, now=NOW + 10 * graft_timer.PATIENCE_HALF_S, jitter=0.0).link
    assert link.timer.patience_s == graft_timer.GRAFT_S


def test_who_claims_what_it_does_not_send_is_found_out() -> None:
    link = hear(met({}), {F: 1_000_000}, {}).link
    now, asked = NOW, 0
    for _ in range(graft_timer.GRAFTS_FUTILE + 1):  # the first time it is left alone: it may be about to send it
        assert link.timer.ask_at is not None
        now = link.timer.ask_at
        due = broadcast.due(link, ours={}, now=now, jitter=0.0)
        asked += due.ask
        link = broadcast.on_message(due.link, {F: 1_000_000}, ours={}, now=now, jitter=0.0, answers=True).link
    assert asked == graft_timer.GRAFTS_FUTILE
    assert due.futile
    assert now - NOW < 30


def test_what_the_peer_does_not_take_is_put_off_longer_each_time_and_the_rest_goes_on() -> None:
    ours = {F: 5, G: 5}
    link, now = met({}), NOW
    pauses = []
    for _ in range(10):
        after = link_planning.on_sent(link, link, {F: 5}, now=now)
        until = after.refusals.deaf[F][0]
        pauses.append(until - now)
        assert link_planning.wanting(after, now=now) == {F: SEQUENCE_MAX}
        assert link_planning.plan(after, ours, now=now) is LinkPlan.RUNS
        link, now = after, until
    assert pauses[0] == link_refusals.DEAF_S
    assert pauses == sorted(pauses)
    assert pauses[-1] == link_refusals.DEAF_S_MAX
    taken = link_planning.on_sent(link, met({F: 5}), {F: 5}, now=now)
    assert F not in taken.refusals.deaf


def test_what_cannot_be_sent_is_put_off_longer_each_time_and_what_follows_it_goes() -> None:
    ours = {F: 5}
    link, now = met({}), NOW
    pauses = []
    for _ in range(10):
        after = link_planning.unsendable(link, {F: 5}, now=now)
        assert link_planning.unsendable(after, {F: 3}, now=now) == after, "what is found further on is part of the same"
        until = after.refusals.unsendable[F][0]
        assert link_state.again_at(after) == until
        pauses.append(until - now)
        assert link_planning.plan(after, ours, now=now) is LinkPlan.NOTHING
        assert link_planning.plan(after, ours, now=until) is LinkPlan.RUNS
        assert link_planning.wanting(after, now=now) == {F: 5}
        assert link_planning.plan(after, {F: 6}, now=now) is LinkPlan.RUNS
        link, now = after, until
    assert pauses[0] == link_refusals.DEAF_S
    assert pauses == sorted(pauses)
    assert pauses[-1] == link_refusals.DEAF_S_MAX
    assert hear(link, {F: 6}, ours).link.refusals.unsendable == {}
    assert hear(link, {}, ours, graft=[F]).link.refusals.unsendable == {}


def test_a_peer_that_refuses_the_rp_is_left_alone_until_later_or_until_it_speaks_of_it() -> None:
    shut = link_planning.on_sent(met({}), met({}), {}, now=NOW, refused=True)
    assert link_planning.plan(shut, {F: 1}, now=NOW) is LinkPlan.NOTHING
    assert link_state.again_at(shut) == NOW + link_refusals.SHUT_S
    assert link_planning.plan(hear(shut, {}, {F: 1}).link, {F: 1}, now=NOW) is LinkPlan.RUNS


@given(
    st.dictionaries(st.sampled_from([F, G]), st.integers(0, 9)),
    st.dictionaries(st.sampled_from([F, G]), st.integers(0, 9)),
)
def test_a_link_is_read_as_it_was_kept_and_what_is_no_link_is_a_new_one(
    theirs: dict[str, int], ours: dict[str, int]
) -> None:
    link = hear(link_state.NEW, theirs, ours, prune=[F]).link
    assert stored_links.read(stored_links.stored(link)) == link
    assert stored_links.read(None) == stored_links.read(b"\xc1") == stored_links.read(b"\x91\x63") == link_state.NEW


FORMAT_1 = [
    1,
    [F],
    [G],
    {F: 5},
    True,
    {G: 7},
    NOW,
    2,
    True,
    {F: (NOW, 1)},
    NOW,
    3,
    NOW,
    0.75,
    [G],
    {F: 9},
    NOW,
    NOW,
    0.5,
    NOW,
]
FORMAT_1 += [{G: (NOW, 1, 4)}, NOW, {F: "b.example"}, NOW]


class LinkAsRead1(msgspec.Struct, array_like=True, frozen=True):
    """The first fields of a link as the version before reads it."""

    format: int
    lazy: frozenset[str] = frozenset()
    pruned: frozenset[str] = frozenset()
    theirs: dict[str, int] = {}


def test_a_link_stored_by_the_version_before_is_read_whole() -> None:
    encode = msgspec.msgpack.encode
    link = stored_links.read(encode(FORMAT_1))
    assert link.peer == PeerVector({F: 5}, True, NOW, NOW, NOW)
    assert link.tree == FeedTree(frozenset([F]), frozenset([G]), frozenset([G]))
    assert link.timer == GraftTimer({G: 7}, NOW, NOW, 2, True, 0.75, 0.5)
    assert link.presumed == PresumedVector({F: 9}, {F: "b.example"}, NOW, NOW)
    assert link.refusals == LinkRefusals({F: (NOW, 1)}, {G: (NOW, 1, 4)}, NOW, 3)
    assert stored_links.read(encode([1, [], [], {F: 5}, True])).theirs == {F: 5}, "as it is most of the time"
    assert stored_links.read(encode([3, *FORMAT_1[1:]])) == link_state.NEW, "of a version to come"


@pytest.mark.parametrize("link", [link_state.NEW, met({F: 5}, lazy=frozenset([F]))])
def test_the_version_before_takes_a_link_stored_by_this_one_as_absent(link: Link) -> None:
    with pytest.raises(Undecodable):
        msgpack_reader(LinkAsRead1)(stored_links.stored(link))


KEYS = [f"{number:0>16}" for number in range(20 * FEEDS_MAX)]
SOME = st.builds(lambda at, count: KEYS[at : at + count], st.integers(0, 19 * FEEDS_MAX), st.integers(0, FEEDS_MAX))
VECTORS = st.builds(lambda feeds, last: dict.fromkeys(feeds, last), SOME, st.integers(0, 9))
MESSAGES = st.tuples(VECTORS, SOME, SOME, st.booleans(), st.floats(0, 5), st.sampled_from(["heard", "said", "due"]))


@given(VECTORS, st.lists(MESSAGES, min_size=10, max_size=25))
def test_a_link_stays_small_whatever_the_peer_says(ours: dict[str, int], messages: list[Any]) -> None:
    assert link_vector.THEIRS_MAX >= 3 * FEEDS_MAX, "ours, what it said last and what is waited for"
    link, now = link_state.NEW, NOW
    for have, graft, prune, answers, pause_s, what in messages:
        now += pause_s
        if what == "said":
            link = broadcast.on_vector(link, have)
        elif what == "due":
            link = broadcast.due(link, ours=ours, now=now, jitter=0.0).link
        else:
            more: dict[str, Any] = {"graft": graft, "prune": prune, "answers": answers}
            link = broadcast.on_message(link, have, ours=ours, now=now, jitter=0.0, **more).link
            assert all(link.theirs.get(feed, 0) >= last for feed, last in have.items()), "what it said last is believed"
        assert max(len(link.theirs), len(link.timer.awaited)) <= link_vector.THEIRS_MAX
        assert len(link.tree.grafted | link.tree.pruned | link.tree.lazy) <= link_vector.THEIRS_MAX + 2 * FEEDS_MAX
        assert len(stored_links.stored(link)) <= 32_768


def test_who_claims_ever_other_feeds_is_asked_for_what_it_claimed_first_and_found_out() -> None:
    link, now, futile = met({}), NOW, False
    for at in range(200):
        now += 0.2
        have = dict.fromkeys([f"{number:0>16}" for number in range(64 * at, 64 * at + 64)], 1)
        link = broadcast.on_message(link, have, ours={F: 1}, now=now, jitter=0.0).link
        due = broadcast.due(link, ours={F: 1}, now=now, jitter=0.0)
        link, futile = due.link, futile or due.futile
        assert len(link.theirs) <= link_vector.THEIRS_MAX
    assert futile


@pytest.mark.parametrize(
    ("path", "fine"),
    [
        (["o", "x", "s"], True),
        (["s"], False),
        (["o", "x"], False),
        (["o", "x", "x", "s"], False),
        ([], False),
        (["o", *map(str, range(exchange.HOPS_MAX - 1)), "s"], False),
    ],
)
def test_a_path_begins_at_the_origin_ends_at_the_sender_and_has_no_circle(path: list[str], fine: bool) -> None:
    assert (exchange.path_problem(path, "o", "s") == "") is fine


def test_a_run_goes_on_by_us_once_and_no_further_than_the_hop_bound() -> None:
    assert exchange.onward((), "me") == ["me"]
    assert exchange.onward(("o", "x"), "me") == ["o", "x", "me"]
    assert exchange.onward(("me", "x", "y"), "me") == ["me"]
    assert exchange.onward([str(n) for n in range(exchange.HOPS_MAX)], "me") is None


def test_a_gap_is_what_is_neither_held_nor_sent() -> None:
    assert exchange.gap_before(4, 5, 0, 0) is None
    assert exchange.gap_before(6, 5, 3, 0) == FeedGap(7, 7, False)
    assert exchange.gap_before(4, 9, 2, 11) == FeedGap(5, 10, True)
    assert exchange.gap_before(4, 9, 2, 10) == FeedGap(5, 10, False)


def test_an_unsigned_gap_is_accepted_only_when_nobody_else_can_fill_it() -> None:
    gap = FeedGap(1, 2, False)
    assert exchange.gap_accepted(FeedGap(1, 2, True), 0.0, False)
    assert not exchange.gap_accepted(gap, exchange.GAP_PATIENCE_S - 1, True)
    assert exchange.gap_accepted(gap, exchange.GAP_PATIENCE_S, True)
    assert not exchange.gap_accepted(gap, exchange.GAP_PATIENCE_S_MAX - 1, False)
    link = met({F: 2}, received_at=NOW)
    assert broadcast.silent(link, F, FeedGap(3, 4, False), NOW, 0)
    assert not broadcast.silent(link, F, FeedGap(2, 4, False), NOW, 0)
    assert not broadcast.silent(link, F, FeedGap(3, 4, False), NOW + 1, 0)
    assert not broadcast.doubted(link, NOW + 1).met
    assert broadcast.doubted(link, NOW) is link


def test_a_peer_whose_own_runs_leave_out_as_much_cannot_fill_a_gap() -> None:
    """Or two replicas that lost the same would be waited for, each for the sake of the other (test_convergence.py)."""
    link = met({F: 9}, received_at=NOW)
    gap = FeedGap(1, 4, False)
    assert not broadcast.silent(link, F, gap, NOW, 0)
    assert not broadcast.silent(link, F, gap, NOW, 3)
    assert broadcast.silent(link, F, gap, NOW, 4)
    assert broadcast.silent(link, F, gap, NOW, 8)
    assert not broadcast.silent(link, F, gap, NOW + 1, 4)


def test_where_a_link_is_in_doubt_only_an_answer_says_that_the_peer_holds_less() -> None:
    link = broadcast.doubted(met({F: 5}), NOW)
    older = hear(link, {F: 3, G: 1}, {F: 5}).link  # a request of the peer, which began before the last answer
    assert not older.met
    assert older.theirs == {F: 5, G: 1}
    assert link_planning.plan(older, {F: 5}, now=NOW) is LinkPlan.VECTOR, "it is asked all the same"
    answered = hear(older, {F: 3}, {F: 5}, answers=True).link
    assert answered.met
    assert answered.theirs == {F: 3}


def test_pauses_double_have_jitter_and_a_cap_and_a_peers_wish_is_honoured_within_reason() -> None:
    assert deliveries.pause_s(1, None, 1.0) == deliveries.PAUSE_S
    assert deliveries.pause_s(1, None, 0.0) == deliveries.PAUSE_S / 2
    assert deliveries.pause_s(3, None, 1.0) == 4 * deliveries.PAUSE_S
    assert deliveries.pause_s(10_000, None, 1.0) == deliveries.PAUSE_S_MAX
    assert deliveries.pause_s(1, 17.0, 0.3) == 17.0
    assert deliveries.pause_s(1, 1e9, 0.3) == deliveries.RETRY_AFTER_S_MAX
    assert deliveries.pause_s(1, -5.0, 1.0) == deliveries.PAUSE_S
    assert Failure.INVALID in deliveries.STOPS
    assert Failure.INVALID not in deliveries.PROBED


def test_a_pause_that_is_over_wakes_nobody_when_the_peer_holds_by_now_what_it_refused() -> None:
    before = met({})
    link = link_planning.on_sent(before, before, {F: 5}, now=NOW)
    until = link_state.again_at(link)
    assert until is not None
    held = hear(link, {F: 5}, {F: 5}).link
    assert link_planning.plan(held, {F: 5}, now=until) is LinkPlan.NOTHING
    assert link_state.again_at(held, after=until) is None


def test_a_planned_feed_is_eager_whatever_the_peer_prunes_and_however_many_copies_come() -> None:
    link = broadcast.planned(met({}, lazy=frozenset((F, G)), pruned=frozenset((F, G))), frozenset((F,)))
    assert link.tree.lazy == link.tree.pruned == frozenset((G,))
    copies = ReceivedFeeds(known=frozenset((F, G)), redundant=frozenset((F, G)))
    heard = hear(link, {F: 1}, {F: 1}, received=copies, prune=[F, G])
    assert heard.prune == frozenset((G,))
    assert heard.link.tree.lazy == heard.link.tree.pruned == frozenset((G,))
    assert link_planning.plan(heard.link, {F: 2}, now=NOW) is LinkPlan.RUNS


def test_a_feed_that_is_planned_no_more_stays_eager_until_a_copy_proves_it_redundant() -> None:
    link = broadcast.planned(broadcast.planned(met({}), frozenset((F,))), frozenset())
    assert link.tree.lazy == frozenset()
    heard = hear(link, {F: 1}, {F: 1}, received=ReceivedFeeds(known=frozenset((F,)), redundant=frozenset((F,))))
    assert heard.prune == frozenset((F,))


def test_a_low_score_outweighs_a_plan() -> None:
    link = broadcast.demoted(broadcast.planned(met({F: 1}), frozenset((F,))), {F: 1})
    assert link.tree.lazy == frozenset((F,))
    assert link.tree.planned == frozenset()


def test_grafts_prunes_and_new_feeds_leave_the_planned_feeds_as_they_are() -> None:
    link = broadcast.planned(met({F: 1, G: 1}), frozenset((F,)))
    assert hear(link, {F: 2}, {F: 1}, graft=[G], prune=[G]).link.tree.planned == frozenset((F,))
    assert broadcast.adopted(msgspec.structs.replace(link, tree=FeedTree(lazy=frozenset((G,)))), F, G) is not link
    grafted = broadcast.asked_at_once(link, G, 5, now=NOW)
    assert grafted.tree.planned == frozenset((F,))
    stored = stored_links.read(stored_links.stored(link))
    assert stored.tree.planned == frozenset((F,))
