"""Nodes of Maelstrom in this process, with a network that delays, loses, repeats and cuts, in a time of its own."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec

from eventing.sim.maelstrom import EXCHANGE, GOSSIP, MaelstromMessage, MaelstromNode

STARTED_S = 1_700_000_000.0


class MaelstromNetwork:
    """Nodes n0, n1, ... that are initialised; `topology` by their numbers, all with all if absent.

    Attributes:
        passed: messages between nodes that arrived.
        values: how many values of broadcasts arrived in them, each time counted.
    """

    def __init__(
        self,
        count: int,
        seed: int,
        topology: Iterable[tuple[int, int]] = (),
        *,
        latency_s: float = 0.1,
        loss: float = 0.0,
        repeats: float = 0.0,
    ) -> None:
        self.now = STARTED_S
        self.passed = self.values = 0
        self.names = [f"n{number}" for number in range(count)]
        self.cut: set[frozenset[str]] = set()
        self._random = Random(seed)
        self._latency_s, self._loss, self._repeats = latency_s, loss, repeats
        self._order = itertools.count()
        self._mail: list[tuple[float, int, MaelstromMessage]] = []
        self._numbers = itertools.count(1)
        self.nodes = {name: MaelstromNode(Random, seed) for name in self.names}
        for name in self.names:
            assert self.ask(name, "init", node_id=name, node_ids=self.names)["type"] == "init_ok"
        ways = [(f"n{one}", f"n{other}") for one, other in topology]
        if ways:
            near = {name: [b if a == name else a for a, b in ways if name in (a, b)] for name in self.names}
            for name in self.names:
                assert self.ask(name, "topology", topology=near)["type"] == "topology_ok"

    def ask(self, node: str, kind: str, **members: Any) -> dict[str, Any]:
        """A client's request, and its reply."""
        number = next(self._numbers)
        asked = MaelstromMessage("c1", node, {"type": kind, "msg_id": number, **members})
        reply, *others = self.nodes[node].handle(self._sent(asked), self.now)
        assert (reply.src, reply.dest, reply.body["in_reply_to"]) == (node, "c1", number)
        self._post(others)
        return reply.body

    def partition(self, *one: str) -> None:
        """Cut these nodes off from all others."""
        self.cut = {frozenset((a, b)) for a in one for b in self.names if b not in one}

    def heal(self) -> None:
        """Undo the partition."""
        self.cut = set()

    def run(self, for_s: float) -> None:
        """Deliver messages and call due nodes for so long."""
        end = self.now + for_s
        while True:
            due = [at for node in self.nodes.values() if (at := node.due_at()) is not None]
            following = min([*due, *(at for at, _, _ in self._mail[:1])], default=end)
            if following >= end:
                self.now = end
                return
            self.now = max(self.now, following)
            while self._mail and self._mail[0][0] <= self.now:
                self._deliver(heapq.heappop(self._mail)[2])
            for node in self.nodes.values():
                due_at = node.due_at()
                if due_at is not None and due_at <= self.now:
                    self._post(node.tick(self.now))

    def _deliver(self, message: MaelstromMessage) -> None:
        if frozenset((message.src, message.dest)) in self.cut:
            return
        self.passed += 1
        if message.body["type"] == EXCHANGE:
            self.values += sum(len(run[2]) for run in message.body["message"]["runs"])
        self._post(self.nodes[message.dest].handle(message, self.now))

    def _post(self, messages: list[MaelstromMessage]) -> None:
        for message in messages:
            if message.body["type"] not in (EXCHANGE, GOSSIP):
                assert message.dest == "c1", message
                continue
            copies = 1 + (self._random.random() < self._repeats)
            for _ in range(copies):
                if self._random.random() >= self._loss:
                    at = self.now + self._latency_s * (0.5 + self._random.random())
                    heapq.heappush(self._mail, (at, next(self._order), self._sent(message)))

    @staticmethod
    def _sent(message: MaelstromMessage) -> MaelstromMessage:
        """As it arrives: through JSON."""
        return msgspec.json.decode(msgspec.json.encode(message), type=MaelstromMessage)
