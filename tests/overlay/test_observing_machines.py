"""Liveness, suspicion and scores under any order of what a domain observes: Hypothesis state machines."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from eventing.overlay.gossip_object import SignedRow
from eventing.overlay.gossip_rows import RowSet
from eventing.overlay.liveness import (
    BEAT_DUE,
    FAILED_S,
    HEALTH_MAX,
    Alive,
    Beat,
    Failed,
    Liveness,
    Probe,
    ProbeFor,
    SignDue,
)
from eventing.overlay.machine import Fired, SendMessage, SetTimer
from eventing.overlay.monitors import MonitorRing
from eventing.overlay.scores import (
    EFFECTS,
    FLOOR,
    GOOD_MAX,
    LEVELS,
    LOOK_S,
    SCORED_MAX,
    SCORES_DUE,
    Deed,
    Noted,
    OwnQueuesFull,
    Pardoned,
    QueuesFull,
    Scores,
    VectorsShown,
)
from eventing.overlay.suspicion import LOOK_DUE, QUORUM, Rebutted, Suspected, Suspicion
from eventing.overlay.suspicion_rows import Accusations, Rebuttals, accusation_payload, accused_of
from eventing.sim.federation import STARTED_S, mixed

PEERS = st.integers(0, 7)


class ObservedLinks(RuleBasedStateMachine):
    """Links of eight peers: messages arrive or not, timers fire early, late and twice, strangers send everything."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.chance = Random(1)
        self.liveness = Liveness()
        self.liveness.begin(self.now, self.chance)
        self.up: dict[int, float] = {}

    def due(self, timer: Any) -> None:
        out: list[Any] = []
        groups = {peer: peer % 4 for peer in self.up}
        self.liveness.due(timer, self.now, groups, self.chance, out)
        for one in out:
            if isinstance(one, Failed):
                assert self.now - self.up[one.peer] >= FAILED_S - 0.1, "it was heard meanwhile"
                self.liveness.down(one.peer)
                del self.up[one.peer]
            elif isinstance(one, SendMessage):
                assert one.peer in self.up
            else:
                assert not isinstance(one, SetTimer) or one.after_s >= 0.0

    @rule(peer=PEERS)
    def link(self, peer: int) -> None:
        self.liveness.up(peer, self.now)
        self.up[peer] = self.now

    @rule(peer=PEERS)
    def end(self, peer: int) -> None:
        self.liveness.down(peer)
        self.up.pop(peer, None)

    @rule(peer=PEERS)
    def hear(self, peer: int) -> None:
        self.liveness.heard(peer, self.now)
        if peer in self.up:
            self.up[peer] = self.now

    @rule(seconds=st.floats(0.1, 5.0))
    def look(self, seconds: float) -> None:
        self.now += seconds
        self.due(BEAT_DUE)

    @rule(seconds=st.sampled_from([1.0, 12.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(peer=PEERS)
    def judge(self, peer: int) -> None:
        self.due(SignDue(peer))

    @rule(peer=st.integers(0, 9), of=st.integers(0, 9))
    def receive_anything(self, peer: int, of: int) -> None:
        for message in (Beat(), Probe(), Probe(of), ProbeFor(of), Alive(None, of)):
            out: list[Any] = []
            self.liveness.received(peer, message, self.now, out)
            assert len(out) <= 1
            for one in out:
                assert one.peer == peer or (one.peer in self.up and peer in self.up) or isinstance(message, Alive)

    @invariant()
    def its_own_health_is_within_bounds(self) -> None:
        assert 1 <= self.liveness.health <= HEALTH_MAX


class ScoredLinks(RuleBasedStateMachine):
    """Deeds of three peers in two regions in any order and number, looks, and a restart in between."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.chance = Random(1)
        self.scores = Scores()
        self.in_force: set[tuple[str, int, str]] = set()
        self.faults = False

    def give(self, given: Any) -> None:
        for effect in self.scores.handle(given, self.now, self.chance):
            if isinstance(effect, Pardoned):
                self.in_force.remove((effect.region, effect.peer, effect.of))
            elif isinstance(effect, EFFECTS) and not isinstance(effect, OwnQueuesFull):
                key = (effect.region, effect.peer, type(effect).__name__)
                assert key not in self.in_force, "an effect begins once"
                assert self.faults, "nobody is punished for good deeds"
                self.in_force.add(key)

    @rule(
        region=st.sampled_from("ab"), peer=st.integers(0, 2), deed=st.sampled_from(list(Deed)), count=st.integers(1, 40)
    )
    def note(self, region: str, peer: int, deed: Deed, count: int) -> None:
        self.faults = self.faults or deed is not Deed.FIRST
        self.give(Noted(region, peer, deed, count))

    @rule(ours=st.integers(0, 100), theirs=st.lists(st.integers(0, 2**53), min_size=0, max_size=5))
    def show(self, ours: int, theirs: list[int]) -> None:
        self.faults = True
        self.give(VectorsShown("a", {"f": ours}, {at: {"f": last} for at, last in enumerate(theirs)}))

    @rule(full=st.sets(st.integers(0, 2)), links=st.integers(0, 5))
    def fill_queues(self, full: set[int], links: int) -> None:
        self.faults = True
        self.give(QueuesFull(tuple(("a", peer) for peer in sorted(full)), links))

    @rule(looks=st.integers(1, 30))
    def look(self, looks: int) -> None:
        for _ in range(looks):
            self.now += LOOK_S
            self.give(Fired(SCORES_DUE))

    @precondition(lambda self: self.scores.accounts)
    @rule()
    def restart(self) -> None:
        again = Scores()
        again.load(self.scores.dump(self.now), self.now)
        self.scores = again

    @invariant()
    def scores_are_within_bounds_and_effects_are_in_order(self) -> None:
        assert len(self.scores.accounts) <= SCORED_MAX
        for region, peer in self.scores.accounts:
            assert FLOOR <= self.scores.score(region, peer) <= GOOD_MAX
        for _, kind in LEVELS:
            for region in "ab":
                for peer in range(3):
                    forced = (region, peer, kind.__name__) in self.in_force
                    assert self.scores.allows(kind, region, peer) == (not forced)

    def teardown(self) -> None:
        """All is forgiven in the end."""
        for _ in range(2000):
            if not self.in_force:
                break
            self.now += 10 * LOOK_S
            self.give(Fired(SCORES_DUE))
        assert not self.in_force


TestObservedLinks = ObservedLinks.TestCase
TestObservedLinks.settings = settings(max_examples=30, stateful_step_count=40, deadline=None, database=None)
TestScoredLinks = ScoredLinks.TestCase
TestScoredLinks.settings = settings(max_examples=30, stateful_step_count=40, deadline=None, database=None)


class AccusedDomains(RuleBasedStateMachine):
    """Rows of accusations and rebuttals of sixteen domains reach one reader in any order; five of the domains never accuse."""

    COUNT = 16

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.chance = Random(1)
        sets = [
            RowSet(kind, mixed, lambda domain: True, lambda name, row: True) for kind in (Accusations(), Rebuttals())
        ]
        self.accusations, self.rebuttals = sets
        ring = MonitorRing(range(self.COUNT), 0, mixed)
        self.reader = Suspicion(
            0, self.accusations, self.rebuttals, ring=lambda epoch: ring, group=lambda one: one % 8, started_s=STARTED_S
        )
        self.rebutted: dict[int, int] = {}

    def row(self, owner: int, payload: bytes) -> SignedRow:
        version = int(STARTED_S + self.now)
        return SignedRow(owner, version, version + 5000, payload, bytes(64))

    @rule(by=st.integers(5, COUNT - 1), of=st.lists(st.integers(0, 3), max_size=4, unique=True))
    def accuse(self, by: int, of: list[int]) -> None:
        self.now += 6.0
        accused = tuple((domain, self.rebutted.get(domain, 0)) for domain in sorted(of))
        self.accusations.merge(self.row(by, accusation_payload(accused)), self.now, STARTED_S + self.now)

    @rule(of=st.integers(0, 3))
    def all_accuse(self, of: int) -> None:
        for by in range(5, self.COUNT):
            self.accuse(by, [of])

    @rule(by=st.integers(1, 4))
    def rebut(self, by: int) -> None:
        self.now += 6.0
        row = self.row(by, b"")
        self.rebuttals.merge(row, self.now, STARTED_S + self.now)
        self.rebutted[by] = row.version

    @rule(seconds=st.sampled_from([1.0, 31.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def look(self) -> None:
        accusers = {
            domain: [by for by in range(self.COUNT) if self.accuses(by, domain)] for domain in range(self.COUNT)
        }
        for event in self.reader.handle(Fired(LOOK_DUE), self.now, self.chance):
            if isinstance(event, Suspected):
                assert event.domain != 0, "a domain does not suspect itself of silence"
                assert len(set(event.accusers)) >= QUORUM
                assert set(event.accusers) <= set(accusers[event.domain])
            elif isinstance(event, Rebutted):
                assert set(event.accusers) <= set(accusers[0])

    def accuses(self, by: int, domain: int) -> bool:
        row = self.accusations.rows.get(by)
        stated = dict(accused_of(row.payload) or ()) if row is not None else {}
        return stated.get(domain, -1) == self.rebutted.get(domain, 0)

    def teardown(self) -> None:
        """A domain that rebuts is suspected no longer at the next look, whatever was stated before."""
        self.look()
        self.now += 40.0
        self.look()
        for domain in list(self.reader.suspected):
            self.rebut(domain)
        self.look()
        assert not self.reader.suspected


TestAccusedDomains = AccusedDomains.TestCase
TestAccusedDomains.settings = settings(max_examples=25, stateful_step_count=40, deadline=None, database=None)
