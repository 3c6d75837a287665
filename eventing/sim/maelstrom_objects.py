"""A node's grow-only set and counter, as gossip objects over overlay/gossip.py.

Each node contributes one row to each object: the elements that were added at it, or the sums of what was added and subtracted there. The
value of the set is the union of all rows, that of the counter the sum. Rows have leases and leave with them; elements and counts that
were seen once are kept here, because neither object forgets.

The machine's time passes CLOCK_RATE times as fast as that of the node: rounds, refreshes and leases are made for federations, and a test
of Maelstrom takes half a minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.overlay.gossip import Contribute, Gossip
from eventing.overlay.gossip_messages import GossipMessage
from eventing.overlay.gossip_object import PAYLOAD_BYTES_MAX, GossipObject, GossipScope, SignedRow
from eventing.overlay.machine import Chance, Fired, Id, MessageReceived, SendMessage, SetTimer

CLOCK_RATE = 20.0
"""Seconds of the machine in one second of the node: a round of 8 s takes 0.4 s."""
REFRESH_S = 10.0
"""Least time of the machine between two rows of a node: half a second of the node."""

_encode = msgspec.msgpack.Encoder().encode
_elements = msgpack_reader(list[Any])
_sums = msgpack_reader(tuple[int, int])


class MaelstromObject(GossipObject):
    """The common part of both objects."""

    payload_bytes_max = PAYLOAD_BYTES_MAX
    refresh_s = REFRESH_S
    bytes_per_s = 1e9

    def valid(self, owner: Id, payload: bytes) -> bool:
        """Return True if a payload is what this object encodes."""
        try:
            self.read(payload)
        except Undecodable:
            return False
        return True

    def read(self, payload: bytes) -> Any:
        """Decode a payload. Raises Undecodable."""
        raise NotImplementedError


class GrowOnlySet(MaelstromObject):
    """Elements that were added at each node."""

    name = "g-set"

    def read(self, payload: bytes) -> list[Any]:
        """Decode the elements of a row."""
        return _elements(payload)


class PositiveNegativeCounter(MaelstromObject):
    """Sums of what was added and of what was subtracted at each node."""

    name = "pn-counter"

    def read(self, payload: bytes) -> tuple[int, int]:
        """Decode the sums of a row."""
        return _sums(payload)


class MaelstromObjects:
    """Both objects at one node.

    Args:
        me, others: names of this node and of all others.
        now: seconds since 1970: nodes whose clocks differ by more than AHEAD_S / CLOCK_RATE refuse each other's rows.
    """

    def __init__(self, me: str, others: Sequence[str], now: float) -> None:
        self.me = me
        self.neighbours = tuple(others)
        self._others = tuple(others)
        self._set, self._counter = GrowOnlySet(), PositiveNegativeCounter()
        self._elements: dict[Any, None] = {}
        self._own_elements: list[Any] = []
        self._sums: dict[str, tuple[int, int]] = {}
        self._timers: list[tuple[float, Any]] = []
        self._began = now
        names = frozenset((me, *others))
        self.gossip = Gossip(
            me,
            (self._set, self._counter),
            issue=lambda name, version, expires_s, payload: SignedRow(me, version, expires_s, payload),
            genuine=lambda name, row: True,
            known=names.__contains__,
            key_hash=lambda domain: int.from_bytes(blake2b(domain.encode(), digest_size=8).digest(), "big"),
            started_s=now * CLOCK_RATE,
        )

    # GossipPartners

    def links(self) -> Sequence[Id]:
        """All neighbours."""
        return self.neighbours

    def draw(self, scope: GossipScope, chance: Chance) -> Id | None:
        """Any other node."""
        return chance.choice(self._others) if self._others else None

    def in_zone(self, peer: Id) -> bool:
        """All nodes are in one zone."""
        return True

    # Operations

    def add_element(self, element: Any, now: float, chance: Chance) -> bool:
        """Add to the set; False if this node can add no more."""
        if element in self._elements:
            return True
        payload = _encode([*self._own_elements, element])
        if len(payload) > PAYLOAD_BYTES_MAX:
            return False
        self._own_elements.append(element)
        self._elements[element] = None
        self._handle(Contribute(self._set.name, payload), now, chance)
        return True

    def add_delta(self, delta: int, now: float, chance: Chance) -> None:
        """Add to the counter, or subtract from it."""
        plus, minus = self._sums.get(self.me, (0, 0))
        self._sums[self.me] = sums = (plus + max(delta, 0), minus - min(delta, 0))
        self._handle(Contribute(self._counter.name, _encode(sums)), now, chance)

    def elements(self) -> list[Any]:
        """The value of the set."""
        return list(self._elements)

    def count(self) -> int:
        """The value of the counter."""
        return sum(plus - minus for plus, minus in self._sums.values())

    @property
    def counts(self) -> bool:
        """True once anything was added to the counter, here or elsewhere."""
        return bool(self._sums)

    # The machine

    def due_at(self) -> float | None:
        """The time of the next timer."""
        return min((at for at, _ in self._timers), default=None)

    def tick(self, now: float, chance: Chance) -> list[tuple[str, GossipMessage]]:
        """Give the machine the timers that have ended; the messages to send."""
        ended = [timer for at, timer in self._timers if at <= now]
        self._timers = [(at, timer) for at, timer in self._timers if at > now]
        return [sent for timer in ended for sent in self._handle(Fired(timer), now, chance)]

    def receive(self, peer: str, message: GossipMessage, now: float, chance: Chance) -> list[tuple[str, GossipMessage]]:
        """Take in a message of another node; the messages to send."""
        sent = self._handle(MessageReceived(peer, message), now, chance)
        self._learn()
        return sent

    def _handle(self, given: Any, now: float, chance: Chance) -> list[tuple[str, GossipMessage]]:
        if not self._timers and not isinstance(given, Fired):  # the first operation or message begins the rounds
            self._note(self.gossip.begin(chance), now)
        return self._note(self.gossip.handle(given, (now - self._began) * CLOCK_RATE, chance, self), now)

    def _note(self, outputs: list[Any], now: float) -> list[tuple[str, GossipMessage]]:
        self._timers += [(now + one.after_s / CLOCK_RATE, one.timer) for one in outputs if isinstance(one, SetTimer)]
        return [(one.peer, one.message) for one in outputs if isinstance(one, SendMessage)]

    def _learn(self) -> None:
        """Take over what the rows of others contain."""
        sets = self.gossip.sets
        for row in sets[self._set.name].rows.values():
            self._elements.update(dict.fromkeys(self._set.read(row.payload)))
        for row in sets[self._counter.name].rows.values():
            plus, minus = self._counter.read(row.payload)
            held = self._sums.get(row.owner, (0, 0))
            self._sums[row.owner] = (max(plus, held[0]), max(minus, held[1]))
