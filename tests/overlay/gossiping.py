"""Domains that only gossip, over links drawn once, in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from eventing.overlay.gossip import Gossip
from eventing.overlay.gossip_object import GossipObject, GossipScope, SignedRow
from eventing.overlay.machine import Chance, Id, SendMessage
from eventing.sim.federation import STARTED_S, mixed
from eventing.sim.network import SimulatedNetwork
from eventing.sim.world import World

LINKS = 6
HASHES = [mixed(number) for number in range(10_000)]


class GossipNode:
    """A domain that only gossips.

    Attributes:
        sent: bytes of its messages.
    """

    def __init__(self, me: int, zones: Sequence[int], definitions: Sequence[GossipObject], started_s: float) -> None:
        self.me = me
        self.zones = zones
        self.peers: list[int] = []
        self.sent = 0
        self.messages = 0
        self.largest = 0
        self.gossip = Gossip(
            me,
            definitions,
            issue=lambda name, version, expires_s, payload: SignedRow(me, version, expires_s, payload, b"s" * 64),
            genuine=lambda name, row: row.signature != b"forged",
            known=lambda domain: 0 <= domain < len(zones),
            key_hash=HASHES.__getitem__,
            started_s=started_s,
        )

    def links(self) -> Sequence[Id]:
        return self.peers

    def draw(self, scope: GossipScope, chance: Chance) -> Id | None:
        for _ in range(64):
            domain = chance.randrange(len(self.zones))
            if domain != self.me and (scope is GossipScope.FEDERATION or self.in_zone(domain)):
                return domain
        return None

    def in_zone(self, peer: Id) -> bool:
        return self.zones[peer] == self.zones[self.me]

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        if given == "begin":
            return self.gossip.begin(chance)
        out = self.gossip.handle(given, now, chance, self)
        for one in out:
            if type(one) is SendMessage:
                size = len(msgspec.msgpack.encode(one.message))
                self.sent += size
                self.messages += 1
                self.largest = max(self.largest, size)
        return out


class GossipWorld:
    """A world of such domains, each with LINKS links to others and as many from others."""

    def __init__(self, count: int, seed: int, definitions: Sequence[GossipObject]) -> None:
        self.chance = Random(seed)
        self.network = SimulatedNetwork(count, self.chance)
        self.events: list[tuple[int, Any, float]] = []
        self.nodes = [GossipNode(me, self.network.zone, definitions, STARTED_S) for me in range(count)]
        self.world = World(self.nodes, self.network, self.chance, lambda *event: self.events.append(event))
        for node in self.nodes:
            for peer in self.chance.sample(range(count), min(LINKS, count - 1)):
                if peer != node.me and peer not in node.peers:
                    node.peers.append(peer)
                    self.nodes[peer].peers.append(node.me)
            self.world.give(node.me, "begin")

    def everywhere(self, name: str) -> bool:
        """Whether all domains that run hold the same rows."""
        held = [node.gossip.sets[name].rows for node in self.nodes if self.world.up[node.me]]
        return all(one == held[0] for one in held)
