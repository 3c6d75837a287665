"""Replicas of one RP in a simulated world: overlay/dissemination.py over the network of eventing/sim, with names, faults and counters.

Steps of one request are taken with others in between (`work_s`), as in the processes of a live domain.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec

from eventing.core.events.feeds import Feed
from eventing.overlay.dissemination import Dissemination, PeerExchange
from eventing.overlay.dissemination_messages import DisseminationParameters, Grafted, Publish, RunReceived
from eventing.overlay.link_state import Link, again_at
from eventing.overlay.links import LinkUp
from eventing.overlay.machine import Id
from eventing.overlay.replica_log import ReplicaLog
from eventing.sim.network import SimulatedNetwork
from eventing.sim.world import World

ONE_BY_ONE = DisseminationParameters(
    spacing_s=0.05, answer_s=2.0, anti_entropy_s=0.0, work_s=0.05, request_events_max=40
)
PATIENT = msgspec.structs.replace(ONE_BY_ONE, patient=True)
RUN_EVENTS_MAX = 10


class Replica(Dissemination):
    """The replica of one domain, which can lose its data."""

    def __init__(self, name: str, number: int, parameters: DisseminationParameters = ONE_BY_ONE) -> None:
        self.name = name
        self.lives = 0
        self.number = number
        super().__init__(number, self.empty_log(), parameters)

    def empty_log(self) -> ReplicaLog:
        """Begin a new life of the numbering."""
        self.lives += 1
        self.own = Feed(self.name, "abcdefgh"[self.lives - 1] * 8)
        return ReplicaLog(self.number, self.own.key, run_events_max=RUN_EVENTS_MAX)

    def begin(self) -> None:
        """Lose all data."""
        self.log = self.empty_log()
        self.forget_links()

    @property
    def vector(self) -> dict[str, int]:
        return {feed: last for feed, last in self.log.vector.items() if last}

    @property
    def busy(self) -> bool:
        """Return whether something is under way, or a timer will bring something about."""
        return bool(self.steps) or any(
            self._pending(one) or again_at(one.link, after=self._now) is not None for one in self.peers.values()
        )

    def _pending(self, one: PeerExchange) -> bool:
        """Return whether a request to a peer is under way, being made, or to be repeated after its failure."""
        repeated = bool(one.failed) and one.next_at > self._now
        return one.flying is not None or one.building or one.compare or repeated


class RpWorld(World):
    """The replicas, by name, and the network between them.

    Args:
        pairs: replicas with a link.
        delay_s: the most that a message takes beyond `JITTER_S`, each by chance.
        parameters: of all replicas.
    """

    JITTER_S = 0.05

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        seed: int,
        *,
        delay_s: float = 0.0,
        parameters: DisseminationParameters = ONE_BY_ONE,
    ) -> None:
        self.parameters = parameters
        self.pairs = sorted({(min(pair), max(pair)) for pair in pairs})
        self.names = sorted({name for pair in self.pairs for name in pair})
        self.replicas: dict[str, Replica] = {name: self.replica(name, at) for at, name in enumerate(self.names)}
        chance = Random(seed)
        network = _EvenNetwork(len(self.names), chance, self.JITTER_S + delay_s)
        super().__init__(list(self.replicas.values()), network, chance, self._count)
        self.twice = 0.0
        self.copies = self.redundant = self.futile = self.published = 0
        self.texts: dict[str, dict[int, str]] = {}
        self.run(1.0)
        for one, other in self.pairs:
            self.give(self.replicas[one].number, LinkUp(self.replicas[other].number, True))
            self.give(self.replicas[other].number, LinkUp(self.replicas[one].number, False))

    def replica(self, name: str, number: int) -> Replica:
        return Replica(name, number, self.parameters)

    def link(self, name: str, peer: str) -> Link:
        return self.replicas[name].peers[self.replicas[peer].number].link

    @property
    def all_links(self) -> list[Link]:
        return [one.link for replica in self.replicas.values() for one in replica.peers.values()]

    def neighbours(self, name: str) -> list[str]:
        return [self.names[peer] for peer in self.replicas[name].peers]

    def publish(self, name: str) -> None:
        self.published += 1
        replica = self.replicas[name]
        text = f"event {self.published}"
        self.give(replica.number, Publish(text))
        self.texts.setdefault(replica.own.key, {})[replica.log.vector[replica.own.key]] = text

    def cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Let no message pass between these from now on, nor any other cut."""
        both = [(self.replicas[one].number, self.replicas[other].number) for one, other in pairs]
        self.network.conditions.one_way = frozenset(both) | {(other, one) for one, other in both}

    def fall_over(self, name: str) -> None:
        """Lose watermarks and what is under way, not the log, and start again."""
        domain = self.replicas[name].number
        self.crash(domain)
        replica = self.replicas[self.names[domain]]
        replica.forget_links()
        self.restart(domain, replica)
        for peer in replica.peers:
            self.give(domain, LinkUp(peer, True))

    def lose_data(self, name: str) -> None:
        replica = self.replicas[name]
        replica.log = replica.empty_log()
        self.fall_over(name)

    def go_on(self, seconds: float) -> None:
        self.run(self.now + seconds)

    def settle(self, within_s: float = 900.0) -> None:
        """Go on until nothing is under way and no timer will change that."""
        end = self.now + within_s
        pause_s = 0.5
        while self.now < end:
            sent = self.sent
            self.go_on(pause_s)
            if sent == self.sent and not any(replica.busy for replica in self.replicas.values()):
                return
            pause_s = 0.5 if sent != self.sent else min(2 * pause_s, 30.0)
        raise AssertionError(f"not settled within {within_s:g} s: {[one.vector for one in self.replicas.values()]}")

    def _post(self, source: int, target: int, message: Any) -> None:
        super()._post(source, target, message)
        if self.twice and self.chance.random() < self.twice:
            super()._post(source, target, message)

    def _count(self, domain: Id, output: Any, now: float) -> None:
        if type(output) is RunReceived:
            self.copies += len(output.run.events)
            self.redundant += 0 if output.new else len(output.run.events)
        elif type(output) is Grafted:
            self.futile += output.futile


class _EvenNetwork(SimulatedNetwork):
    """A network in which each message takes up to `most_s`, by chance."""

    def __init__(self, count: int, chance: Random, most_s: float) -> None:
        super().__init__(count, chance)
        self._most_s, self._chances = most_s, chance

    def delay_s(self, source: int, target: int) -> float:
        return self._most_s * self._chances.random()
