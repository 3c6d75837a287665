"""Domains that monitor each other over gossip, in the simulator, with pauses."""

from __future__ import annotations

from random import Random
from typing import Any

from eventing.overlay.gossip import Contribute, Withdraw
from eventing.overlay.machine import Chance, Down, Fired, Id, MessageReceived
from eventing.overlay.monitors import MonitorRing
from eventing.overlay.suspicion import MESSAGES, TIMERS, Suspicion
from eventing.overlay.suspicion_rows import Accusations, Rebuttals
from eventing.sim.federation import STARTED_S
from eventing.sim.network import SimulatedNetwork
from eventing.sim.world import World
from tests.overlay.gossiping import HASHES, LINKS, GossipNode

GROUP_SIZE = 4


class SuspectingNode(GossipNode):
    """A domain that gossips and suspects."""

    def __init__(self, me: int, zones: bytes, rings: dict[int, MonitorRing]) -> None:
        super().__init__(me, zones, [Accusations(), Rebuttals()], STARTED_S)
        self.paused = False
        self.backlog: list[Any] = []

        def ring(epoch: int) -> MonitorRing:
            if epoch not in rings:
                rings[epoch] = MonitorRing(range(len(zones)), epoch, HASHES.__getitem__)
            return rings[epoch]

        sets = self.gossip.sets
        self.suspicion = Suspicion(
            me,
            sets["accusations"],
            sets["rebuttals"],
            ring=ring,
            group=lambda one: one // GROUP_SIZE,
            started_s=STARTED_S,
        )

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        if given == "pause":
            self.paused = True
            return []
        if given == "resume":
            self.paused = False
            backlog, self.backlog = self.backlog, []
            return [output for one in backlog for output in self.handle(one, now, chance)]
        if self.paused:
            self.backlog.append(given)
            return []
        if given == "begin":
            return self.suspicion.begin(chance) + super().handle(given, now, chance)
        kind = type(given)
        if kind is Down:
            return []
        of_suspicion = (kind is MessageReceived and type(given.message) in MESSAGES) or (
            kind is Fired and type(given.timer) in TIMERS
        )
        if kind is MessageReceived:
            self.suspicion.heard(given.peer, now)
        if not of_suspicion:
            return super().handle(given, now, chance)
        out: list[Any] = []
        for output in self.suspicion.handle(given, now, chance):
            if isinstance(output, Contribute | Withdraw):
                out += super().handle(output, now, chance)
            else:
                out.append(output)
        return out


class SuspectingWorld:
    """A world of such domains."""

    def __init__(self, count: int, seed: int) -> None:
        self.chance = Random(seed)
        self.network = SimulatedNetwork(count, self.chance)
        self.events: list[tuple[int, Any, float]] = []
        self.rings: dict[int, MonitorRing] = {}
        self.nodes = [SuspectingNode(me, self.network.zone, self.rings) for me in range(count)]
        self.world = World(self.nodes, self.network, self.chance, lambda *event: self.events.append(event))
        for node in self.nodes:
            for peer in self.chance.sample(range(count), LINKS):
                if peer != node.me and peer not in node.peers:
                    node.peers.append(peer)
                    self.nodes[peer].peers.append(node.me)
            self.world.give(node.me, "begin")

    def restart(self, domain: int) -> None:
        """Start a crashed domain again, without its state."""
        node = SuspectingNode(domain, self.network.zone, self.rings)
        node.peers = self.nodes[domain].peers
        self.nodes[domain] = node
        self.world.restart(domain, node)
        self.world.give(domain, "begin")

    def pause(self, domain: int, for_s: float) -> None:
        """Stop a domain's process for a time; messages and timers wait."""
        self.world.give(domain, "pause")
        self.world.later(domain, "resume", for_s)

    def of(self, kind: type) -> list[tuple[int, Any, float]]:
        """Events of a kind."""
        return [event for event in self.events if isinstance(event[1], kind)]

    def suspecting(self, domain: Id) -> set[int]:
        """Domains that suspect a domain now."""
        return {node.me for node in self.nodes if domain in node.suspicion.suspected and self.world.up[node.me]}
