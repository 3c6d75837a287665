"""Gossip among four domains over a network that loses, repeats and reorders: a Hypothesis state machine."""

from __future__ import annotations

from hashlib import blake2b
from random import Random
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from eventing.overlay.gossip import ROUND_DUE, ROUND_S, Contribute, Gossip, Withdraw
from eventing.overlay.gossip_messages import MESSAGE_BYTES_MAX, GossipMessage, GossipPart
from eventing.overlay.gossip_object import GossipScope, SignedRow
from eventing.overlay.machine import Chance, Fired, Id, MessageReceived, SendMessage
from eventing.sim.federation import STARTED_S, mixed
from tests.overlay.test_gossip_objects import Digits

COUNT = 4
NAME = Digits.name


def signed(owner: int, version: int, payload: bytes) -> SignedRow:
    """Sign as the owner."""
    body = msgspec.msgpack.encode([owner, version, payload])
    return SignedRow(owner, version, version + 20_000, payload, blake2b(body, digest_size=16).digest())


def is_signed(row: SignedRow) -> bool:
    return row.signature == signed(row.owner, row.version, row.payload).signature


class AllOthers:
    """Everybody has a link with everybody."""

    def __init__(self, me: int) -> None:
        self.others = [one for one in range(COUNT) if one != me]

    def links(self) -> list[Id]:
        return self.others

    def draw(self, scope: GossipScope, chance: Chance) -> Id | None:
        return chance.choice(self.others)

    def in_zone(self, peer: Id) -> bool:
        return True


class GossipingDomains(RuleBasedStateMachine):
    """Rows are contributed, forged, contradicted; messages are lost, repeated, reordered; domains restart."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.chance = Random(1)
        self.domains = [self.domain(me) for me in range(COUNT)]
        self.partners = [AllOthers(me) for me in range(COUNT)]
        self.on_the_way: list[tuple[int, int, Any]] = []
        self.liar: int | None = None

    def domain(self, me: int) -> Gossip:
        return Gossip(
            me,
            [Digits()],
            issue=lambda name, version, expires_s, payload: signed(me, version, payload),
            genuine=lambda name, row: is_signed(row),
            known=lambda one: one in range(COUNT),
            key_hash=mixed,
            started_s=STARTED_S,
        )

    def give(self, me: int, given: Any) -> None:
        for output in self.domains[me].handle(given, self.now, self.chance, self.partners[me]):
            if isinstance(output, SendMessage):
                assert len(msgspec.msgpack.encode(output.message)) <= MESSAGE_BYTES_MAX
                self.on_the_way.append((me, output.peer, output.message))

    @rule(me=st.integers(0, COUNT - 1), digits=st.integers(0, 10**12))
    def contribute(self, me: int, digits: int) -> None:
        if me != self.liar:
            self.give(me, Contribute(NAME, b"%030d" % digits))

    @rule(me=st.integers(0, COUNT - 1))
    def round(self, me: int) -> None:
        self.give(me, Fired(ROUND_DUE))

    @rule(seconds=st.sampled_from([1, 20, 90]))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(at=st.integers(0, 10_000), repeated=st.booleans())
    def deliver(self, at: int, repeated: bool) -> None:
        if self.on_the_way:
            source, target, message = self.on_the_way[at % len(self.on_the_way)]
            if not repeated:
                del self.on_the_way[at % len(self.on_the_way)]
            self.give(target, MessageReceived(source, message))

    @rule(at=st.integers(0, 10_000))
    def lose(self, at: int) -> None:
        if self.on_the_way:
            del self.on_the_way[at % len(self.on_the_way)]

    @rule(me=st.integers(0, COUNT - 1), digits=st.integers(0, 99))
    def forge(self, me: int, digits: int) -> None:
        row = msgspec.structs.replace(signed(me, int(STARTED_S + self.now), b"%030d" % digits), payload=b"forged")
        self.give((me + 1) % COUNT, MessageReceived(me, GossipMessage((GossipPart(NAME, rows=(row,)),))))

    @rule(one=st.integers(0, 9), other=st.integers(10, 19))
    def contradict(self, one: int, other: int) -> None:
        """Domain 0 becomes a liar, and shows one domain one row and another a different one of the same version."""
        self.liar = 0
        version = int(STARTED_S + self.now)
        for target, digits in ((1, one), (2, other)):
            row = signed(0, version, b"%030d" % digits)
            self.give(target, MessageReceived(0, GossipMessage((GossipPart(NAME, rows=(row,)),))))

    @rule(me=st.integers(0, COUNT - 1))
    def restart(self, me: int) -> None:
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(self.domains[me].dump()))
        self.domains[me] = self.domain(me)
        self.domains[me].load(state)

    @invariant()
    def every_row_is_signed_by_its_owner(self) -> None:
        for domain in self.domains:
            of = domain.sets[NAME]
            held = [*of.rows.values(), *(row for pair in of.conflicts.values() for row in pair)]
            assert all(is_signed(row) for row in held)
            assert not set(of.rows) & set(of.conflicts)
            assert all(one.version == other.version and one != other for one, other in of.conflicts.values())

    def teardown(self) -> None:
        """Without faults and without new rows, all honest domains hold the same after some rounds: what was lost is found by comparison."""
        for me in range(COUNT):
            self.give(me, Withdraw(NAME))
        self.on_the_way.clear()
        for _ in range(60):
            self.now += ROUND_S
            for me in range(COUNT):
                if me != self.liar:
                    self.give(me, Fired(ROUND_DUE))
            for _ in range(12):
                messages, self.on_the_way = self.on_the_way, []
                for source, target, message in messages:
                    if target != self.liar:
                        self.give(target, MessageReceived(source, message))
        honest = [domain.sets[NAME] for me, domain in enumerate(self.domains) if me != self.liar]
        for of in honest[1:]:
            assert of.rows == honest[0].rows
            assert of.conflicts == honest[0].conflicts


TestGossipingDomains = GossipingDomains.TestCase
TestGossipingDomains.settings = settings(max_examples=25, stateful_step_count=40, deadline=None, database=None)
