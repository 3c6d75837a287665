"""Links of a few domains over a network that loses, repeats and reorders, with one that sends what it likes: a Hypothesis state machine."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from eventing.overlay.directory_candidates import DirectoryCandidates
from eventing.overlay.links import (
    NEARER_DUE,
    REPAIR_DUE,
    ROTATE_DUE,
    SUSPICIOUS,
    Disconnect,
    DropLink,
    FindLinks,
    LinkDown,
    Links,
    LinkUp,
    Neighbor,
    NeighborReply,
    Reason,
    ReplyDue,
)
from eventing.overlay.machine import Down, Fired, MessageReceived, SendMessage, SetTimer
from eventing.sim.federation import STARTED_S, directory_make, record_make, table_make

COUNT = 24
LIAR = COUNT - 1
PARAMETERS = msgspec.structs.replace(SUSPICIOUS, chosen=4, accepted=20, unpaired=2, near=1, group_max=0)
OF_LIARS: tuple[Any, ...] = (
    Neighbor(True),
    NeighborReply(True, (1, 2, 3, 4, 5, 6, LIAR)),
    NeighborReply(False),
    *(Disconnect(reason, (LIAR, -1)) for reason in Reason),
)


class LinkingDomains(RuleBasedStateMachine):
    """Requests and answers are lost, repeated, reordered; peers fail and are dropped; the last domain sends everything to everybody."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.chance = Random(1)
        table = table_make()
        self.domains: list[Links] = []
        self.stated: list[set[int]] = []
        for me in range(COUNT):
            directory = directory_make(me, table)
            directory.fill(record_make(one, int(STARTED_S), STARTED_S) for one in range(COUNT))
            self.domains.append(Links(me, PARAMETERS, DirectoryCandidates(directory)))
            self.stated.append(set())
        self.on_the_way: list[tuple[int, int, Any]] = []
        self.timers: list[tuple[int, Any]] = []
        for me in range(LIAR):
            self.give(me, FindLinks(((me + 1) % LIAR,)))

    def give(self, me: int, given: Any) -> None:
        for one in self.domains[me].handle(given, self.now, self.chance):
            if isinstance(one, SendMessage):
                self.on_the_way.append((me, one.peer, one.message))
            elif isinstance(one, SetTimer):
                self.timers.append((me, one.timer))
            elif isinstance(one, LinkUp):
                assert one.peer not in self.stated[me]
                self.stated[me].add(one.peer)
            elif isinstance(one, LinkDown):
                self.stated[me].remove(one.peer)

    def receive(self, source: int, target: int, message: Any) -> None:
        if target != LIAR:
            self.give(target, MessageReceived(source, message))

    @rule(at=st.integers(0, 10_000), repeated=st.booleans())
    def deliver(self, at: int, repeated: bool) -> None:
        if self.on_the_way:
            message = self.on_the_way[at % len(self.on_the_way)]
            if not repeated:
                del self.on_the_way[at % len(self.on_the_way)]
            self.receive(*message)

    @rule(at=st.integers(0, 10_000), reported=st.booleans())
    def lose(self, at: int, reported: bool) -> None:
        if self.on_the_way:
            source, target, _ = self.on_the_way.pop(at % len(self.on_the_way))
            if reported:
                self.give(source, Down(target))

    @rule(at=st.integers(0, 10_000), again=st.booleans())
    def fire(self, at: int, again: bool) -> None:
        """Early, late and repeated timers are harmless."""
        self.now += 1.0
        if self.timers:
            me, timer = self.timers[at % len(self.timers)]
            if not again:
                del self.timers[at % len(self.timers)]
            self.give(me, Fired(timer))

    @rule(me=st.integers(0, LIAR - 1), timer=st.sampled_from([REPAIR_DUE, ROTATE_DUE, NEARER_DUE, ReplyDue(-1, 0)]))
    def fire_unasked(self, me: int, timer: Any) -> None:
        self.give(me, Fired(timer))

    @rule(me=st.integers(0, LIAR - 1), peer=st.integers(0, LIAR))
    def drop(self, me: int, peer: int) -> None:
        self.give(me, DropLink(peer))

    @rule(me=st.integers(0, LIAR - 1), at=st.integers(0, len(OF_LIARS) - 1))
    def lie(self, me: int, at: int) -> None:
        self.receive(LIAR, me, OF_LIARS[at])

    @rule(me=st.integers(0, LIAR - 1))
    def be_asked_by_all(self, me: int) -> None:
        for peer in range(COUNT):
            if peer != me:
                self.receive(peer, me, Neighbor(True))

    @rule(seconds=st.sampled_from([10.0, 90.0, 700.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def no_domain_has_links_beyond_its_limits(self) -> None:
        for me, links in enumerate(self.domains[:LIAR]):
            accepted = [link for link in links.active.values() if not link.chosen]
            assert me not in links.active
            assert len(accepted) <= PARAMETERS.accepted
            assert sum(not link.paired for link in accepted) <= PARAMETERS.unpaired
            assert len(links.pending) < COUNT
            assert set(links.active) == self.stated[me]
            assert links.pending.keys().isdisjoint(links.active)

    def teardown(self) -> None:
        """Without faults every honest domain finds its links again; one may be between two."""
        self.now += 5000.0
        for _ in range(40):
            self.now += 60.0
            timers, self.timers = self.timers, []
            for me, timer in timers:
                if not isinstance(timer, type(ROTATE_DUE) | type(NEARER_DUE)):
                    self.give(me, Fired(timer))
            for _ in range(6):
                messages, self.on_the_way = self.on_the_way, []
                for message in messages:
                    self.receive(*message)
        for links in self.domains[:LIAR]:
            assert len(links.active) >= PARAMETERS.chosen - 1


TestLinkingDomains = LinkingDomains.TestCase
TestLinkingDomains.settings = settings(max_examples=15, stateful_step_count=50, deadline=None, database=None)
