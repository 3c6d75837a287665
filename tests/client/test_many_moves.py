"""Ten thousand moves of clients between three replicas, in one process: nothing is lost, nothing is doubled, order is kept per feed.

The client's own pure modules (session, best server) against replicas that hold the same events in different orders and at different times.
Time jumps so far between two redirects of a client that it follows every one of them.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from herald.best_server import BestServer
from herald.events import Gap
from herald.session import Deliver, OperationAnswered, Redirected, Send, SessionMachine

RP = "r" * 26
CLIENTS, MOVES = 5, 100  # of each world
NAMES = "abc"


def url(name: str) -> str:
    return f"https://{name}.example"


@dataclass
class ReplicaModel:
    """A domain's log: entries (feed, sequence, event) in the order in which they came here."""

    name: str
    log: list[tuple[str, int, dict[str, Any]]] = field(default_factory=list)
    held: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)  # id of an event published here -> its offset

    @property
    def feed(self) -> str:
        return self.name * 16

    def store(self, feed: str, event: dict[str, Any]) -> int:
        self.held[feed] = self.held.get(feed, 0) + 1
        self.log.append((feed, self.held[feed], event))
        return len(self.log)

    def publish(self, event: dict[str, Any]) -> int:
        if event["id"] not in self.known:
            self.known[event["id"]] = self.store(self.feed, event)
        return self.known[event["id"]]

    def fetch(self, other: ReplicaModel, most: int) -> None:
        """Take up to `most` events of the other's own feed, in their order."""
        entries = [one for one in other.log if one[0] == other.feed][self.held.get(other.feed, 0) :]
        for _, _, event in entries[:most]:
            self.store(other.feed, event)


class Line:
    """A connection of a client to a replica: frames in flight, and what the gateway knows of the reader."""

    def __init__(self, replica: ReplicaModel) -> None:
        self.replica = replica
        self.frames: deque[dict[str, Any]] = deque()
        self.vector: dict[str, int] | None = None
        self.offset = 0

    def take(self, text: str) -> None:
        frame = json.loads(text)
        if frame["op"] == "subscribe":
            _, _, stated = frame["from"].partition("~")
            pairs = (pair.split("=") for pair in stated.split(".") if pair)
            self.vector = {feed: int(sequence) for feed, sequence in pairs}
            self.answer(
                frame, rp=RP, epoch=f"epoch{self.replica.name}", offset=0, recovered=True, cursor=self.cursor(0)
            )
        elif frame["op"] == "publish":
            self.answer(frame, epoch="e", offset=self.replica.publish(frame["event"]))

    def answer(self, frame: dict[str, Any], **members: Any) -> None:
        self.frames.append({"op": "ok", "id": frame["id"], **members})

    def cursor(self, offset: int) -> str:
        feeds = {name * 16: 0 for name in NAMES} | (self.vector or {})
        return f"epoch{self.replica.name}:{offset}~" + ".".join(f"{feed}={n}" for feed, n in sorted(feeds.items()))

    def flow(self) -> None:
        """Send what the log has more, without what the reader has."""
        while self.vector is not None and self.offset < len(self.replica.log):
            feed, sequence, event = self.replica.log[self.offset]
            self.offset += 1
            place = {"rp": RP, "epoch": f"epoch{self.replica.name}"}
            if sequence <= self.vector.get(feed, 0):
                here = {"from": self.offset, "to": self.offset, "cursor": self.cursor(self.offset)}
                self.frames.append({"op": "covered", **place, **here})
            else:
                self.vector[feed] = sequence
                here = {"offset": self.offset, "cursor": self.cursor(self.offset)}
                self.frames.append({"op": "event", **place, **here, "event": event})


class Mover:
    """A program's reader and publisher at one connection."""

    def __init__(self, number: int, replicas: dict[str, ReplicaModel], chance: random.Random) -> None:
        self.number, self.replicas, self.chance = number, replicas, chance
        self.session, self.best = SessionMachine(chance), BestServer(chance, url("a"))
        self.line = Line(replicas["a"])
        self.delivered: list[str] = []
        self.ids = itertools.count()
        self.confirmed = 0
        self.now = 0.0
        self.session.subscribe(1, ("rp", RP), "earliest")
        self.session.opened()
        self.carry_out()

    def publish(self) -> str:
        id = f"{self.number}-{next(self.ids)}"
        event = {"specversion": "1.0", "id": id, "source": "/s", "type": "t"}
        self.session.submit("publish", json.dumps({"rp": RP, "event": event}), target=("rp", RP))
        self.carry_out()
        return id

    def carry_out(self) -> None:
        for output in self.session.take():
            if isinstance(output, Send):
                self.line.take(output.text)
            elif isinstance(output, Deliver):
                assert not isinstance(output.item, Gap), output.item
                self.delivered.append(output.item.id)
            elif isinstance(output, OperationAnswered):
                self.confirmed += 1
            elif isinstance(output, Redirected):
                assert output.hops is not None
                self.best.redirected(list(output.urls), output.hops, output.valid_s, self.now)  # type: ignore[call-overload]

    def read(self, most: int) -> None:
        """Some of the frames in flight arrive."""
        self.line.flow()
        while most and self.line.frames:
            most -= 1
            self.session.received(json.dumps(self.line.frames.popleft()), self.now)
            self.carry_out()

    def move(self) -> None:
        """The domain advises to move; the client goes, with frames in flight, now and then with unanswered publishes."""
        self.now += 700.0
        others = [url(name) for name in NAMES if name != self.line.replica.name]
        frame = {"op": "redirect", "rp": RP, "to": others, "hops": 1, "valid_s": 60}
        self.session.received(json.dumps(frame), self.now)
        self.carry_out()
        measures = self.best.measures(self.now)
        self.best.measured({one: self.chance.uniform(5, 50) for one in measures}, self.now)
        go = self.best.go
        assert go is not None
        assert go.advised
        self.session.hold()
        if self.chance.random() < 0.9:  # else the answers do not come in time
            while self.session.unanswered:
                self.read(1)
        self.session.lost()
        self.line = Line(self.replicas[go.url.removeprefix("https://")[0]])
        self.session.opened()
        self.best.arrived(go.url, self.now)
        self.carry_out()


def check_a_world(seed: int) -> int:
    """Play a world; return the moves made."""
    chance = random.Random(seed)
    replicas = {name: ReplicaModel(name) for name in NAMES}
    movers = [Mover(number, replicas, chance) for number in range(CLIENTS)]
    published: list[str] = []
    moves = [mover for mover in movers for _ in range(MOVES)]
    chance.shuffle(moves)
    for mover in moves:
        published.append(chance.choice(movers).publish())
        one, other = chance.sample(list(NAMES), 2)
        replicas[one].fetch(replicas[other], chance.randrange(5))
        for reader in movers:
            reader.read(chance.randrange(6))
        mover.move()
    for one, other in itertools.product(NAMES, repeat=2):
        if one != other:
            replicas[one].fetch(replicas[other], 1_000_000)
    for mover in movers:
        mover.read(1_000_000)
    for one, other in itertools.product(NAMES, repeat=2):  # what the last answers stored
        if one != other:
            replicas[one].fetch(replicas[other], 1_000_000)
    for mover in movers:
        mover.read(1_000_000)
        assert len(mover.delivered) == len(set(mover.delivered)), "doubled"
        assert set(mover.delivered) == set(published), "lost"
        place = {id: number for number, id in enumerate(mover.delivered)}
        for replica in replicas.values():
            own = [event["id"] for feed, _, event in replica.log if feed == replica.feed]
            first = [id for id in own if sum(id in other.known for other in replicas.values()) == 1]
            assert [place[id] for id in first] == sorted(place[id] for id in first), "order of a feed"
    twice = [id for id in published if sum(id in replica.known for replica in replicas.values()) > 1]
    assert twice, "some publishes were sent again at another domain, and are in two feeds"
    assert sum(mover.confirmed for mover in movers) == len(published), "each publish is confirmed once"
    return len(moves)


def test_a_thousand_moves_lose_and_double_nothing() -> None:
    assert sum(check_a_world(seed) for seed in range(2)) == 1_000


@pytest.mark.long
@pytest.mark.soak
def test_ten_thousand_moves_lose_and_double_nothing() -> None:
    assert sum(check_a_world(seed) for seed in range(100, 120)) == 10_000
