"""Succession of a home: what the laws promise, whatever the network, the clocks and the crashes do."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from eventing.overlay import succession
from eventing.overlay.succession import ElectorStanding, SuccessionRules

SILENCE_MS = 5000
RULES = SuccessionRules(("b", "c", "d"), SILENCE_MS)
CHANCE = random.Random(1)


def silent_since(heard_ms: int = 0, **changes: Any) -> ElectorStanding:
    return succession.newcomer(heard_ms)._replace(misses=2, **changes)


def test_the_electors_stand_in_their_order_after_the_stated_silence() -> None:
    for place, me in enumerate(RULES.electors):
        turn = SILENCE_MS + place * succession.STEP_MS
        assert succession.stand(RULES, me, silent_since(), 0, turn - 1, CHANCE) is None
        stood = succession.stand(RULES, me, silent_since(), 4, turn, CHANCE)
        assert stood is not None
        assert (stood.term, stood.voted) == (5, b"")
        assert succession.stand(RULES, me, stood, 4, turn + 1, CHANCE) is None, "not at once again"
    assert succession.stand(RULES, "x", silent_since(), 0, 100_000, CHANCE) is None, "no elector"


def test_a_clock_that_jumps_is_no_silence() -> None:
    heard = succession.newcomer(0)
    assert not succession.silent(RULES, heard, 10**9)
    missed = succession.home_missed(heard, 10**9)
    assert not succession.silent(RULES, missed, 10**9)
    assert succession.silent(RULES, succession.home_missed(missed, 10**9), 10**9)
    assert not succession.silent(RULES, succession.home_heard(missed, 10**9), 10**9 + SILENCE_MS)


def test_a_clock_that_is_set_back_does_not_keep_an_elector_from_standing() -> None:
    stood = silent_since(10**9)._replace(stand_ms=10**9 + 5)
    back = 10**9 - 3_600_000
    missed = succession.home_missed(succession.home_missed(stood, back), back + 1000)
    assert succession.stand(RULES, "b", missed, 0, back + SILENCE_MS, CHANCE) is not None
    assert not succession.silent(RULES, missed, back + SILENCE_MS - 1), "its silence begins anew"


def test_an_elector_votes_once_in_a_term_and_repeats_that_vote() -> None:
    standing, votes = succession.vote(RULES, silent_since(), present=0, term=1, payload=b"c", now_ms=SILENCE_MS)
    assert votes
    assert succession.vote(RULES, standing, present=0, term=1, payload=b"c", now_ms=SILENCE_MS).votes
    assert not succession.vote(RULES, standing, present=0, term=1, payload=b"d", now_ms=SILENCE_MS).votes
    assert succession.vote(RULES, standing, present=0, term=2, payload=b"d", now_ms=SILENCE_MS).votes


@pytest.mark.parametrize(("present", "term"), [(1, 1), (0, 0), (5, 3), (0, 2 + succession.TERMS_AHEAD_MAX)])
def test_an_elector_votes_in_no_term_that_is_over_or_absurd(present: int, term: int) -> None:
    standing = silent_since()
    assert not succession.vote(RULES, standing, present=present, term=term, payload=b"c", now_ms=SILENCE_MS).votes


def test_who_hears_the_home_votes_for_it_only() -> None:
    standing = succession.newcomer(0)
    assert not succession.vote(RULES, standing, present=0, term=1, payload=b"c", now_ms=SILENCE_MS).votes
    assert succession.vote(
        RULES, standing, present=0, term=1, payload=b"c", now_ms=SILENCE_MS, asked_by_home=True
    ).votes


def test_a_vote_in_an_ended_term_is_never_given_again() -> None:
    standing = succession.term_accepted(silent_since(term=1, voted=b"c"), 3, 10)
    assert (standing.term, standing.voted, standing.misses) == (3, b"", 0)
    assert not succession.vote(RULES, standing, present=3, term=3, payload=b"d", now_ms=10**6).votes


def test_a_term_that_is_stated_to_be_far_ahead_is_ignored() -> None:
    assert succession.term_met(silent_since(), 2**53).term == 0
    assert succession.term_met(silent_since(), 7).term == 7


# One RP, its home and its electors, over a network that parts, loses and delays, with clocks that are off and processes that die.


@dataclass
class Node:
    """A domain: what it stored, its clock, and the home as it knows it."""

    name: str
    skew_ms: int
    standing: ElectorStanding
    home: str = "a"
    term: int = 0
    votes: dict[int, set[str]] = field(default_factory=dict)


class World:
    """A run drawn from a seed. `accepted` are the homes by term that any domain ever accepted."""

    def __init__(self, seed: int, electors: int) -> None:
        self.chance = random.Random(seed)
        self.names = [chr(ord("a") + number) for number in range(electors + 1)]
        self.rules = SuccessionRules(tuple(self.names[1:]), SILENCE_MS)
        self.now = 0
        self.queue: list[tuple[int, int, Any]] = []
        self.count = 0
        self.nodes = {name: self.fresh(name) for name in self.names}
        self.side = dict.fromkeys(self.names, 0)
        self.down: set[str] = set()
        self.loss = 0.0
        self.accepted: dict[int, set[str]] = {0: {"a"}}
        self.changed_at = {0: 0}

    def fresh(self, name: str) -> Node:
        skew_ms = self.chance.randrange(10**9)
        return Node(name, skew_ms, succession.newcomer(skew_ms))

    def after(self, delay_ms: int, action: Any) -> None:
        self.count += 1
        heapq.heappush(self.queue, (self.now + delay_ms, self.count, action))

    def clock(self, node: Node) -> int:
        return self.now + node.skew_ms

    def reaches(self, one: str, other: str) -> bool:
        together = self.side[one] == self.side[other] and not {one, other} & self.down
        return together and self.chance.random() >= self.loss

    def send(self, one: str, other: str, action: Any) -> None:
        if self.reaches(one, other):
            self.after(1 + self.chance.randrange(300), lambda: other in self.down or action())

    def accept(self, name: str, home: str, term: int) -> None:
        node = self.nodes[name]
        if term <= node.term:
            return
        self.accepted.setdefault(term, set()).add(home)
        self.changed_at.setdefault(term, self.now)
        node.home, node.term = home, term
        node.standing = succession.term_accepted(node.standing, term, self.clock(node))

    def tick(self, name: str) -> None:
        self.after(400 + self.chance.randrange(100), lambda: self.tick(name))
        node = self.nodes[name]
        if name in self.down:
            return
        for other in self.names:  # statements along the links
            self.send(name, other, lambda other=other, home=node.home, term=node.term: self.accept(other, home, term))
        if node.home == name:
            return
        now = self.clock(node)
        if succession.probe_due(self.rules, node.standing, now):
            probed = succession.home_heard if self.reaches(name, node.home) else succession.home_missed
            node.standing = probed(node.standing, now)
        stood = succession.stand(self.rules, name, node.standing, node.term, now, self.chance)
        if stood is not None:
            node.standing = stood
            for elector in self.rules.electors:
                self.ask(name, elector, stood.term, node.term)

    def ask(self, candidate: str, elector: str, term: int, present: int) -> None:
        if candidate == elector:
            self.voting(elector, candidate, term, present)
        else:
            self.send(candidate, elector, lambda: self.voting(elector, candidate, term, present))

    def voting(self, elector: str, candidate: str, term: int, present: int) -> None:
        node = self.nodes[elector]
        if node.term != present or node.home == elector:
            return
        payload = f"{candidate}{term}".encode()
        node.standing, votes = succession.vote(
            self.rules, node.standing, present=present, term=term, payload=payload, now_ms=self.clock(node)
        )
        met = node.standing.term
        self.send(elector, candidate, lambda: self.voted(candidate, elector, term, met, votes))

    def voted(self, candidate: str, elector: str, term: int, met: int, votes: bool) -> None:
        node = self.nodes[candidate]
        node.standing = node.standing if votes else succession.term_met(node.standing, met)
        given = node.votes.setdefault(term, set())
        if votes:
            given.add(elector)
        if len(given) >= self.rules.quorum:
            self.accept(candidate, candidate, term)

    def run(self, until: int) -> None:
        while self.queue and self.queue[0][0] <= until:
            self.now, _, action = heapq.heappop(self.queue)
            action()
        self.now = until

    def disturb(self) -> None:
        """Part the domains anew, lose messages, kill some (what they stored stays), set a clock."""
        self.side = {name: self.chance.randrange(3) for name in self.names}
        self.loss = self.chance.choice([0.0, 0.1, 0.3])
        self.down = {name for name in self.names if self.chance.random() < 0.15}
        self.nodes[self.chance.choice(self.names)].skew_ms += self.chance.randrange(-(10**7), 10**7)

    def heal(self, *, without: str = "") -> None:
        self.side, self.loss, self.down = dict.fromkeys(self.names, 0), 0.0, {without} - {""}


@pytest.mark.parametrize("seeds", [range(100), pytest.param(range(100, 1000), marks=pytest.mark.long)], ids=str)
def test_of_a_thousand_random_partitions_none_has_two_homes_in_a_term(seeds: range) -> None:
    terms = 0
    for seed in seeds:
        world = World(seed, electors=2 + seed % 5)
        for name in world.names:
            world.tick(name)
        for _ in range(4):
            world.disturb()
            world.run(world.now + 4000 + world.chance.randrange(9000))
        world.heal()
        world.run(world.now + 4000)
        assert all(len(homes) == 1 for homes in world.accepted.values()), (seed, world.accepted)
        homes = {(node.home, node.term) for node in world.nodes.values()}
        assert len(homes) == 1, (seed, homes)
        terms += len(world.accepted) - 1
    assert terms > len(seeds) // 5, "there were elections to go wrong"


def test_a_home_that_is_gone_for_good_is_succeeded_within_its_silence_and_ten_seconds() -> None:
    """Also where the first in order is gone with it, as long as the majority is there."""
    longest = 0
    for seed in range(200):
        world = World(seed, electors=3 + seed % 5)
        for name in world.names:
            world.tick(name)
        world.run(3000 + world.chance.randrange(3000))
        gone_at = world.now
        world.down = {"a", *(["b"] if seed % 3 == 0 else [])}
        world.run(gone_at + SILENCE_MS + 10_000)
        alive = [world.nodes[name] for name in world.names if name not in world.down]
        assert len({(node.home, node.term) for node in alive}) == 1, seed
        assert alive[0].term > 0, seed
        longest = max(longest, world.changed_at[alive[0].term] - gone_at)
        assert all(len(homes) == 1 for homes in world.accepted.values())
    print(f"\nlongest of 200: {longest} ms after the home was gone, of {SILENCE_MS} ms of silence")


def test_without_a_majority_there_is_no_succession() -> None:
    world = World(7, electors=4)
    for name in world.names:
        world.tick(name)
    world.down = {"a", "b", "c"}
    world.run(60_000)
    assert list(world.accepted) == [0]
