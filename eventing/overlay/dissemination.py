"""Dissemination: a replica that exchanges runs and vectors over its links. The rules of broadcast.py as a machine.

A live domain takes these steps in several processes (eventing/replication/forwarding); here they are one machine per domain and
RP, for simulations. The order of the steps is that of broadcast.py, and both call the same rules.

The life of a run: `Publish`, or `LinkRequest` of a peer -> into the log -> each link is examined (`_examine`): eager ones get a request
with the run, lazy ones a vector after `lazy_s`, or as announcements.py states -> the peer's `LinkAnswer` states what it holds now, and which feeds it grafts and
prunes. One request at a time is in flight to a peer.

Vectors are sent whole when a link asks (`link_planning.asks`), and as differences otherwise. A peer is asked for its whole vector at
once when a link is made, so that a newcomer waits for no timer, and every `anti_entropy_s` by one link, for messages lost without
a sign.

Feeds asked of one peer are asked of another only after the first had time to answer: of ten links with the same announcement,
several would be grafted at once, and each would bring a copy.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import msgspec

from eventing.overlay import broadcast, exchange, link_planning
from eventing.overlay.announcements import WaitingVectors
from eventing.overlay.dissemination_messages import (
    COMPARE_DUE,
    DEFAULTS,
    LAZY_DUE,
    OVERDUE,
    DisseminationParameters,
    FeedsCompareDue,
    Grafted,
    GraftedEarly,
    LazyDue,
    LinkAnswer,
    LinkRequest,
    Overdue,
    PeerDue,
    Publish,
    RunReceived,
    StepDue,
)
from eventing.overlay.feed_tree import NONE, NOTHING_RECEIVED, ReceivedFeeds
from eventing.overlay.link_planning import LinkPlan
from eventing.overlay.link_state import NEW, Link, again_at
from eventing.overlay.links import LinkDown, LinkUp
from eventing.overlay.machine import Chance, Down, Fired, Id, MessageReceived, SendMessage, SetTimer
from eventing.overlay.reopening import AnswerTimes, Reopening, many_doubted
from eventing.overlay.replica_log import FeedRun, ReplicaLog

Steps = Generator[None, None, None]
EARLY_S = 5.0
"""A peer that wants a feed so soon after it pruned it flaps: a graft needs an announcement, and patience for what it announces (guess)."""
UNANSWERED = 3
"""Requests in a row without an answer in time from which on a link counts as full."""


class RunsInFlight(msgspec.Struct, gc=False):
    """The request under way to a peer: the link when it was sent, and the last sequence of each feed sent."""

    number: int
    since: float
    before: Link
    sent: dict[str, int]


class PeerExchange:
    """The exchange with one peer.

    Attributes:
        link: state of the link.
        flying: the request under way.
        building: a request is being built.
        compare: the peer is to be asked for its whole vector.
        next_at: when the next request may begin.
        wake_at: when the earliest timer ends; 0: none.
        failed: requests in a row without an answer in time.
        answering: how long the peer takes to answer.
        doubted: whether it takes so long that the link is in doubt.
        pruned_at: when the peer last pruned each feed.
    """

    __slots__ = (
        "answering",
        "building",
        "compare",
        "doubted",
        "failed",
        "flying",
        "link",
        "next_at",
        "pruned_at",
        "wake_at",
    )

    def __init__(self) -> None:
        self.link = NEW
        self.flying: RunsInFlight | None = None
        self.answering = AnswerTimes()
        self.building = self.compare = self.doubted = False
        self.next_at = self.wake_at = 0.0
        self.failed = 0
        self.pruned_at: dict[str, float] = {}


class Dissemination:
    """One replica.

    Args:
        me: its domain.
        log: its log.

    Attributes:
        peers: by peer, the exchange with it.
    """

    def __init__(self, me: Id, log: ReplicaLog, parameters: DisseminationParameters = DEFAULTS) -> None:
        self.me = me
        self.log = log
        self.parameters = parameters
        self.peers: dict[Id, PeerExchange] = {}
        self.steps: dict[int, Steps] = {}
        self._numbers = 0
        self._reopening = Reopening()
        self._asked: dict[str, float] = {}
        self._waiting = WaitingVectors(me) if parameters.patient else None
        self._gaps: dict[tuple[str, int], tuple[float, dict[Id, int]]] = {}
        self._gathering = self._comparing = self._watching = False
        self._active_feed = ""
        self._now = 0.0
        self._chance: Chance
        self._out: list[Any] = []

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        """Take in an input; unknown peers, late and repeated timers and answers are harmless."""
        self._now, self._chance, self._out = now, chance, []
        kind = type(given)
        if kind is MessageReceived:
            self._received(given.peer, given.message)
        elif kind is Fired:
            self._fired(given.timer)
        elif kind is Publish:
            if self.log.own not in self.log.vector:
                self._adopt(self.log.own, None)
            self.log.publish(given.event)
            self._active_feed = self.log.own
            self._examine_all()
        elif kind is LinkUp:
            self._up(given.peer)
        elif kind is LinkDown:
            self.peers.pop(given.peer, None)
            if self._waiting is not None:
                self._waiting.over(given.peer)
        elif kind is Down and given.peer in self.peers:
            self._failed(given.peer, self.parameters.retry_s)
            if self.parameters.doubt_s:
                self._doubt(self.peers[given.peer])
        return self._out

    def unanswered(self) -> list[Id]:
        """Return the peers that have not answered several requests in a row: what is for them waits here."""
        return [peer for peer, one in self.peers.items() if one.failed >= UNANSWERED]

    def demote(self, peer: Id) -> None:
        """Make a link lazy for all feeds, because the score of its peer is low."""
        one = self.peers.get(peer)
        if one is not None:
            one.link = broadcast.demoted(one.link, self.log.vector)

    def forget_links(self) -> None:
        """Lose all state but the log, as in a crash."""
        self.peers = {peer: PeerExchange() for peer in self.peers}
        self.steps = {}
        self._asked, self._gaps = {}, {}
        self._reopening = Reopening()
        self._waiting = WaitingVectors(self.me) if self.parameters.patient else None
        self._gathering = self._comparing = self._watching = False

    def _up(self, peer: Id) -> None:
        if peer not in self.peers:
            self.peers[peer] = PeerExchange()
        if self.parameters.anti_entropy_s and not self._comparing:
            self._comparing = True
            self._compare_later()
        self._examine(peer, self.peers[peer])

    def _fired(self, timer: Any) -> None:
        kind = type(timer)
        if kind is PeerDue:
            one = self.peers.get(timer.peer)
            if one is not None:
                if one.wake_at <= self._now:
                    one.wake_at = 0.0
                self._examine(timer.peer, one)
        elif kind is LazyDue:
            self._gathering = False
            for peer, one in self.peers.items():
                self._examine(peer, one, gathered=True)
        elif kind is StepDue:
            self._step(timer.number)
        elif kind is Overdue:
            self._overdue()
        elif kind is FeedsCompareDue:
            self._compare()

    def _compare(self) -> None:
        self._compare_later()
        if self.peers:
            peer = self._chance.choice(list(self.peers))
            self.peers[peer].compare = True
            self._examine(peer, self.peers[peer])

    def _compare_later(self) -> None:
        self._out.append(SetTimer(COMPARE_DUE, self.parameters.anti_entropy_s * (0.5 + self._chance.random())))

    def _overdue(self) -> None:
        """Fail the requests that were not answered in time."""
        self._watching = False
        for peer, one in self.peers.items():
            if one.flying is None:
                continue
            if one.flying.since <= self._now - self.parameters.answer_s:
                self._failed(peer, 0.0)
            if self.parameters.doubt_s and one.answering.in_doubt(self._now, self.parameters.doubt_s):
                self._doubt(one)
        if any(one.flying is not None for one in self.peers.values()):
            self._watch()

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self._out.append(SetTimer(OVERDUE, self.parameters.doubt_s or self.parameters.answer_s))

    def _doubt(self, one: PeerExchange) -> None:
        if not one.doubted:
            one.doubted = True
            self._disturbed()
            if many_doubted(sum(other.doubted for other in self.peers.values()), len(self.peers)):
                self._reopen()

    def _disturbed(self) -> None:
        """Have vectors that wait sent sooner."""
        if self._waiting is None:
            return
        for other in self._waiting.disturbed(self._now):
            if other in self.peers:
                self._wake(other, self.peers[other], self._waiting.due_at(other, self._now))

    def _reopen(self) -> None:
        """Send by all links what their peers lack, if there was time since that was last done."""
        if not self._reopening.begins(self._now):
            return
        for peer, one in self.peers.items():
            one.link = broadcast.reopened(one.link, self.log.vector)
            self._examine(peer, one)

    def _failed(self, peer: Id, retry_s: float) -> None:
        one = self.peers[peer]
        one.flying = None
        if not one.failed and not one.doubted:
            self._disturbed()
        one.failed += 1
        one.next_at = self._now + retry_s
        self._wake(peer, one, one.next_at)

    # Steps: taken at once, or with others in between

    def _begin(self, steps: Steps) -> None:
        if not self.parameters.work_s:
            for _ in steps:
                pass
            return
        self._numbers += 1
        self.steps[self._numbers] = steps
        self._step(self._numbers)

    def _step(self, number: int) -> None:
        steps = self.steps.get(number)
        if steps is None:
            return
        if next(steps, self) is self:
            del self.steps[number]
        else:
            self._out.append(SetTimer(StepDue(number), self.parameters.work_s * self._chance.random()))

    # Sending

    def _adopt(self, feed: str, sender: Id) -> None:
        """Begin the tree of a new feed as that of the feed which was active last, with one link more: shortcuts for a
        tree that was made for another origin."""
        if not self._active_feed:
            return
        spare = self._chance.choice(list(self.peers)) if self.peers else None
        for peer, one in self.peers.items():
            if peer != sender and peer != spare:
                one.link = broadcast.adopted(one.link, feed, self._active_feed)

    def _examine_all(self) -> None:
        for peer, one in self.peers.items():
            self._examine(peer, one)

    def _examine(self, peer: Id, one: PeerExchange, *, gathered: bool = False) -> None:
        """Send what a link needs now, or set the timer for later."""
        if one.flying is not None or one.building:
            return
        now = self._now
        if now < one.next_at:
            self._wake(peer, one, one.next_at)
            return
        plan = self._plan(peer, one, self.log.vector)
        if plan is LinkPlan.NOTHING:
            if self._waiting is not None:
                self._waiting.over(peer)
            at = again_at(one.link, after=now)
            if at is not None:
                self._wake(peer, one, at)
        elif plan is LinkPlan.VECTOR and not gathered and not one.compare and not link_planning.asks(one.link, now=now):
            if self._waiting is not None:
                self._announce(peer, one, self._waiting)
            elif not self._gathering:
                self._gathering = True
                self._out.append(SetTimer(LAZY_DUE, self.parameters.lazy_s))
        else:
            self._build(peer, one)

    def _announce(self, peer: Id, one: PeerExchange, waiting: WaitingVectors) -> None:
        waiting.waits(peer, self._now)
        at = waiting.due_at(peer, self._now)
        if at <= self._now:
            self._build(peer, one)
        else:
            self._wake(peer, one, at)

    def _build(self, peer: Id, one: PeerExchange) -> None:
        if self._waiting is not None:
            self._waiting.over(peer)
        one.building = True
        self._begin(self._sending(peer, one))

    def _wake(self, peer: Id, one: PeerExchange, at: float) -> None:
        if not one.wake_at or at < one.wake_at:
            one.wake_at = max(at, self._now)
            self._out.append(SetTimer(PeerDue(peer), one.wake_at - self._now))

    def _plan(self, peer: Id, one: PeerExchange, ours: dict[str, int]) -> LinkPlan:
        """Choose the next message; ask for announced runs if the link's timer has ended."""
        link, now = one.link, self._now
        if link.timer.ask_at is not None and link.timer.ask_at <= now:
            elsewhere = frozenset(feed for feed, until in self._asked.items() if now < until)
            due = broadcast.due(link, ours=ours, now=now, jitter=self._chance.random(), elsewhere=elsewhere)
            pruned, link = link.tree.pruned, due.link
            one.link = link
            if due.ask:
                asked = link_planning.grafts(link, ours)
                self._asked = {feed: until for feed, until in self._asked.items() if now < until}
                self._asked.update(dict.fromkeys(asked, now + link.timer.patience_s))
                self._out.append(Grafted(asked, due.futile, peer, link.timer.asked > 1, asked - pruned))
        plan = link_planning.plan(link, ours, now=now)
        return LinkPlan.VECTOR if plan is LinkPlan.NOTHING and one.compare else plan

    def _sending(self, peer: Id, one: PeerExchange) -> Steps:
        """Build a request: the log's vector, then the link, then the runs."""
        ours = self.log.vector if not self.parameters.work_s else dict(self.log.vector)
        yield
        plan, link = self._plan(peer, one, ours), one.link
        if plan is LinkPlan.NOTHING:
            one.building = False
            self._examine(peer, one)
            return
        yield
        now = self._now
        runs: tuple[FeedRun, ...] = ()
        if plan is LinkPlan.RUNS:
            wanting = link_planning.wanting(link, now=now)
            runs, stuck = self.log.runs_after(wanting, ours, self.parameters.request_events_max)
            if stuck:
                one.link = link = link_planning.unsendable(link, stuck, now=now)
        asking = link_planning.grafts(link, ours) if link.timer.grafting else NONE
        asking |= link_planning.reopening(link, (run.feed for run in runs))
        one.building = False
        whole = one.compare or link_planning.asks(link, now=now)
        if plan is LinkPlan.RUNS and not runs and not whole:
            at = again_at(link) if ours == self.log.vector else now + self.parameters.spacing_s
            if at is not None:
                self._wake(peer, one, at)
            return
        one.compare = False
        self._numbers += 1
        one.flying = RunsInFlight(self._numbers, now, link, {run.feed: run.last for run in runs})
        one.next_at = now + self.parameters.spacing_s
        one.answering.asked(now)
        self._watch()
        have = dict(ours) if whole else _difference(link, ours)
        self._out.append(
            SendMessage(peer, LinkRequest(self._numbers, whole, have, runs, asking, self.log.low_water_marks))
        )

    # Receiving

    def _received(self, peer: Id, message: Any) -> None:
        one = self.peers.get(peer)
        if one is None:
            return  # the link has ended here; the peer finds out as of any other message
        one.answering.heard(self._now)
        one.doubted = False
        if type(message) is LinkRequest:
            self._begin(self._receiving(peer, one, message))
        elif type(message) is LinkAnswer:
            self._answered(peer, one, message)

    def _receiving(self, peer: Id, one: PeerExchange, message: LinkRequest) -> Steps:
        """Take in a request: the vector into the link, then the runs into the log, then the results into the link."""
        began = self._now
        if message.whole and not one.link.met:
            one.flying = None  # sent before the link stood on the peer's side: no answer will come
        received = NOTHING_RECEIVED
        judged: list[tuple[FeedRun, int]] = []
        if message.low_water_marks:
            marks = self.log.low_water_marks
            marks.update({feed: max(mark, marks.get(feed, 0)) for feed, mark in message.low_water_marks.items()})
        if message.runs:
            judged = self._judged(message.runs, peer)
            one.link = broadcast.on_vector(one.link, message.have)
            if one.link.presumed.paths_doubted_until <= began:
                self._note_carried(judged, peer)
        yield
        if judged:
            received = self._take(judged, peer)
        yield
        if received.new:
            for other, exchanging in self.peers.items():
                if other != peer:
                    self._examine(other, exchanging)
        if self._now - began > self.parameters.answer_s:
            return  # the peer waits no longer, and may have sent newer vectors
        early = frozenset(
            feed for feed in message.graft - received.new if self._now - one.pruned_at.get(feed, -EARLY_S) < EARLY_S
        )
        if early:
            self._out.append(GraftedEarly(peer, early))
        ours = self.log.vector
        outcome = broadcast.on_message(
            one.link,
            message.have,
            ours=ours,
            now=self._now,
            jitter=self._chance.random(),
            received=received,
            graft=message.graft,
        )
        one.link = outcome.link
        if outcome.reopened and self.parameters.doubt_s:
            self._reopen()
        have = dict(ours) if message.whole else {feed: ours.get(feed, 0) for feed in message.have}
        self._out.append(SendMessage(peer, LinkAnswer(message.number, have, outcome.graft, outcome.prune)))
        self._examine(peer, one)

    def _answered(self, peer: Id, one: PeerExchange, message: LinkAnswer) -> None:
        flying = one.flying
        if flying is None or flying.number != message.number:
            return  # late or repeated: the request has failed, or was answered
        one.flying = None
        one.failed = 0
        if message.prune:
            one.pruned_at.update((feed, self._now) for feed in message.prune if feed in self.log.vector)
        outcome = broadcast.on_message(
            one.link,
            message.have,
            ours=self.log.vector,
            now=self._now,
            jitter=self._chance.random(),
            graft=message.graft,
            prune=message.prune,
            answers=True,
        )
        one.link = link_planning.on_sent(flying.before, outcome.link, flying.sent, now=self._now)
        for carrier in sorted(outcome.mistaken):
            if carrier in self.peers:
                self.peers[carrier].link = broadcast.paths_doubted(self.peers[carrier].link, now=self._now)
        self._examine(peer, one)

    def _note_carried(self, judged: Iterable[tuple[FeedRun, int]], sender: Id) -> None:
        for run, gap_to in judged:
            for passed in run.path[:-1] if gap_to >= 0 else ():
                one = self.peers.get(passed)
                if one is not None:
                    one.link = broadcast.carried(one.link, run.feed, run.last, now=self._now, by=sender)

    def _judged(self, runs: Iterable[FeedRun], sender: Id) -> list[tuple[FeedRun, int]]:
        """Each run whose path can be true, and up to where events missing before it are given up; -1: it is not taken."""
        held: dict[str, int] = {}
        found: list[tuple[FeedRun, int]] = []
        for run in runs:
            if exchange.path_problem(run.path, run.origin, sender):
                continue
            key = run.feed
            here = held.get(key, self.log.vector.get(key, 0))
            gap = exchange.gap_before(here, run.first, run.withheld, self.log.low_water_marks.get(key, 0))
            if gap is not None and not gap.signed and not self._given_up(gap, key, sender):
                found.append((run, -1))
                continue
            held[key] = max(run.last, here)
            found.append((run, 0 if gap is None else gap.last))
        return found

    def _given_up(self, gap: exchange.FeedGap, key: str, sender: Id) -> bool:
        """Return whether to go on after a gap that the origin did not sign; all other peers are asked for its events."""
        since, lacking = self._gaps.setdefault((key, gap.first), (self._now, {}))
        lacking[sender] = gap.last
        silent = True
        for peer, one in self.peers.items():
            if peer != sender:
                silent = silent and broadcast.silent(one.link, key, gap, since, lacking.get(peer, 0))
                one.link = broadcast.doubted(one.link, since)
                self._examine(peer, one)
        return exchange.gap_accepted(gap, self._now - since, silent)

    def _take(self, judged: Iterable[tuple[FeedRun, int]], sender: Id) -> ReceivedFeeds:
        """Append the runs."""
        kinds: dict[str, set[str]] = {"new": set(), "known": set(), "redundant": set(), "hole": set()}
        for run, gap_to in judged:
            kinds["hole" if gap_to < 0 else self.take(run, sender, gap_to)].add(run.feed)
        return ReceivedFeeds(*(frozenset(kinds[kind]) if kinds[kind] else NONE for kind in kinds))

    def take(self, run: FeedRun, sender: Id, gap_to: int) -> str:
        """Append a run if it is next; return the name of the result in ReceivedFeeds."""
        if run.last <= self.log.vector.get(run.feed, 0):
            self._out.append(RunReceived(run, False))
            known = self.log.run_of(run.feed, run.last)
            carrier = known.path[-1] if known is not None and known.path else self.me
            one = self.peers.get(carrier)
            if one is not None and carrier != sender:
                one.link = broadcast.early(one.link, run.feed)
                return "redundant" if broadcast.feeds(one.link, run.feed) else "known"
            return "redundant" if run.feed == self.log.own else "known"
        new = run.feed not in self.log.vector
        if not self.log.append(run, gap_to):
            return "hole"  # what was before it when it was judged has gone
        if new:
            self._adopt(run.feed, sender)
        self._active_feed = run.feed
        self._out.append(RunReceived(run, True))
        return "new"


def _difference(link: Link, ours: dict[str, int]) -> dict[str, int]:
    """Return what the peer is not known to hold."""
    theirs, upto = link.theirs, link.presumed.upto
    return {feed: last for feed, last in ours.items() if last > theirs.get(feed, 0) and last > upto.get(feed, 0)}
