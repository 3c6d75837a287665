"""A node of Maelstrom, the workbench for distributed algorithms, over the machines of overlay.

Maelstrom starts one process per node, which reads messages as JSON objects, one a line, from its standard input and writes them to its
standard output: {src, dest, body: {type, msg_id, in_reply_to, ...}} (https://github.com/jepsen-io/maelstrom, doc/protocol.md). Workloads:

    broadcast    `broadcast`, `topology`, `read`: values spread by the trees of overlay/broadcast.py
    g-set        `add` of an element, `read`: a gossip object
    pn-counter   `add` of a delta, `read`: another one

    maelstrom test -w broadcast --bin node.sh      # node.sh: exec .venv/bin/python manage.py simulate node

Pure: each call is given the time, and the constructor the source of randomness. All state is in memory: a node that is restarted begins anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from eventing.core.decoding import Undecodable, converted
from eventing.overlay.gossip_messages import GossipMessage
from eventing.overlay.machine import Chance
from eventing.sim.maelstrom_objects import MaelstromObjects
from eventing.sim.maelstrom_replica import MaelstromExchange, MaelstromReplica

EXCHANGE = "herald_exchange"
GOSSIP = "herald_gossip"
EPOCH_LETTERS = "abcdefghijklmnopqrstuvwxyz"
EPOCH_CHARS = 8

NOT_SUPPORTED = 10
TEMPORARILY_UNAVAILABLE = 11
MALFORMED_REQUEST = 12
"""Codes of errors: maelstrom, doc/protocol.md, "Errors"."""


class MaelstromMessage(msgspec.Struct, omit_defaults=True):
    """One line."""

    src: str
    dest: str
    body: dict[str, Any]


class MaelstromRefusal(Exception):
    """Raised for a request that is answered with an error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class MaelstromNode:
    """One node.

    Args:
        chance_of: makes a source of randomness from a seed, such as random.Random.
        seed: draws, with the node's name, all that is left to chance.
        workload: what `read` asks for; None: derived from the operations that the nodes got.
    """

    def __init__(self, chance_of: Callable[[str], Chance], seed: int, workload: str | None = None) -> None:
        self._chance_of, self._seed = chance_of, seed
        self._workload = workload
        self._chance: Chance
        self._me = ""
        self._numbers = 0
        self.replica: MaelstromReplica
        self.objects: MaelstromObjects
        self._handlers: dict[str, Callable[[dict[str, Any], float], dict[str, Any]]] = {
            "topology": self._topology,
            "broadcast": self._broadcast,
            "add": self._add,
            "read": self._read,
        }

    def handle(self, message: MaelstromMessage, now: float) -> list[MaelstromMessage]:
        """Take in a message; the messages to write."""
        kind = message.body.get("type")
        if kind == "init":
            return [self._reply(message, self._init(message.body, now))]
        if kind == "error" or "in_reply_to" in message.body:
            return []
        if not self._me:
            return [self._refused(message, MaelstromRefusal(TEMPORARILY_UNAVAILABLE, "The node has no name yet."))]
        if kind in (EXCHANGE, GOSSIP):
            return [*self._of_node(kind, message, now), *self.tick(now)]
        handler = self._handlers.get(str(kind))
        try:
            if handler is None:
                raise MaelstromRefusal(NOT_SUPPORTED, f"There is no operation {kind}.")
            reply = self._reply(message, handler(message.body, now))
        except MaelstromRefusal as refusal:
            reply = self._refused(message, refusal)
        except (KeyError, TypeError, AttributeError) as error:
            reply = self._refused(message, MaelstromRefusal(MALFORMED_REQUEST, f"{type(error).__name__}: {error}"))
        return [reply, *self.tick(now)]

    def tick(self, now: float) -> list[MaelstromMessage]:
        """Do what is due; the messages to write."""
        if not self._me:
            return []
        found = [self._to(peer, EXCHANGE, message) for peer, message in self.replica.send(now, self._chance)]
        return found + [self._to(peer, GOSSIP, message) for peer, message in self.objects.tick(now, self._chance)]

    def due_at(self) -> float | None:
        """The time at which `tick` is to be called, if no message arrives before; None for never."""
        if not self._me:
            return None
        times = [at for at in (self.replica.due_at(), self.objects.due_at()) if at is not None]
        return min(times, default=None)

    # Operations

    def _init(self, body: dict[str, Any], now: float) -> dict[str, Any]:
        self._me = str(body["node_id"])
        others = [str(name) for name in body["node_ids"] if name != self._me]
        self._chance = self._chance_of(f"{self._seed}:{self._me}")
        epoch = "".join(self._chance.choice(EPOCH_LETTERS) for _ in range(EPOCH_CHARS))
        self.replica = MaelstromReplica(self._me, epoch, others)
        self.objects = MaelstromObjects(self._me, others, now)
        return {"type": "init_ok"}

    def _topology(self, body: dict[str, Any], now: float) -> dict[str, Any]:
        neighbours = [str(name) for name in body["topology"][self._me]]
        self.replica.neighbours = self.objects.neighbours = tuple(neighbours)
        self._workload = self._workload or "broadcast"
        return {"type": "topology_ok"}

    def _broadcast(self, body: dict[str, Any], now: float) -> dict[str, Any]:
        self.replica.publish(body["message"])
        return {"type": "broadcast_ok"}

    def _add(self, body: dict[str, Any], now: float) -> dict[str, Any]:
        if "delta" in body:
            if type(body["delta"]) is not int:
                raise MaelstromRefusal(MALFORMED_REQUEST, "The delta is not an integer.")
            self.objects.add_delta(body["delta"], now, self._chance)
        elif not self.objects.add_element(body["element"], now, self._chance):
            raise MaelstromRefusal(TEMPORARILY_UNAVAILABLE, "This node can add no more elements: its row is full.")
        return {"type": "add_ok"}

    def _read(self, body: dict[str, Any], now: float) -> dict[str, Any]:
        workload = self._workload or ("pn-counter" if self.objects.counts else "g-set")
        if workload == "broadcast":
            return {"type": "read_ok", "messages": self.replica.values()}
        return {
            "type": "read_ok",
            "value": self.objects.count() if workload == "pn-counter" else self.objects.elements(),
        }

    # Messages

    def _of_node(self, kind: str, message: MaelstromMessage, now: float) -> list[MaelstromMessage]:
        """Take in a message of another node; one that is not as it should be is discarded."""
        try:
            if kind == EXCHANGE:
                exchange = converted(message.body["message"], MaelstromExchange)
                answer = self.replica.receive(message.src, exchange, now, self._chance)
                return [] if answer is None else [self._to(message.src, EXCHANGE, answer)]
            gossip = converted(message.body["message"], GossipMessage)
        except (KeyError, Undecodable):
            return []
        sent = self.objects.receive(message.src, gossip, now, self._chance)
        return [self._to(peer, GOSSIP, one) for peer, one in sent]

    def _to(self, peer: str, kind: str, message: MaelstromExchange | GossipMessage) -> MaelstromMessage:
        return MaelstromMessage(self._me, peer, {"type": kind, "message": msgspec.to_builtins(message)})

    def _reply(self, message: MaelstromMessage, body: dict[str, Any]) -> MaelstromMessage:
        self._numbers += 1
        replied = {**body, "msg_id": self._numbers}
        if "msg_id" in message.body:
            replied["in_reply_to"] = message.body["msg_id"]
        return MaelstromMessage(self._me or message.dest, message.src, replied)

    def _refused(self, message: MaelstromMessage, refusal: MaelstromRefusal) -> MaelstromMessage:
        return self._reply(message, {"type": "error", "code": refusal.code, "text": str(refusal)})
