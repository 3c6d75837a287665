"""A reader moves between two replicas of an RP, at random cursors, live, replayed and by pull, while events are published,
carried over in another interleaving, and trimmed: it never loses an event without being told which, and has none twice.

The hub, its channels and sessions are the real ones, in this process, over a real Redis. The two replicas are two logs
there: each is given the other's events, and those of a third domain, as foreign runs (log/federated.py).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar, cast
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from eventing.conf import config
from eventing.core.events.cloudevents import Event
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds
from eventing.core.events.positions import OffsetGap, parse_from
from eventing.core.events.vectors import lacking
from eventing.gateway.delivery.frames import HERALD, payloads
from eventing.gateway.delivery.hub import Hub
from eventing.gateway.delivery.session import Follower, Session
from eventing.gateway.endpoints.pull import _read_page
from eventing.log import control
from eventing.log.federated_bulk import Incoming
from eventing.log.notifications import NotificationChannels
from eventing.log.reader import LogReader
from eventing.store.connection import async_client
from tests.log.runs import receive_run

T = TypeVar("T")
WITHIN_S = 60.0
NEW = itertools.count(1)
X, Y, Z = 0, 1, 2  # the two replicas, and a domain that only publishes
FEW = st.integers(1, 6)


def new_rp() -> str:
    number = f"{os.getpid()}{next(NEW):06d}"
    return number.translate(str.maketrans("0123456789", "bcdefghijk")).rjust(26, "r")


class Screen:
    """A sink that keeps what is written to it; it can be stalled."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.fd = -1
        self.paused = False
        self.on_pause: Callable[[], None] = lambda: None
        self.on_resume: Callable[[], None] = lambda: None
        self.on_fd: Callable[[], None] = lambda: None
        self.write: Callable[[bytes], None] = self.written.append

    def ping(self) -> bool:
        return False

    def discard(self) -> None:
        self.write = lambda data: None

    def stall(self, paused: bool) -> None:
        if paused != self.paused:
            self.paused = paused
            (self.on_pause if paused else self.on_resume)()

    def frames(self) -> list[dict[str, Any]]:
        data = b"".join(self.written)
        self.written.clear()
        return [json.loads(frame) for frame in payloads(data)]


class Reader:
    """What a client knows: per feed how far it is, by events that it was given and those it was told are lost."""

    def __init__(self, place_of: Callable[[str], tuple[str, int]]) -> None:
        self.next: dict[str, int] = {}
        self.cursor = ""
        self.lost: set[tuple[str, int]] = set()
        self._place_of = place_of

    def event(self, event: dict[str, Any], cursor: str) -> None:
        feed, sequence = self._place_of(event["id"])
        assert sequence == self.next.get(feed, 1), f"{event['id']} instead of {feed} {self.next.get(feed, 1)}"
        self.next[feed] = sequence + 1
        self.cursor = cursor

    def gap(self, gap: dict[str, Any], own: str) -> None:
        """Exactly what is told lost is passed over; where feeds do not count yet, offsets are our sequences. They begin to
        count where the lost ones are the first of another domain: those are told by the cursor after them.
        """
        vector = Cursor.parse(gap["cursor"]).vector if "cursor" in gap and "feeds" not in gap else None
        if vector is not None:
            feeds = lacking({feed: after - 1 for feed, after in self.next.items()}, vector)
            assert sum(last - first + 1 for first, last in feeds.values()) >= gap["to"] - gap["from"] + 1
        else:
            feeds = gap.get("feeds") or {own: (gap["from"], gap["to"])}
        for feed, (first, last) in feeds.items():
            assert first == self.next.get(feed, 1), f"told {first}..{last} of {feed}, had {self.next.get(feed, 1)}"
            self.next[feed] = last + 1
            self.lost |= {(feed, sequence) for sequence in range(first, last + 1)}
        self.cursor = gap.get("cursor") or f"{gap['epoch']}:{gap['to']}"


class ReplicaMachine(RuleBasedStateMachine):
    """`published[feed]` are the bodies of a feed; `carried[replica][feed]` how far a replica has it."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.redis = async_client(config().effective_redis_url)
        self.log = LogReader(self.redis)
        self.hub: Hub | None = None
        self.session: Session | None = None
        self.follower: Follower | None = None
        self.screen = Screen()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, WITHIN_S))

    @initialize(
        bounds=st.tuples(st.sampled_from([3, 8, 1000]), st.sampled_from([3, 8, 1000])), replicated=st.booleans()
    )
    def begin(self, bounds: tuple[int, int], replicated: bool) -> None:
        self.replicated = replicated
        self.rps = [new_rp(), new_rp()]
        states = [
            control.ensure_log(rp, HistoryBounds(most, 1 << 20)) for rp, most in zip(self.rps, bounds, strict=True)
        ]
        self.epochs = [state.epoch for state in states]
        self.feeds = [Feed(config().domain, epoch).key for epoch in self.epochs] + [Feed("z.example", "abc").key]
        self.published: dict[int, list[bytes]] = {X: [], Y: [], Z: []}
        self.carried = [dict.fromkeys((X, Y, Z), 0), dict.fromkeys((X, Y, Z), 0)]
        self.run(self._start_hub())
        self.reader = Reader(self._place_of)
        self.at = X
        self._follow("earliest")

    def teardown(self) -> None:
        self.run(self._stop_hub())
        self.run(self.redis.aclose())
        self.loop.close()
        for rp in getattr(self, "rps", []):
            control.delete_log(rp)

    async def _start_hub(self) -> None:
        self.hub = Hub(
            config(),
            self.log,
            lambda on_notification, on_restored: NotificationChannels(self.redis, on_notification, on_restored),
            Mock(side_effect=AssertionError("no log is made here")),
            Mock(),
            Mock(),
            replicated=lambda rp: self.replicated,
        )
        await self.hub.start()

    async def _stop_hub(self) -> None:
        if self.session is not None:
            self.session.closed()
        if self.hub is not None:
            await self.hub.close()

    def _place_of(self, event_id: str) -> tuple[str, int]:
        feed, sequence = event_id.split("-")
        return self.feeds[int(feed)], int(sequence)

    # The domains

    def _event(self, feed: int) -> Event:
        event_id = f"{feed}-{len(self.published[feed]) + 1}"
        return Event("/tests", event_id, "test", b'{"id":"%s"}' % event_id.encode())

    @rule(replica=st.sampled_from([X, Y]), count=FEW)
    def publish(self, replica: int, count: int) -> None:
        for _ in range(count):
            event = self._event(replica)
            self.published[replica].append(event.body)
            control.append(self.rps[replica], [event], HistoryBounds(1000, 1 << 20))
        self.carried[replica][replica] = len(self.published[replica])

    @rule(count=FEW)
    def publish_elsewhere(self, count: int) -> None:
        for _ in range(count):
            self.published[Z].append(self._event(Z).body)

    @rule(
        replica=st.sampled_from([X, Y]), feed=st.sampled_from([X, Y, Z]), count=FEW, hole=st.sampled_from([0, 0, 0, 2])
    )
    def carry(self, replica: int, feed: int, count: int, hole: int) -> None:
        """A run comes to a replica; with `hole`, what its origin had trimmed before anybody got it is left out."""
        held = self.carried[replica][feed]
        if feed == replica or held + hole >= len(self.published[feed]):
            return
        first = held + hole + 1
        bodies = self.published[feed][first - 1 : first - 1 + count]
        last = first + len(bodies) - 1
        digests = [os.urandom(12) for _ in bodies]
        run = (
            self.feeds[feed],
            first,
            last,
            bodies,
            digests,
            b"seal",
            b"",
            ("z.example",),
            first - 1 if hole else None,
        )
        assert receive_run(Incoming(self.rps[replica], *run)).kind == "new"
        self.carried[replica][feed] = last

    def _everything_everywhere(self) -> None:
        for replica, feed in itertools.product((X, Y), (X, Y, Z)):
            while feed != replica and self.carried[replica][feed] < len(self.published[feed]):
                self.carry(replica, feed, 1000, 0)

    # The reader

    def _follow(self, begin: str) -> None:
        async def follow() -> None:
            assert self.hub is not None
            self.screen = Screen()
            self.session = Session(self.hub, cast(Any, self.screen), HERALD)
            self.hub.opened(self.session)
            self.follower, start = await self.hub.follow(self.session, self.rps[self.at], parse_from(begin))
            assert start.recovered is (start.gap is None)
            if start.gap is not None:
                self._told(start.gap)
            if begin == "earliest":  # asked for what is held: what has gone before is not lost, but not wanted
                held = start.held or {self.feeds[self.at]: start.next - 1}
                self.reader.next = {feed: sequence + 1 for feed, sequence in held.items()}
            self.reader.cursor = str(start.cursor)
            self.session.begin(self.follower)

        self.run(follow())

    def _told(self, gap: OffsetGap) -> None:
        self.reader.gap(json.loads(payloads(HERALD.gap("", gap))[0]), self.feeds[self.at])

    def _take(self) -> None:
        for frame in self.screen.frames():
            if frame["op"] == "event":
                self.reader.event(frame["event"], frame["cursor"])
            elif frame["op"] == "gap":
                self.reader.gap(frame, self.feeds[self.at])
            else:
                assert frame["op"] == "covered", frame
                self.reader.cursor = frame["cursor"]

    async def _until_quiet(self) -> None:
        """Until the reader has been given all that its replica's log has for it."""
        assert self.follower is not None
        while True:
            state = await self.log.state(self.rps[self.at])
            channel, follower = self.follower.channel, self.follower
            if channel.flushed >= state.next and (follower.live or follower.parked is not None):
                at_front = follower.live or follower.next == channel.flushed
                if at_front and self.screen.paused is False:
                    return
            await asyncio.sleep(0.001)

    async def heard(self) -> None:
        """Wait until the channel has all that the reader's replica holds, whether the reader takes it or not."""
        assert self.follower is not None
        await asyncio.wait({self.follower.channel.wait_for_more()})

    @rule()
    def read(self) -> None:
        self.go_on()
        self.run(self._until_quiet())
        self._take()

    @rule()
    def look(self) -> None:
        """Whatever has come by now."""
        self.run(asyncio.sleep(0))
        self._take()

    @rule()
    def stall(self) -> None:
        self.run(self._in_loop(lambda: self.screen.stall(True)))

    @rule()
    def go_on(self) -> None:
        self.run(self._in_loop(lambda: self.screen.stall(False)))

    async def _in_loop(self, act: Callable[[], None]) -> None:
        act()

    @rule(replica=st.sampled_from([X, Y]), restarted=st.booleans())
    def move(self, replica: int, restarted: bool) -> None:
        """The reader's connection ends with something unread in it; it goes on from its cursor, here or elsewhere."""
        self._take()
        if replica != self.at and not self._portable:
            return
        self._leave()
        if restarted:
            self.run(self._stop_hub())
            self.run(self._start_hub())
        self.at = replica
        self._follow(self.reader.cursor)

    @property
    def _portable(self) -> bool:
        return Cursor.parse(self.reader.cursor).vector is not None

    def _leave(self) -> None:
        async def leave() -> None:
            assert self.hub is not None
            assert self.session is not None
            self.hub.closed(self.session)

        self.run(leave())

    @rule(replica=st.sampled_from([X, Y]), limit=st.integers(1, 9))
    def pull(self, replica: int, limit: int) -> None:
        """One answer of a pull at any replica, then followed again from there."""
        self._take()
        if not self._portable:
            return
        self._leave()
        self.at = replica

        async def pulled() -> None:
            hub, rp = cast(Hub, self.hub), self.rps[replica]
            channel, state = await hub.channel(rp)
            start = await hub.start_at(channel, parse_from(self.reader.cursor), state, 0)
            gateway = SimpleNamespace(reader=self.log, config=config())
            _, page = await _read_page(cast(Any, gateway), rp, start, limit)
            for gap in (start.gap, page.gap):
                if gap is not None:
                    self._told(gap)
            for body in page.events:
                self.reader.event(json.loads(body), "")
            self.reader.cursor = str(page.end)

        self.run(pulled())
        self._follow(self.reader.cursor)

    @rule(replica=st.sampled_from([X, Y]))
    def all_arrives(self, replica: int) -> None:
        """When everything has been carried, the reader has everything of every feed, or was told what it has not."""
        self._take()
        if not self._portable:
            return
        self._everything_everywhere()
        self.move(replica, False)
        self.read()
        had = {feed: self.reader.next.get(self.feeds[feed], 1) - 1 for feed in (X, Y, Z)}
        assert had == {feed: len(bodies) for feed, bodies in self.published.items()}
        vector = Cursor.parse(self.reader.cursor).vector or {}
        assert {feed: sequence for feed, sequence in vector.items() if sequence} == {
            self.feeds[feed]: sequence for feed, sequence in had.items() if sequence
        }


def test_reader_that_moves_between_replicas_loses_and_doubles_nothing(redis_url: str) -> None:
    run_state_machine_as_test(
        ReplicaMachine,
        settings=settings(
            max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.mark.parametrize("history", [3, 1000])
def test_reader_is_fed_through_moves_without_a_pause(redis_url: str, history: int) -> None:
    """The same by hand, so that it is walked through at each run: ahead of the replica, parked, joined, gone, back."""
    machine = ReplicaMachine()
    try:
        machine.begin(bounds=(history, 1000), replicated=True)
        machine.publish(X, 5)
        machine.publish(Y, 3)
        machine.carry(X, Y, 2, 0)
        machine.read()
        machine.carry(Y, X, 2, 0)
        machine.move(Y, False)  # has all five of X's, of which two are there
        machine.read()
        assert machine.follower is not None
        assert machine.follower.parked is not None
        machine.carry(Y, X, 1, 0)
        machine.read()
        machine.carry(Y, X, 9, 0)
        machine.publish(Y, 2)
        machine.read()
        assert machine.follower.live
        machine.publish(Y, 2)
        machine.read()
        machine.all_arrives(X)
        assert not machine.reader.lost or history == 3
    finally:
        machine.teardown()


def test_a_gap_that_the_first_foreign_events_are_part_of_names_their_feed(redis_url: str) -> None:
    """A stalled reader of a log that had no event of another domain, and has lost the first one before it is read."""
    machine = ReplicaMachine()
    try:
        machine.begin(bounds=(3, 3), replicated=False)
        machine.publish(Y, 4)
        machine.read()
        machine.stall()
        machine.carry(X, Y, 4, 0)
        machine.run(machine.heard())
        machine.read()
        assert machine.reader.lost == {(machine.feeds[Y], 1)}
    finally:
        machine.teardown()
