"""A node's replica of one log of broadcast values, over the decisions that live replicas take: overlay/broadcast.py and exchange.py.

A value is an event of the feed of the node that it was given to. To each neighbour there is one request in flight; it has the node's
vector and the runs that the link asks for, and its answer the vector behind them and the feeds to graft and to prune. Whatever is lost,
repeated or cut, the vectors of later requests show what is lacking.

Nothing is trimmed here, so a gap is filled, never accepted, and a run's withheld part is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from eventing.core.events.feeds import Feed
from eventing.overlay import broadcast, exchange, link_planning, link_state
from eventing.overlay.feed_tree import ReceivedFeeds
from eventing.overlay.link_planning import LinkPlan
from eventing.overlay.link_state import Link
from eventing.overlay.machine import Chance

SPACING_S = 0.02
"""Between two requests to a neighbour: values that are given to a node within this time leave together."""
LOST_S = 2.0
"""A request that is not answered within this time has failed."""
REQUEST_VALUES_MAX = 512  # bound: values in one request; the others follow in the next one


class MaelstromRun(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive values of one feed.

    Attributes:
        feed: its origin and epoch.
        first: sequence of the first value.
        path: nodes that the run has passed, the origin first.
    """

    feed: Feed
    first: int
    values: tuple[Any, ...]
    path: tuple[str, ...]

    @property
    def last(self) -> int:
        """Sequence of the last value."""
        return self.first + len(self.values) - 1


class MaelstromExchange(msgspec.Struct, frozen=True):
    """A request, or its answer.

    Attributes:
        number: of the request among those of its sender; the answer repeats it.
        answers: whether this is an answer.
        have: the sender's vector, in an answer with the runs that it answers.
        graft, prune: feeds that the sender wants by this link from now on, and those that it receives by another.
    """

    number: int
    answers: bool
    have: dict[str, int]
    runs: tuple[MaelstromRun, ...] = ()
    graft: tuple[str, ...] = ()
    prune: tuple[str, ...] = ()


class _InFlight(msgspec.Struct, frozen=True):
    """The request to a neighbour that is not answered yet."""

    number: int
    since: float
    before: Link
    sent: dict[str, int]


class ReplicatedFeed:
    """One feed at one node: its values, and the way of each of its runs."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.values: list[Any] = []
        self._ways: list[tuple[int, tuple[str, ...]]] = []

    def append(self, values: Iterable[Any], path: tuple[str, ...]) -> None:
        """Append values that arrived together."""
        self.values += values
        if self._ways and self._ways[-1][1] == path:
            self._ways.pop()
        self._ways.append((len(self.values), path))

    def carrier(self, sequence: int) -> str:
        """The neighbour that brought a value; empty for an own one."""
        path = next((path for last, path in self._ways if sequence <= last), ())
        return path[-1] if path else ""

    def runs(self, after: int, upto: int, me: str) -> Iterable[MaelstromRun]:
        """Runs to forward: of all values behind a sequence, one for each way by which they arrived."""
        first = after + 1
        for last, path in self._ways:
            last = min(last, upto)
            onward = exchange.onward(path, me)
            if last >= first and onward is not None:
                yield MaelstromRun(self.feed, first, tuple(self.values[first - 1 : last]), tuple(onward))
            first = max(first, last + 1)


class MaelstromReplica:
    """All feeds at one node, and the links to its neighbours."""

    def __init__(self, me: str, epoch: str, neighbours: Sequence[str]) -> None:
        self.me = me
        self.neighbours = tuple(neighbours)
        self.own = Feed(me, epoch)
        self.feeds: dict[str, ReplicatedFeed] = {self.own.key: ReplicatedFeed(self.own)}
        self.links: dict[str, Link] = {}
        self._in_flight: dict[str, _InFlight] = {}
        self._next_at: dict[str, float] = {}
        self._requests = 0

    @property
    def vector(self) -> dict[str, int]:
        """The last sequence of each feed held."""
        return {key: len(one.values) for key, one in self.feeds.items() if one.values}

    def values(self) -> list[Any]:
        """Everything held."""
        return [value for one in self.feeds.values() for value in one.values]

    def publish(self, value: Any) -> None:
        """Append a value that was given to this node."""
        self.feeds[self.own.key].append((value,), ())

    # Sending

    def send(self, now: float, chance: Chance) -> list[tuple[str, MaelstromExchange]]:
        """The requests that are due: to each neighbour what its link asks for."""
        found = ((peer, self._request(peer, now, chance)) for peer in self.neighbours)
        return [(peer, request) for peer, request in found if request is not None]

    def due_at(self) -> float | None:
        """The time of the next call of `send` that may do something, if nothing is received before; None for never."""
        times = [flying.since + LOST_S for flying in self._in_flight.values()]
        for peer in self.neighbours:
            if peer in self._in_flight:
                continue
            link = self.links.get(peer, link_state.NEW)
            again = link_state.again_at(link)
            if again is not None:
                times.append(again)
            if link_planning.plan(link, self.vector, now=self._next_at.get(peer, 0.0)) is not LinkPlan.NOTHING:
                times.append(max(self._next_at.get(peer, 0.0), link.refusals.shut_until))
        return min(times, default=None)

    def _request(self, peer: str, now: float, chance: Chance) -> MaelstromExchange | None:
        flying = self._in_flight.get(peer)
        if now < self._next_at.get(peer, 0.0) or (flying is not None and now - flying.since < LOST_S):
            return None
        self._in_flight.pop(peer, None)
        ours = self.vector
        link = broadcast.due(self.links.get(peer, link_state.NEW), ours=ours, now=now, jitter=chance.random()).link
        self.links[peer] = link
        plan = link_planning.plan(link, ours, now=now)
        if plan is LinkPlan.NOTHING:
            return None
        self._next_at[peer] = now + SPACING_S
        runs = self._runs(link_planning.wanting(link, now=now), ours) if plan is LinkPlan.RUNS else ()
        asking = link_planning.grafts(link, ours) if link.timer.grafting else frozenset[str]()
        if plan is LinkPlan.RUNS and not runs and not asking:
            return None
        self._requests += 1
        self._in_flight[peer] = _InFlight(self._requests, now, link, {run.feed.key: run.last for run in runs})
        return MaelstromExchange(self._requests, False, ours, runs, tuple(sorted(asking)))

    def _runs(self, wanting: dict[str, int], ours: dict[str, int]) -> tuple[MaelstromRun, ...]:
        found: list[MaelstromRun] = []
        left = REQUEST_VALUES_MAX
        for key, one in sorted(self.feeds.items()):
            for run in one.runs(wanting.get(key, 0), ours.get(key, 0), self.me):
                if left <= 0:
                    return tuple(found)
                cut = run if len(run.values) <= left else msgspec.structs.replace(run, values=run.values[:left])
                found.append(cut)
                left -= len(cut.values)
        return tuple(found)

    # Receiving

    def receive(self, peer: str, message: MaelstromExchange, now: float, chance: Chance) -> MaelstromExchange | None:
        """Take in a message of a neighbour; the answer, if it is a request."""
        if message.answers:
            self._answered(peer, message, now, chance)
            return None
        self.links[peer] = broadcast.on_vector(self.links.get(peer, link_state.NEW), message.have)
        runs = [run for run in message.runs if not exchange.path_problem(run.path, run.feed.origin, peer)]
        for run in runs:
            if run.first <= self.vector.get(run.feed.key, 0) + 1:
                self._note_carried(run, now)
        kinds = [(self._take(run, peer), run.feed.key) for run in runs]
        received = ReceivedFeeds(
            *(frozenset(key for kind, key in kinds if kind == one) for one in ("new", "known", "redundant", "hole"))
        )
        ours = self.vector
        outcome = broadcast.on_message(
            self.links[peer],
            message.have,
            ours=ours,
            now=now,
            jitter=chance.random(),
            received=received,
            graft=message.graft,
        )
        self.links[peer] = outcome.link
        graft, prune = tuple(sorted(outcome.graft)), tuple(sorted(outcome.prune))
        return MaelstromExchange(message.number, True, ours, (), graft, prune)

    def _answered(self, peer: str, message: MaelstromExchange, now: float, chance: Chance) -> None:
        flying = self._in_flight.get(peer)
        if flying is None or flying.number != message.number:
            return  # an answer that came too late: its request has failed
        del self._in_flight[peer]
        outcome = broadcast.on_message(
            self.links.get(peer, link_state.NEW),
            message.have,
            ours=self.vector,
            now=now,
            jitter=chance.random(),
            graft=message.graft,
            prune=message.prune,
            answers=True,
        )
        self.links[peer] = link_planning.on_sent(flying.before, outcome.link, flying.sent, now=now)

    def _note_carried(self, run: MaelstromRun, now: float) -> None:
        for neighbour in self.neighbours:
            if neighbour in run.path and neighbour in self.links:
                self.links[neighbour] = broadcast.carried(self.links[neighbour], run.feed.key, run.last, now=now)

    def _take(self, run: MaelstromRun, sender: str) -> str:
        """Append what is next of a run; the kind of ReceivedFeeds that it is."""
        key = run.feed.key
        one = self.feeds.get(key) or ReplicatedFeed(run.feed)
        held = len(one.values)
        if run.last <= held:
            carrier = one.carrier(run.last)
            if carrier in self.links and carrier != sender:
                self.links[carrier] = broadcast.early(self.links[carrier], key)
            still = carrier in self.links and broadcast.feeds(self.links[carrier], key)
            return "redundant" if run.feed == self.own or (carrier != sender and still) else "known"
        if run.first > held + 1:
            return "hole"
        one.append(run.values[held + 1 - run.first :], run.path)
        self.feeds[key] = one
        return "new"
