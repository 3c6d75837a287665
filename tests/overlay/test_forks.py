"""An origin that equivocates is found out when those who were told meet: the simulated replicas, with core/seals/heads.py.

The liar is no replica of the world: it hands its runs to whom it likes, while the network is cut as it likes. A story is
named by its letter; all its runs are linked, so a run shows which one it goes on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventing.core.events.feeds import Feed
from eventing.core.seals import heads as feed_heads
from eventing.core.seals.heads import HEAD_BYTES
from eventing.overlay import broadcast
from eventing.overlay.dissemination_messages import LinkAnswer, LinkRequest, PeerDue
from eventing.overlay.machine import Fired, MessageReceived
from eventing.overlay.replica_log import FeedRun
from tests.overlay.simulated import Replica, RpWorld
from tests.overlay.test_convergence import topologies

LIAR = Feed("liar.example", "aaaaaaaa")
KEY = LIAR.key
LIAR_ID = -1


def letter(run: FeedRun) -> str:
    text: str = run.events[-1]
    return text[0]


class Doubting(Replica):
    """A replica that compares what it is told of the liar's feed with what it holds. `convinced`: it has two seals."""

    convinced = False

    def told(self, story: str, sizes: list[int]) -> None:
        """The liar hands over its story up to there, in runs of these sizes."""
        first = 1
        for size in sizes:
            last = first + size - 1
            events = tuple(f"{story}{sequence}" for sequence in range(first, last + 1))
            self.take(FeedRun(KEY, LIAR_ID, first, last, 0, events, (LIAR_ID,)), LIAR_ID, 0)
            first = last + 1

    def take(self, run: FeedRun, sender: int, gap_to: int) -> str:
        """A run of another story than the one held is not taken, and proves what the liar did: run_validation.py."""
        one = self.log.feeds.get(run.feed)
        if run.feed == KEY and one is not None and one.runs and run.first <= one.held + 1:
            before = next(kept for kept in one.runs if kept.last >= min(run.last, one.held))
            if letter(before) != letter(run) or (
                run.first <= before.last and run.events != before.events and run.last != before.last
            ):
                self.convinced = True
                return "known"
        return super().take(run, sender, gap_to)

    def heads(self, have: dict[str, int]) -> dict[str, bytes]:
        """By which seals a vector ends: by story and place."""
        return {key: found for key in have if (found := self.head(key, have[key]))}

    def head(self, key: str, sequence: int) -> bytes:
        runs = self.log.feeds[key].runs if key in self.log.feeds else []
        found = next((run for run in runs if run.last >= sequence), None)
        if key != KEY or found is None:
            return b""
        return f"{letter(found)}{found.last}".encode().ljust(HEAD_BYTES, b"-")


@dataclass
class Exchange:
    """What a request says and gets, beside vectors: who asked what, by which seals its feeds end; the answer's, and seals."""

    have: dict[str, int]
    heads: dict[str, bytes]
    answered: dict[str, bytes] = field(default_factory=dict)
    shown: bool = False


class DoubtingWorld(RpWorld):
    """A world of such replicas, whose requests say heads: replication/forwarding/fork_detection.py."""

    def __init__(self, pairs: list[tuple[str, str]], seed: int) -> None:
        self.exchanges: dict[tuple[int, int], Exchange] = {}
        super().__init__(pairs, seed)

    def replica(self, name: str, number: int) -> Doubting:
        return Doubting(name, number)

    @property
    def doubting(self) -> dict[str, Doubting]:
        return {name: one for name, one in self.replicas.items() if isinstance(one, Doubting)}

    def _post(self, source: int, target: int, message: Any) -> None:
        here = self.doubting[self.names[source]]
        exchange = self.exchanges.get((target, message.number)) if type(message) is LinkAnswer else None
        if type(message) is LinkRequest:
            self.exchanges[source, message.number] = Exchange(message.have, here.heads(message.have))
        elif exchange is not None:
            exchange.answered = here.heads(message.have)
            exchange.shown = any(
                here.head(feed, exchange.have[feed]) != exchange.heads[feed]
                for feed in feed_heads.doubtful(exchange.have, exchange.heads, message.have, exchange.answered)
            )
        super()._post(source, target, message)

    def give(self, domain: int, given: Any) -> None:
        here = self.doubting[self.names[domain]]
        answer = given.message if type(given) is MessageReceived and type(given.message) is LinkAnswer else None
        peer = here.peers[given.peer] if answer is not None else None
        flying, answer_of = None if peer is None else peer.flying, getattr(given, "peer", None)
        super().give(domain, given)
        if answer is None or peer is None:
            return
        # The seals of an answer are verified even where the rest of it comes too late (forwarding/outbound_answer.py).
        exchange = self.exchanges[domain, answer.number]
        here.convinced |= exchange.shown
        if flying is None or flying.number != answer.number:
            return
        if feed_heads.contradicting(
            exchange.have, answer.have, exchange.answered, here.vector, here.heads(here.vector)
        ):
            peer.link = broadcast.doubted(peer.link, math.inf)
            super().give(domain, Fired(PeerDue(answer_of)))

    def told(self, name: str, story: str, sizes: list[int]) -> None:
        here = self.doubting[name]
        here.told(story, sizes)
        for peer in here.peers:
            super().give(here.number, Fired(PeerDue(peer)))

    @property
    def convinced(self) -> bool:
        return any(one.convinced for one in self.doubting.values())

    def until_convinced(self, *, within_s: float) -> None:
        end = self.now + within_s
        while not self.convinced:
            assert self.now < end, [one.log.feeds.get(KEY) for one in self.doubting.values()]
            self.go_on(0.05)


FOUND_WITHIN_S = 10.0  # of the world's time; a graft that is asked for again and again takes longest
SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@settings(max_examples=80, deadline=None, database=None)
@given(pairs=topologies(), seed=st.integers(0, 2**32), data=st.data())
def test_two_stories_are_found_out_whatever_their_lengths_whoever_was_told_when_and_with_nothing_more_published(
    pairs: list[tuple[str, str]], seed: int, data: st.DataObject
) -> None:
    world = DoubtingWorld(pairs, seed)
    names = sorted(world.replicas)
    sizes = {"X": data.draw(SIZES), "Y": data.draw(SIZES)}
    for name in names:
        if data.draw(st.booleans()):
            world.publish(name)
    for _ in range(data.draw(st.integers(0, 20))):
        world.go_on(0.05)
    stories: set[str] = set()
    world.cut([pair for pair in pairs if data.draw(st.booleans())])
    for name in names:
        story = data.draw(st.sampled_from(["X", "Y", ""]))
        if story:
            stories.add(story)
            world.told(name, story, sizes[story])
        for _ in range(data.draw(st.integers(0, 12))):
            world.go_on(0.05)
    world.cut(())
    if len(stories) == 2:
        world.until_convinced(within_s=FOUND_WITHIN_S)
    else:
        world.settle()
        assert not world.convinced


@pytest.mark.parametrize("sizes", [([3], [3]), ([1, 2], [3]), ([2, 1], [1, 2])], ids=["same", "cut", "cut-otherwise"])
def test_two_stories_of_one_length_told_to_two_sides_that_were_never_in_touch(
    sizes: tuple[list[int], list[int]],
) -> None:
    """Both sides are asked what they hold before anything else: with vectors alone they would find that they agree."""
    world = DoubtingWorld([("a.example", "b.example")], 1)
    world.told("a.example", "X", sizes[0])
    world.told("b.example", "Y", sizes[1])
    world.until_convinced(within_s=1.0)
    assert world.copies <= 6, "no run had to be sent"
