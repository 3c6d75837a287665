"""Directories of four domains over a network that loses, repeats and reorders: a Hypothesis state machine."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from eventing.overlay.directory import DomainDirectory
from eventing.overlay.directory_messages import ANNOUNCE_DUE, COMPARE_DUE, EXPIRE_DUE, REFRESH_DUE, Records
from eventing.overlay.directory_records import REFRESH_S, DomainRecord
from eventing.overlay.machine import Fired, MessageReceived, SendMessage
from eventing.sim.federation import STARTED_S, directory_make, record_make, table_make

COUNT = 4
LIAR = 3
TIMERS = (ANNOUNCE_DUE, COMPARE_DUE, EXPIRE_DUE)


class ComparingDirectories(RuleBasedStateMachine):
    """Records are issued, forged, contradicted; messages are lost, repeated, reordered; domains restart from nothing. Domain 3 may lie."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.chance = Random(1)
        self.directories = [directory_make(me, table_make()) for me in range(COUNT)]
        self.on_the_way: list[tuple[int, int, Any]] = []
        self.versions: dict[tuple[int, int], int] = {}
        for me in range(COUNT):
            self.give(me, self.directories[me].begin(self.now, self.chance))

    def give(self, me: int, out: list[Any]) -> None:
        self.on_the_way += [(me, one.peer, one.message) for one in out if isinstance(one, SendMessage)]

    def fire(self, me: int, timer: Any) -> None:
        links = [one for one in range(COUNT) if one != me]
        self.give(me, self.directories[me].handle(Fired(timer), self.now, self.chance, links))

    def receive(self, source: int, target: int, message: Any) -> None:
        links = [one for one in range(COUNT) if one != target]
        given = MessageReceived(source, message)
        self.give(target, self.directories[target].handle(given, self.now, self.chance, links))

    def own(self, at: int, **changes: Any) -> DomainRecord:
        wall_s = STARTED_S + self.now
        return msgspec.structs.replace(record_make(at, int(wall_s) + 1, wall_s), **changes)

    @rule(me=st.integers(0, COUNT - 1), at=st.integers(0, len(TIMERS) - 1))
    def timer(self, me: int, at: int) -> None:
        self.fire(me, TIMERS[at])

    @rule(me=st.integers(0, COUNT - 1))
    def renew(self, me: int) -> None:
        self.now += 1.0
        self.fire(me, REFRESH_DUE)

    @rule(seconds=st.sampled_from([1.0, 5.0, 300.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(at=st.integers(0, 10_000), repeated=st.booleans())
    def deliver(self, at: int, repeated: bool) -> None:
        if self.on_the_way:
            message = self.on_the_way[at % len(self.on_the_way)]
            if not repeated:
                del self.on_the_way[at % len(self.on_the_way)]
            self.receive(*message)

    @rule(at=st.integers(0, 10_000))
    def lose(self, at: int) -> None:
        if self.on_the_way:
            del self.on_the_way[at % len(self.on_the_way)]

    @rule(to=st.integers(0, LIAR - 1), of=st.integers(0, LIAR - 1))
    def forge(self, to: int, of: int) -> None:
        """The liar sends a record of another domain."""
        self.receive(LIAR, to, Records((self.own(of, url="https://forged.example", signature=b"forged"),)))

    @rule()
    def contradict(self) -> None:
        """The liar shows two domains two records of one version."""
        for target, zone in ((0, "here"), (1, "there")):
            self.receive(LIAR, target, Records((self.own(LIAR, zone=zone),)))

    @rule(version=st.sampled_from([2**64 - 1, 2**63, 0, -1]))
    def claim_a_version(self, version: int) -> None:
        self.receive(LIAR, 0, Records((self.own(LIAR, version=version),)))

    @rule(me=st.integers(0, LIAR - 1))
    def start_anew(self, me: int) -> None:
        """A domain loses its directory. Its clock has gone on, as records of one second have one version."""
        self.now += 2.0
        self.directories[me] = directory_make(me, table_make())
        self.versions = {pair: last for pair, last in self.versions.items() if pair[0] != me}
        self.give(me, self.directories[me].begin(self.now, self.chance))

    @invariant()
    def nothing_forged_is_held_and_no_version_falls(self) -> None:
        for me, directory in enumerate(self.directories):
            for record in directory.all_records():
                assert record.signature != b"forged"
                assert 0 < record.version <= STARTED_S + self.now + 301.0
                pair = (me, record.domain)
                assert record.version >= self.versions.get(pair, 0)
                self.versions[pair] = record.version
            assert directory.count == len(list(directory.all_records()))
            assert not any(honest in directory.convictions for honest in range(LIAR))

    def teardown(self) -> None:
        """Without faults all honest domains hold the same after some comparisons."""
        self.on_the_way.clear()
        self.now += REFRESH_S
        for me in range(COUNT):
            self.fire(me, REFRESH_DUE)
        for _ in range(8):
            self.now += 60.0
            for me in range(COUNT):
                self.fire(me, COMPARE_DUE)
            for _ in range(6):
                messages, self.on_the_way = self.on_the_way, []
                for message in messages:
                    self.receive(*message)
                for me in range(COUNT):
                    self.fire(me, ANNOUNCE_DUE)
        honest: list[DomainDirectory] = self.directories[:LIAR]
        assert {directory.count for directory in honest} == {COUNT}
        assert len({directory.fingerprint() for directory in honest}) == 1


TestComparingDirectories = ComparingDirectories.TestCase
TestComparingDirectories.settings = settings(max_examples=15, stateful_step_count=40, deadline=None, database=None)
