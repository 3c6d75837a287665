"""Replicas of one RP in memory, over the code that decides in the live ones: eventing/overlay/broadcast.py and exchange.py.

A world has a clock, a network of requests and answers that can be delayed, dropped, delivered twice and cut, and replicas
that publish, trim, crash and lose their data. Nothing here decides anything that those two modules decide.

What a live domain does in several processes and round trips, takes several steps here, in the same order (broadcast.py says
which), and anything may happen between two of them: a request is built from the log, then the link, then the log
again; a request that came is noted in the link, then in the log, then in the link again. In a world where each was one
step, the links came to rest that went on carrying copies in the live one.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

from eventing.core.events.feeds import Feed
from eventing.overlay import broadcast, exchange, link_planning, link_state
from eventing.overlay.feed_tree import ReceivedFeeds
from eventing.overlay.link_planning import LinkPlan
from eventing.overlay.link_state import Link

SPACING_S = 0.05  # between two requests to a peer, as in outbound.py
LOST_S = 2.0  # a request whose answer has not come by then has failed
RUN_EVENTS_MAX = 10
REQUEST_EVENTS_MAX = 40
STEP_WAITS = 0.3  # the chance that a step is not taken within this turn of the world


@dataclass(frozen=True)
class Run:
    """A run as sent: `events` the last ones of `first` to `last`, `withheld` how many before them are not there."""

    feed: Feed
    first: int
    last: int
    withheld: int
    events: tuple[str, ...]
    path: tuple[str, ...]


@dataclass(frozen=True)
class Message:
    """A request, or its answer."""

    source: str
    target: str
    number: int
    is_answer: bool
    have: dict[str, int]
    runs: tuple[Run, ...] = ()
    graft: frozenset[str] = frozenset()
    prune: frozenset[str] = frozenset()
    posted_at: float = 0.0
    floors: tuple[tuple[str, int], ...] = ()


@dataclass
class Held:
    """One feed at one replica: its events by sequence, its runs, how far it is held, what was skipped."""

    feed: Feed
    events: dict[int, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    held: int = 0
    skipped: set[int] = field(default_factory=set)


@dataclass
class InFlight:
    """The one request to a peer."""

    number: int
    since: float
    before: Link
    sent: dict[str, int]


class Replica:
    """One domain's replica of the RP."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.lives = 0
        self.up = True
        self.begin()

    def begin(self) -> None:
        """Start with no data at all, as a new life of the numbering."""
        self.lives += 1
        self.own = Feed(self.name, "abcdefgh"[self.lives - 1] * 8)
        self.feeds: dict[str, Held] = {self.own.key: Held(self.own)}
        self.floors: dict[str, int] = {}
        self.waits_since: dict[tuple[str, int], float] = {}
        self.lacking: dict[tuple[str, int], dict[str, int]] = {}
        self.forget_links()

    def forget_links(self) -> None:
        """What a crash of the whole domain leaves: data, but no watermarks and nothing in flight."""
        self.links: dict[str, Link] = {}
        self.in_flight: dict[str, InFlight] = {}
        self.next_at: dict[str, float] = {}
        self.building: set[str] = set()
        self.world.steps = [work for work in self.world.steps if work.replica is not self]

    @property
    def vector(self) -> dict[str, int]:
        return {key: one.held for key, one in self.feeds.items() if one.held}

    def publish(self, text: str) -> None:
        """One event, sealed with what is unsealed when it is sent: here at once, as a run of its own."""
        mine = self.feeds[self.own.key]
        mine.held += 1
        mine.events[mine.held] = text
        last = mine.runs[-1] if mine.runs else None
        if last is not None and last.last - last.first + 1 < RUN_EVENTS_MAX and not self.left(last):
            mine.runs[-1] = Run(self.own, last.first, mine.held, 0, (), ())
        else:
            mine.runs.append(Run(self.own, mine.held, mine.held, 0, (), ()))

    def left(self, run: Run) -> bool:
        """Whether a run of ours has been offered to anybody: sealed for good."""
        return (run.first, run.last) in self.world.sealed.setdefault(self.own.key, set())

    def trim(self, keep: int) -> None:
        """Keep the last `keep` events of each feed."""
        for key, one in self.feeds.items():
            oldest = one.held - keep + 1
            one.events = {sequence: text for sequence, text in one.events.items() if sequence >= oldest}
            one.runs = [run for run in one.runs if run.last >= oldest]
            if one.feed == self.own and oldest > 1:
                self.floors[key] = max(self.floors.get(key, 0), oldest)

    # Sending

    def send_all(self) -> None:
        """Send to each neighbour what its link asks for, one request in flight at a time."""
        for peer in self.world.neighbours(self.name):
            self.send(peer)

    def send(self, peer: str) -> None:
        """Begin a request, unless one is under way."""
        now = self.world.now
        flying = self.in_flight.get(peer)
        if peer in self.building or (flying is not None and now - flying.since < LOST_S):
            return
        self.in_flight.pop(peer, None)
        if now >= self.next_at.get(peer, 0.0) and self.plan(peer, self.vector) is not LinkPlan.NOTHING:
            self.building.add(peer)
            self.world.begin(self, self.sending(peer))

    def plan(self, peer: str, ours: dict[str, int]) -> LinkPlan:
        """What is to be sent to a peer; looks at the link's timer."""
        now = self.world.now
        due = broadcast.due(self.links.get(peer, link_state.NEW), ours=ours, now=now, jitter=self.world.chance())
        self.links[peer] = due.link
        self.world.futile += due.futile
        return link_planning.plan(due.link, ours, now=now)

    def sending(self, peer: str) -> Steps:
        """Build a request: the log as it is, then the link, then the runs."""
        ours = self.vector
        yield
        plan, link = self.plan(peer, ours), self.links[peer]
        if plan is LinkPlan.NOTHING:
            self.building.discard(peer)
            return
        yield
        wanting = link_planning.wanting(link, now=self.world.now)
        found = self.runs_after(wanting) if plan is LinkPlan.RUNS else ()
        runs = tuple(run for run in found if link_planning.within(ours, run.feed.key, run.last))
        self.building.discard(peer)
        asking = link_planning.grafts(link, ours) if link.timer.grafting else frozenset[str]()
        if plan is LinkPlan.RUNS and not runs and not asking:
            return
        number = self.world.number()
        sent = {run.feed.key: run.last for run in runs}
        self.in_flight[peer] = InFlight(number, self.world.now, link, sent)
        self.next_at[peer] = self.world.now + SPACING_S
        floors = tuple(sorted(self.floors.items()))
        now = self.world.now
        self.world.post(Message(self.name, peer, number, False, ours, runs, asking, posted_at=now, floors=floors))

    def runs_after(self, vector: dict[str, int]) -> tuple[Run, ...]:
        """Runs that whoever holds `vector` lacks, feeds in turn."""
        found: list[Run] = []
        count = 0
        for key, one in sorted(self.feeds.items()):
            for run in one.runs:
                path = exchange.onward(run.path, self.name)
                if run.last <= vector.get(key, 0) or path is None:
                    continue
                if one.feed == self.own:
                    self.world.sealed.setdefault(key, set()).add((run.first, run.last))
                present = [at for at in range(run.first, run.last + 1) if at in one.events]
                begin = present[0] if present else run.last + 1
                events = tuple(one.events[at] for at in range(begin, run.last + 1))
                if not events:
                    continue
                count += len(events)
                if count > REQUEST_EVENTS_MAX:
                    return tuple(found)
                found.append(Run(one.feed, run.first, run.last, begin - run.first, events, tuple(path)))
        return tuple(found)

    # Receiving

    def receive(self, message: Message) -> None:
        if message.is_answer:
            self.take_answer(message)
        else:
            self.world.begin(self, self.receiving(message))

    def receiving(self, message: Message) -> Steps:
        """Take in a request: the link learns what others hold before the log does, so that they are not sent it.

        Where that takes longer than the sender waits, runs are taken all the same, but what it said is not heard any more.
        """
        peer, began = message.source, self.world.now
        for key, floor in message.floors:
            self.floors[key] = max(self.floors.get(key, 0), floor)
        judged = self.judged(message.runs, peer)
        self.links[peer] = broadcast.on_vector(self.links.get(peer, link_state.NEW), message.have)
        for run, gap_to in judged:
            if gap_to is not None:
                self.note_carried(run)
        yield
        kinds = [("hole" if gap_to is None else self.take(run, peer, gap_to), run.feed.key) for run, gap_to in judged]
        received = ReceivedFeeds(
            *(frozenset(key for kind, key in kinds if kind == one) for one in ("new", "known", "redundant", "hole"))
        )
        ours = self.vector
        yield
        if self.world.now - began > LOST_S:
            return
        heard = broadcast.on_message(
            self.links.get(peer, link_state.NEW),
            message.have,
            ours=ours,
            now=self.world.now,
            jitter=self.world.chance(),
            received=received,
            graft=message.graft,
        )
        self.links[peer] = heard.link
        self.world.post(Message(self.name, peer, message.number, True, ours, graft=heard.graft, prune=heard.prune))

    def note_carried(self, run: Run) -> None:
        """Neighbours that a run came through hold it."""
        for neighbour in self.world.neighbours(self.name):
            if neighbour in run.path and neighbour in self.links:
                self.links[neighbour] = broadcast.carried(
                    self.links[neighbour], run.feed.key, run.last, now=self.world.now
                )

    def take_answer(self, message: Message) -> None:
        peer = message.source
        flying = self.in_flight.get(peer)
        if flying is None or flying.number != message.number:
            return  # a repeated or late answer: HTTP has no such thing, the connection it was for is closed
        del self.in_flight[peer]
        heard = broadcast.on_message(
            self.links.get(peer, link_state.NEW),
            message.have,
            ours=self.vector,
            now=self.world.now,
            jitter=self.world.chance(),
            graft=message.graft,
            prune=message.prune,
            answers=True,
        )
        self.links[peer] = link_planning.on_sent(flying.before, heard.link, flying.sent, now=self.world.now)

    def judged(self, runs: Iterable[Run], sender: str) -> list[tuple[Run, int | None]]:
        """Each run, and up to where what is missing before it is given up; None where it is not, and the run not taken."""
        held = {key: one.held for key, one in self.feeds.items()}
        found: list[tuple[Run, int | None]] = []
        for run in runs:
            assert exchange.path_problem(run.path, run.feed.origin, sender) == ""
            key = run.feed.key
            gap = exchange.gap_before(held.get(key, 0), run.first, run.withheld, self.floors.get(key, 0))
            if gap is not None and not gap.signed and not self.gives_up(gap, key, sender):
                found.append((run, None))
                continue
            held[key] = max(run.last, held.get(key, 0))
            found.append((run, 0 if gap is None else gap.last))
        return found

    def gives_up(self, gap: exchange.FeedGap, key: str, sender: str) -> bool:
        """Whether to go on behind a gap that the origin did not sign; all others are asked whether they can fill it."""
        place = (key, gap.first)
        since = self.waits_since.setdefault(place, self.world.now)
        lacking = self.lacking.setdefault(place, {})
        lacking[sender] = gap.last
        others = [peer for peer in self.world.neighbours(self.name) if peer != sender]
        silent = all(
            broadcast.silent(self.links.get(peer, link_state.NEW), key, gap, since, lacking.get(peer, 0))
            for peer in others
        )
        for peer in others:
            self.links[peer] = broadcast.doubted(self.links.get(peer, link_state.NEW), since)
        return exchange.gap_accepted(gap, self.world.now - since, silent)

    def take(self, run: Run, sender: str, gap_to: int = 0) -> str:
        """Append a run if it is next; what became of it."""
        one = self.feeds.setdefault(run.feed.key, Held(run.feed))
        self.world.copies += len(run.events)
        if run.last <= one.held:
            known = next((kept for kept in one.runs if kept.first <= run.last <= kept.last), None)
            carrier = known.path[-1] if known is not None and known.path else self.name
            self.world.redundant += len(run.events)
            if carrier in self.links and carrier != sender:
                self.links[carrier] = broadcast.early(self.links[carrier], run.feed.key)
            still = carrier in self.links and broadcast.feeds(self.links[carrier], run.feed.key)
            return "redundant" if one.feed == self.own or (carrier != sender and still) else "known"
        begin = run.first + run.withheld
        if begin > max(one.held, gap_to) + 1:
            return "hole"  # what was before it when it was judged has gone
        if begin > one.held + 1:
            one.skipped.update(range(one.held + 1, begin))
        for offset, text in enumerate(run.events):
            if begin + offset > one.held:
                one.events[begin + offset] = text
        one.held = run.last
        one.runs.append(run)
        return "new"


Steps = Generator[None, None, None]


@dataclass(eq=False)
class Work:
    """Something that a replica is at, and that others may come between."""

    replica: Replica
    steps: Steps


class World:
    """The replicas, the clock and the network between them.

    Args:
        delay_s: the most that a message is on its way beyond one turn of the world, each by chance.
    """

    def __init__(self, live_gateways: Iterable[tuple[str, str]], seed: int, *, delay_s: float = 0.0) -> None:
        self.random = random.Random(seed)
        self.delay_s = delay_s
        self.on_the_way: list[tuple[float, Message]] = []
        self.live_gateways = {frozenset(live_gateway) for live_gateway in live_gateways}
        self.cut: set[frozenset[str]] = set()
        self.now = 1000.0
        self.mail: list[Message] = []
        self.steps: list[Work] = []
        self.sealed: dict[str, set[tuple[int, int]]] = {}
        self.copies = self.redundant = self.futile = self.published = 0
        self._numbers = 0
        self.replicas = {
            name: Replica(self, name)
            for name in sorted({name for live_gateway in self.live_gateways for name in live_gateway})
        }
        self.texts: dict[str, dict[int, str]] = {}

    def chance(self) -> float:
        return self.random.random()

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def neighbours(self, name: str) -> list[str]:
        return sorted(next(iter(live_gateway - {name})) for live_gateway in self.live_gateways if name in live_gateway)

    def publish(self, name: str) -> None:
        replica = self.replicas[name]
        self.published += 1
        replica.publish(f"event {self.published}")
        mine = replica.feeds[replica.own.key]
        self.texts.setdefault(replica.own.key, {})[mine.held] = mine.events[mine.held]

    def post(self, message: Message) -> None:
        if not self.passes(message):
            return
        if self.delay_s:
            self.on_the_way.append((self.now + self.delay_s * self.chance(), message))
        else:
            self.mail.append(message)

    def passes(self, message: Message) -> bool:
        return frozenset((message.source, message.target)) not in self.cut

    def deliver(self, message: Message) -> None:
        target = self.replicas[message.target]
        late = not message.is_answer and self.now - message.posted_at > LOST_S  # its connection is closed
        if target.up and self.passes(message) and not late:
            target.receive(message)

    def begin(self, replica: Replica, steps: Steps) -> None:
        """Have a replica do something, step by step, from now on."""
        self.steps.append(Work(replica, steps))

    def work(self) -> None:
        """Take steps of all that is under way, in a random order; some wait until later."""
        going = list(self.steps)
        while going:
            work = going.pop(self.random.randrange(len(going)))
            if work not in self.steps:
                continue  # its replica crashed
            if next(work.steps, self) is self:
                self.steps.remove(work)
            elif self.chance() >= STEP_WAITS:
                going.append(work)

    def turn(self) -> bool:
        """Everybody sends, all mail arrives in a random order, and all go on with what they are at; whether anything moved."""
        for replica in self.replicas.values():
            if replica.up:
                replica.send_all()
        self.mail += [message for at, message in self.on_the_way if at <= self.now]
        self.on_the_way = [(at, message) for at, message in self.on_the_way if at > self.now]
        mail, self.mail = self.mail, []
        self.random.shuffle(mail)
        for message in mail:
            self.deliver(message)
        moved = bool(mail or self.steps)
        self.work()
        return moved

    def settle(self, within_s: float = 900.0) -> None:
        """Go on until nobody has anything to say."""
        end = self.now + within_s
        while self.now < end:
            looked_at = self.now
            moved = self.turn()
            self.now += SPACING_S
            if moved or self.mail or self.steps or self.on_the_way:
                continue
            waiting = [at for one in self.replicas.values() for at in self.waits(one) if at > looked_at]
            if not waiting:
                return
            self.now = max(self.now, min(waiting))
        raise AssertionError(f"not settled within {within_s:g} s: {[one.vector for one in self.replicas.values()]}")

    def waits(self, replica: Replica) -> list[float]:
        """When a replica wants to act by itself."""
        times = [flying.since + LOST_S for flying in replica.in_flight.values()]
        return times + [at for link in replica.links.values() if (at := link_state.again_at(link)) is not None]
