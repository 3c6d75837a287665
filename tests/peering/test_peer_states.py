"""The states of peers: every hello leads somewhere, and two domains agree in the end, whatever is lost, late or repeated."""

from __future__ import annotations

import random
import re
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest

from eventing.core.errors import Conflict
from eventing.peering.rules.peers import (
    ACTS,
    HELLOS,
    REFUSALS,
    STANCES,
    PeeringAction,
    PeeringState,
    Stance,
    greets,
    on_action,
    on_hello,
    safety_number,
)

STATES = (None, *PeeringState)
WALKS, WALKS_OF_SEED, STEPS = 8, 150, 40


def test_every_act_in_every_state_is_either_done_or_refused_with_a_sentence() -> None:
    for state, act in product(PeeringState, PeeringAction):
        assert ((state, act) in ACTS) != ((state, act) in REFUSALS), (state, act)
    assert set(ACTS) - set(product(PeeringState, PeeringAction)) == {(None, PeeringAction.ADD)}, (
        "of a domain without a row nothing else is possible"
    )


def test_every_hello_in_every_state_leads_somewhere() -> None:
    assert set(HELLOS) == set(product(STATES, Stance))
    assert set(STANCES) == set(STATES)


def test_the_diagram_in_the_docs_is_the_graph() -> None:
    text = (Path(__file__).parents[2] / "docs/federation/peers.md").read_text()
    drawn = set(re.findall(r"^    (\S+) --> (\S+):", text, re.MULTILINE))
    live_gateways = {(state, after) for (state, _), after in (*ACTS.items(), *HELLOS.items())}
    live_gateways.add(
        (PeeringState.SUSPENDED, on_action(PeeringState.SUSPENDED, PeeringAction.RESUME, Stance.APPROVES, "b.test"))
    )
    assert drawn == {(before or "[*]", after or "[*]") for before, after in live_gateways if before is not after}


def test_no_hello_alone_makes_a_stranger_more_than_one_that_asks() -> None:
    for stance in Stance:
        assert on_hello(None, stance) in (None, PeeringState.ASKED)
        assert on_hello(PeeringState.ASKED, stance) in (None, PeeringState.ASKED)


def test_no_hello_ends_a_suspension() -> None:
    assert {on_hello(PeeringState.SUSPENDED, stance) for stance in Stance} == {PeeringState.SUSPENDED}


def test_what_makes_no_sense_is_refused_saying_what_to_do() -> None:
    with pytest.raises(Conflict, match=r"b\.test is suspended here\. Resume it"):
        on_action(PeeringState.SUSPENDED, PeeringAction.APPROVE, None, "b.test")


def test_the_safety_number_is_the_same_on_both_sides_and_another_for_others() -> None:
    assert safety_number("one", "two") == safety_number("two", "one")
    assert len({safety_number("one", other) for other in ("two", "three", "four")}) == 3
    assert len(safety_number("one", "two").split(" ")) == 6


@dataclass
class Side:
    """One domain's view of the other, as peering/services/peers.py keeps it."""

    state: PeeringState | None = None
    theirs: Stance | None = None
    theirs_at: int = 0
    changed_at: int = 0
    agreed: bool = False  # an administrator added or approved, and has not removed since

    def enter(self, state: PeeringState | None, now: int) -> None:
        if state is not self.state:
            self.changed_at = now
        self.state = state
        if state is None:
            self.theirs, self.theirs_at, self.agreed = None, 0, False

    def says(self, now: int) -> tuple[Stance, int]:
        return STANCES[self.state], now if self.state is None else self.changed_at

    def hears(self, stance: Stance, at: int, now: int) -> None:
        if self.state is not None and at < self.theirs_at:
            return
        after = on_hello(self.state, stance)
        if after is not None:
            self.theirs, self.theirs_at = stance, at
        self.enter(after, now)


@dataclass
class Two:
    """Two domains, their administrators, and a network that does what it likes with hellos: late, twice, or never."""

    now: int = 0
    sides: tuple[Side, Side] = field(default_factory=lambda: (Side(), Side()))
    messages: list[tuple[int, Stance, int]] = field(default_factory=list)  # to whom, what, since when

    def tick(self) -> int:
        self.now += 1
        return self.now

    def act(self, which: int, act: PeeringAction) -> None:
        side, now = self.sides[which], self.tick()
        if side.state is None and act is not PeeringAction.ADD:
            return  # not found
        try:
            after = on_action(side.state, act, side.theirs, "other")
        except Conflict:
            return
        if act is PeeringAction.ADD and side.theirs is Stance.LEAVES:
            side.theirs = None
        side.agreed = side.agreed or act in (PeeringAction.ADD, PeeringAction.APPROVE)
        side.enter(after, now)
        if act is PeeringAction.REMOVE:
            self.messages.append((1 - which, Stance.LEAVES, now))  # the farewell

    def greet(self, which: int) -> None:
        if self.greets(which):
            self.messages.append((1 - which, *self.sides[which].says(self.tick())))

    def greets(self, which: int) -> bool:
        side = self.sides[which]
        return side.state is not None and greets(side.state, side.theirs)

    def deliver(self, place: int, *, again: bool, answered: bool) -> None:
        to, stance, at = self.messages[place]
        if not again:
            self.messages.pop(place)
        self.sides[to].hears(stance, at, self.tick())
        if answered:
            self.messages.append((1 - to, *self.sides[to].says(self.tick())))

    def healed(self) -> None:
        """The network works from now on, and what was under way is lost: hellos come to rest."""
        before: object = None
        for _ in range(6):
            for which in (0, 1):
                if self.greets(which):
                    side, other = self.sides[which], self.sides[1 - which]
                    other.hears(*side.says(self.tick()), self.tick())
                    side.hears(*other.says(self.tick()), self.tick())
            after = [(side.state, side.theirs) for side in self.sides]
            if after == before:
                return
            before = after
        raise AssertionError(f"hellos never come to rest: {before}")

    def check(self) -> None:
        """Both see the same peering."""
        for which in (0, 1):
            side, other = self.sides[which], self.sides[1 - which]
            if side.state is PeeringState.ACTIVE:
                assert side.agreed, "active though no administrator agreed"
                assert other.state in (PeeringState.ACTIVE, PeeringState.SUSPENDED), (side.state, other.state)
            if side.state is PeeringState.PROPOSED and side.theirs is not Stance.LEAVES:
                assert other.state in (PeeringState.ASKED, PeeringState.SUSPENDED), (side.state, other.state)


@pytest.mark.parametrize("seed", range(WALKS))
def test_two_domains_agree_once_hellos_arrive_whatever_was_lost_late_or_repeated(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(WALKS_OF_SEED):
        two = Two()
        for step in range(STEPS):
            which, kind = chance.randrange(2), chance.random()
            if kind < 0.35:
                two.act(which, chance.choice(tuple(PeeringAction)))
            elif kind < 0.6:
                two.greet(which)
            elif two.messages:
                again, answered = chance.random() < 0.4, chance.random() < 0.6
                two.deliver(chance.randrange(len(two.messages)), again=again, answered=answered)
            del two.messages[:-8]  # the oldest are lost
            if step % 4 == 3:
                later = deepcopy(two)
                later.healed()
                later.check()
