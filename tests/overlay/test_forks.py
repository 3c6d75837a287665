"""An origin that equivocates is found out when those who were told meet: the simulated replicas, with core/seals/heads.py.

The liar is no replica of the world: it hands its runs to whom it likes, while the network is cut as it likes. A story is
named by its letter; all its runs are linked, so a run shows which one it goes on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventing.core.events.feeds import Feed
from eventing.core.seals import heads as feed_heads
from eventing.core.seals.heads import HEAD_BYTES
from eventing.overlay import broadcast
from tests.overlay.simulated import Message, Replica, Run, World
from tests.overlay.test_convergence import topologies

LIAR = Feed("liar.example", "aaaaaaaa")
KEY = LIAR.key


def letter(run: Run) -> str:
    return run.events[-1][0]


class Doubting(Replica):
    """A replica that compares what it is told of the liar's feed with what it holds. `convinced`: it has two seals."""

    convinced = False

    def told(self, story: str, sizes: list[int]) -> None:
        """The liar hands over its story up to there, in runs of these sizes."""
        first = 1
        for size in sizes:
            last = first + size - 1
            events = tuple(f"{story}{sequence}" for sequence in range(first, last + 1))
            self.take(Run(LIAR, first, last, 0, events, (LIAR.origin,)), LIAR.origin)
            first = last + 1

    def take(self, run: Run, sender: str, gap_to: int = 0) -> str:
        """A run of another story than the one held is not taken, and proves what the liar did: run_validation.py."""
        one = self.feeds.get(run.feed.key)
        if run.feed == LIAR and one is not None and one.runs and run.first <= one.held + 1:
            before = next(kept for kept in one.runs if kept.last >= min(run.last, one.held))
            if letter(before) != letter(run) or (
                run.first <= before.last and run != before and run.last != before.last
            ):
                self.convinced = True
                return "known"
        return super().take(run, sender, gap_to)

    def heads(self, have: dict[str, int]) -> dict[str, bytes]:
        """By which seals a vector ends: by story and place."""
        return {key: found for key in have if (found := self.head(key, have[key]))}

    def head(self, key: str, sequence: int) -> bytes:
        runs = self.feeds[key].runs if key in self.feeds else []
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


class DoubtingWorld(World):
    """A world of such replicas, whose requests say heads: replication/forwarding/fork_detection.py."""

    def __init__(self, live_gateways: list[tuple[str, str]], seed: int) -> None:
        super().__init__(live_gateways, seed)
        self.doubting = {name: Doubting(self, name) for name in self.replicas}
        self.replicas = dict(self.doubting)
        self.exchanges: dict[int, Exchange] = {}

    def post(self, message: Message) -> None:
        here = self.doubting[message.source]
        if not message.is_answer:
            self.exchanges[message.number] = Exchange(message.have, here.heads(message.have))
        elif message.number in self.exchanges:
            exchange = self.exchanges[message.number]
            exchange.answered = here.heads(message.have)
            exchange.shown = any(
                here.head(feed, exchange.have[feed]) != exchange.heads[feed]
                for feed in feed_heads.doubtful(exchange.have, exchange.heads, message.have, exchange.answered)
            )
        super().post(message)

    def deliver(self, message: Message) -> None:
        here = self.doubting[message.target]
        flying = here.in_flight.get(message.source)
        super().deliver(message)
        if not message.is_answer or flying is None or flying.number != message.number or not self.passes(message):
            return
        exchange = self.exchanges[message.number]
        here.convinced |= exchange.shown
        if feed_heads.contradicting(
            exchange.have, message.have, exchange.answered, here.vector, here.heads(here.vector)
        ):
            here.links[message.source] = broadcast.doubted(here.links[message.source], math.inf)

    @property
    def convinced(self) -> bool:
        return any(one.convinced for one in self.doubting.values())

    def until_convinced(self, *, within_s: float) -> None:
        end = self.now + within_s
        while not self.convinced:
            assert self.now < end, [one.feeds.get(KEY) for one in self.doubting.values()]
            self.turn()
            self.now += 0.05


FOUND_WITHIN_S = 10.0  # of the world's time; a graft that is asked for again and again takes longest
SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@settings(max_examples=150, deadline=None, database=None)
@given(live_gateways=topologies(), seed=st.integers(0, 2**32), data=st.data())
def test_two_stories_are_found_out_whatever_their_lengths_whoever_was_told_when_and_with_nothing_more_published(
    live_gateways: list[tuple[str, str]], seed: int, data: st.DataObject
) -> None:
    world = DoubtingWorld(live_gateways, seed)
    names = sorted(world.replicas)
    sizes = {"X": data.draw(SIZES), "Y": data.draw(SIZES)}
    for name in names:
        if data.draw(st.booleans()):
            world.publish(name)
    for _ in range(data.draw(st.integers(0, 20))):
        world.turn()
        world.now += 0.05
    stories: set[str] = set()
    world.cut = {frozenset(live_gateway) for live_gateway in live_gateways if data.draw(st.booleans())}
    for name in names:
        story = data.draw(st.sampled_from(["X", "Y", ""]))
        if story:
            stories.add(story)
            world.doubting[name].told(story, sizes[story])
        for _ in range(data.draw(st.integers(0, 12))):
            world.turn()
            world.now += 0.05
    world.cut.clear()
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
    world.doubting["a.example"].told("X", sizes[0])
    world.doubting["b.example"].told("Y", sizes[1])
    world.until_convinced(within_s=1.0)
    assert world.copies <= 6, "no run had to be sent"
