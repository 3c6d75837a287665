"""Outbound: forwarding to one peer, by one task at a time. sweeping.py repairs lost wake-ups.

The life of a turn: `forward(peer)` takes the peer lock (wakeups.py), unless delivery fails and no attempt is due -> it
takes the dirty RPs, and those whose links have an expired timer -> seals what is unsealed there -> one bounded request
carries, for each RP, the runs that the peer lacks, or a vector -> the answer's vectors become the watermarks; whatever
is still lacking is in the next request -> when nothing is left, it waits a moment for more, and releases the lock. Live
forwarding and catching up are the same code, and the cost follows peers, not RPs.

With more than one request's worth, the next request is built while the peer processes this one, on the assumption that
it is acknowledged whole; what the answer shows to be otherwise is removed from it again, and everything if there is no
answer. Only one request is in flight at any time.

Memory: two requests, of at most 1 MiB of events each, whatever the backlog.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Lock

from django.utils import timezone

from eventing.conf import config
from eventing.core.container import per_process
from eventing.log import watermarks
from eventing.overlay import announcements, link_planning
from eventing.overlay.link_state import Link
from eventing.peering.models import DeliveryColumns
from eventing.peering.rules.deliveries import PROBED, RETRY_AFTER_S_MAX, Failure
from eventing.peering.selectors.deliveries import delivery_due, partner_delivery_get
from eventing.peering.selectors.evidence import PENDING_MAX
from eventing.peering.selectors.partners import Partner, partner_get, partners
from eventing.peering.selectors.peers import peer_get
from eventing.peering.selectors.recent_keys import signing_key_recent
from eventing.peering.services.deliveries import delivery_failed, delivery_succeeded
from eventing.peering.services.partners import partner_contacted
from eventing.peering.services.peers import CONTACT_S
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import NO_ANSWER, PeerError, begin
from eventing.replication.forwarding import fork_detection, wakeups
from eventing.replication.forwarding.asked_feeds import asked_feeds
from eventing.replication.forwarding.failing_links import links_failing, requests_under_way
from eventing.replication.forwarding.measures import request_measured
from eventing.replication.forwarding.outbound_answer import answer_apply
from eventing.replication.forwarding.outbound_request import (
    NOTHING_SENT,
    BuiltRequest,
    LazyVectors,
    SentPart,
    documents_acknowledged,
    documents_add,
    request_build,
)
from eventing.replication.forwarding.repeats import runs_sent
from eventing.replication.forwarding.vector_times import vector_times
from eventing.rps.rules.reliability import IN_TIME_S
from eventing.store import link_tallies, peer_state
from eventing.store.peer_state import PeerLock
from eventing.store.waiting_vectors import vectors_note, vectors_take

EXCHANGE = "/federation/v1/exchange"
# Less than a task may take (workers/schedule.py). A stop does not wait for it.
TURN_S_MAX = 40.0  # bound: seconds of a forwarding task; the next task continues
CALL_S = 10.0  # bound: seconds of a request to a peer; `unreachable`
SPACING_GROWTH = 2.0  # times the duration of the last request with events, if that is longer: relieves a busy machine
SPACING_S_MAX = 0.25
SPACING_S = (
    0.05  # between the beginnings of two requests that are not full: 20 a second suffice for any number of events
)
# A turn waits this long for more before it ends. Waking it costs a third of a new task's processor time; a link of a tree that carries
# events of several origins is idle for some seconds in between.
LINGER_S = 10.0
TIMER_S = 2.0  # a turn that sent nothing waits this long for the timer of a link
SOON_S = 2.0  # a retry due within this time is waited for in the turn
PAUSE_S_MAX = 1.0  # bound: seconds of a pause that a peer asks for and a task waits; a longer pause ends the task
OTHERS_S = 1.0  # bound: seconds of a task while other peers wait for a thread; the task is enqueued behind them
CROWDED_S = 0.2  # where all threads have turns: time between two looks of one that lingers for peers that wait
STOPPED_S = 60.0  # bound: seconds that publishes enqueue no task for a stopped delivery; the delivery is tried again
RPS_MIN = 16  # least RPs considered for a request, however few fitted into the last ones
log = logging.getLogger(__name__)


def forward(peer: str) -> bool:
    """Forward to `peer` what it lacks, until nothing is left or TURN_S_MAX is over. Returns whether another task is
    needed.

    Idempotent, also concurrently: one caller has the lock. Raises redis.RedisError, django.db.Error.
    """
    row = partner_get(peer)
    if row is None:
        if peer_get(peer) is None:
            peer_state.forget(peer)
        return False
    lock = wakeups.peer_lock_acquire(peer)
    if lock is None:
        return False
    try:
        with _turns().one():
            return _Forwarding(row, lock).run()
    except BaseException:
        wakeups.peer_lock_abandon(lock)
        raise


class _Turns:
    """The turns of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count one more during the block."""
        with self._lock:
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1

    def crowded(self) -> bool:
        """Return whether all threads that forward have turns: only then others may wait for one."""
        return self._count >= config().forwarders


_turns = per_process(_Turns)


class _Forwarding:
    """One turn."""

    def __init__(self, peer: Partner, lock: PeerLock) -> None:
        self._peer = peer
        self._lock = lock
        self._me = config().domain
        self._names = [partner.name for partner in partners()]
        self._contact_at = peer.heard_at or datetime.fromtimestamp(
            0, UTC
        )  # as in the peer's lease, which answers renew
        self._todo: dict[str, None] = {}  # RPs in the order of their arrival
        self._lazy: dict[str, None] = {}  # RPs whose vectors wait (overlay/announcements.py)
        self._waiting = vector_times()
        self._request_at = 0.0
        self._sent_runs = False  # whether the last request had events
        self._took_s = 0.0  # duration of the last round, if its request had events
        self._full = False
        self._ahead: BuiltRequest | None = None  # the next request, built while the one before was under way
        self._rps = (
            wire.RPS_MAX
        )  # RPs in the next request: about as many as fit, so that none is sealed before it is sent
        self._failing = False
        self._took: bool | None = (
            None  # whether the peer acknowledged any of the last events sent; None: nothing was sent yet
        )
        self._ends_at = 0.0  # time at which another task is to continue
        self._check_at = 0.0  # time of the next check for waiting peers
        self._proofs_sent = False  # whether the last request had all proofs that the peer lacks

    def run(self) -> bool:
        """Run the turn; see `forward`."""
        began = time.monotonic()
        self._ends_at = began + TURN_S_MAX
        self._check_at = began + OTHERS_S
        if not self._may_try():
            self._lock.release(whatever=True)
            return False
        while True:
            over = time.monotonic() > self._ends_at or wakeups.stopping()
            if not over and self._others_wait():
                return self._yield()
            now = time.time()
            taken = None if over else self._lock.take(now, wakeups.TAKEN_MAX)
            if taken is None:
                self._give_back()
                return True
            self._todo |= dict.fromkeys(taken.rps)
            self._take_vectors(taken.vectors_since, now)
            if taken.notified:
                self._proofs_sent = False  # there may be others
            if self._ahead is not None or self._todo or self._lazy:
                pause_s = self._pause_s()
                if pause_s > 0:
                    if self._todo:
                        time.sleep(pause_s)
                    elif pause_s <= announcements.RIDE_S:
                        self._lock.wait(pause_s)
                    else:
                        self._put_back_vectors()
                    continue
                round_at = time.monotonic()
                if not self._round():
                    return False
                self._took_s = time.monotonic() - round_at if self._sent_runs else 0.0
            elif not self._proofs_sent and fork_detection.proofs_due(self._peer):
                if not self._send(BuiltRequest(wire.ExchangeRequest(wire.VERSION), {})):
                    return False
            elif not self._wait(taken.timer_at) and self._lock.release():
                return False

    def _may_try(self) -> bool:
        """Return whether delivery works, or an attempt is due. SQL has its state; a note in Redis, which the sweep renews, states whether
        to read that.
        """
        if not peer_state.failing(self._peer.name):
            return True
        delivery = partner_delivery_get(self._peer.name)
        self._failing = delivery is not None and delivery.failures > 0
        if delivery is None or not self._failing:
            peer_state.failing_set(self._peer.name, False)
            return True
        now = timezone.now()
        if delivery_due(delivery, self._peer, now, peer_state.probed(self._peer.name)):
            return True
        peer_state.hold_off(self._peer.name, _left_s(delivery, now))
        return False

    def _pause_s(self) -> float:
        """Return how long to gather before the next request, seconds."""
        now = time.monotonic()
        if self._ahead is not None:
            return 0.0
        if self._todo:
            spacing_s = max(SPACING_S, min(SPACING_GROWTH * self._took_s, SPACING_S_MAX))
            return 0.0 if self._full else max(0.0, self._request_at + spacing_s - now)
        at = time.time()
        self._waiting.waits(self._peer.name, at)
        return max(0.0, self._waiting.due_at(self._peer.name, at) - at)

    def _take_vectors(self, since: float | None, now: float) -> None:
        """Take over the vectors that gateways noted for the peer, the first at `since`, if they are due, or may go with something else."""
        if since is None or now < (
            since + announcements.RIDE_S if self._todo else self._waiting.due_after(self._peer.name, since, now)
        ):
            return
        for rp, since in vectors_take(self._peer.name, wakeups.RPS_MAX).items():
            self._lazy[rp] = None
            self._waiting.waits(self._peer.name, since)

    def _put_back_vectors(self) -> None:
        """Leave the vectors that wait to the peer's next turn, which the sweep begins when they are due."""
        if self._lazy:
            since = self._waiting.since(self._peer.name)
            vectors_note({self._peer.name: self._lazy}, time.time() if since is None else since)
            self._lazy.clear()
        self._waiting.over(self._peer.name)

    def _wait(self, due: float | None) -> bool:
        """Wait for a wake-up or an expired timer of a link, the next one at `due`; return whether there may be something to send.

        A turn that sent nothing waits for a timer only.
        """
        self._proofs_sent = False
        left_s = LINGER_S if due is None else min(LINGER_S, max(0.0, due - time.time()))
        if not self._request_at and left_s > TIMER_S:
            return self._lock.wait(0.0)  # a notification that is not taken would keep the turn from ending
        until = min(time.monotonic() + left_s, self._ends_at)
        while True:
            crowded = _turns().crowded()
            look_s = CROWDED_S if crowded else OTHERS_S
            left_s = until - time.monotonic()
            if self._lock.wait(min(left_s, look_s)):
                return True
            if left_s <= look_s:
                return due is not None and due <= time.time() + 0.01
            if wakeups.stopping() or (crowded and wakeups.others_wait()):
                return False

    def _others_wait(self) -> bool:
        """Return whether other peers wait for this thread; checked once in OTHERS_S, of which each turn has at least
        one.
        """
        now = time.monotonic()
        if now < self._check_at:
            return False
        self._check_at = now + OTHERS_S
        return wakeups.others_wait()

    def _yield(self) -> bool:
        """End the turn in favour of other peers; return whether another task is to continue it. Vectors alone need none: the sweep
        wakes the peer when they are due.
        """
        self._drop_ahead()
        self._put_back_vectors()
        self._lock.put_back([*self._todo])
        if self._lock.release():
            return False
        self._lock.release(whatever=True)
        return True

    def _give_back(self) -> None:
        self._drop_ahead()
        self._put_back_vectors()
        self._lock.put_back([*self._todo])
        self._lock.release(whatever=True)

    # One request

    def _round(self) -> bool:
        """Send one request about the RPs to do; False when the turn is over."""
        built, self._ahead = self._ahead or self._next(), None
        return True if built is None else self._send(built)

    def _next(self, flying: Mapping[str, SentPart] = NOTHING_SENT) -> BuiltRequest | None:
        """Build the next request; `flying` is the content of the one in flight."""
        peer, now = self._peer.name, time.time()
        due, rides = now >= self._waiting.due_at(peer, now), self._waiting.rides(peer, now)
        lazies = LazyVectors.ALL if due else LazyVectors.WITH_OTHERS if rides else LazyVectors.NONE
        todo = [*self._todo]
        if lazies is not LazyVectors.NONE:
            todo += [rp for rp in self._lazy if rp not in self._todo]
        some, waiting = todo[: self._rps], todo[self._rps :]
        self._todo = dict.fromkeys(rp for rp in waiting if rp in self._todo)
        for rp in some:
            self._lazy.pop(rp, None)
        built, later, lazy = request_build(peer, some, flying, lazies=lazies)
        self._lazy |= dict.fromkeys(lazy)
        if self._lazy:
            self._waiting.waits(peer, now)
        else:
            self._waiting.over(peer)
        in_vain = built is None and bool(later)  # retried after a while, as if something had been sent
        self._full = not in_vain and bool(self._todo or later)
        if in_vain:
            self._request_at = time.monotonic()
        self._rps = max(RPS_MIN, len(some) - len(later)) if later else min(2 * self._rps, wire.RPS_MAX)
        for rp in later:
            self._todo.setdefault(rp)
        return built

    def _send(self, built: BuiltRequest) -> bool:
        """Send a request and process its answer; False when the turn is over."""
        request, sent = built.request, built.sent
        self._sent_runs = any(part.runs for part in request.parts)
        request.evidence = fork_detection.proofs_for(self._peer)
        self._proofs_sent = len(request.evidence) < PENDING_MAX
        documents = documents_add(self._peer.name, request)
        self._request_at = time.monotonic()
        runs_sent(self._peer, {rp: one.runs for rp, one in sent.items()})
        under_way = requests_under_way()
        under_way.asked(self._peer.name, self._names)
        try:
            with request_measured(self._peer.name, request):
                key = None if self._sent_runs else signing_key_recent()
                waiting = begin(self._peer.url, self._peer.name, EXCHANGE, wire.encode(request), CALL_S, key=key)
                try:
                    if self._full:
                        self._ahead = self._next(sent)
                finally:
                    data = waiting()
                    under_way.answered(self._peer.name)
                answer = wire.answer(data)
        except PeerError as error:
            if error.code != NO_ANSWER:
                under_way.answered(self._peer.name)
            return self._failed(error, sent)
        except wire.BadMessage as error:
            return self._failed(PeerError("invalid", f"Its answer is not understood: {error}"), sent)
        finally:
            under_way.ended(self._peer.name)
        documents_acknowledged(self._peer.name, documents)
        self._succeeded(request)
        peer_state.traffic_sent_count(
            self._peer.name, sum(len(run.events) for part in request.parts for run in part.runs)
        )
        applied = answer_apply(self._peer.name, answer, sent, built.seen)
        self._tally(applied.covered, time.monotonic() - self._request_at)
        self._note_taken(applied.took)
        self._check_ahead(sent, applied.links)
        self._todo |= dict.fromkeys(applied.todo)
        return self._paused(answer.pause_s, built) if answer.pause_s else True

    def _paused(self, pause_s: float, built: BuiltRequest) -> bool:
        """Apply the pause that the peer asks for: a short one is waited for, a longer one ends the turn. Returns
        whether the turn continues.
        """
        self._drop_ahead()
        if pause_s <= PAUSE_S_MAX:
            time.sleep(pause_s)
            return True
        pause_s = min(pause_s, RETRY_AFTER_S_MAX)
        peer_state.pause(self._peer.name, pause_s)
        rps = [*self._todo, *built.sent][:1]  # for the sweep, which then wakes the peer
        watermarks.check_again(self._peer.name, rps, time.time() + pause_s)
        self._give_back()
        return False

    def _drop_ahead(self) -> None:
        """Discard the request built ahead: its RPs are to be done anew."""
        if self._ahead is not None:
            self._todo |= dict.fromkeys(self._ahead.sent)
            self._ahead = None

    def _check_ahead(self, sent: Mapping[str, SentPart], answered: Mapping[str, Link]) -> None:
        """Remove from the request built ahead what relied on more acknowledgements of the one before than its answer
        has.
        """
        ahead, now = self._ahead, time.time()
        if ahead is None:
            return
        wrong: set[str] = set()
        for rp in sent.keys() & ahead.sent.keys():
            link, one = answered.get(rp), ahead.sent[rp]
            if link is None or not link_planning.as_assumed(link, one.before, one.last, now=now):
                wrong.add(rp)
        if wrong:
            ahead.request.parts = [part for part in ahead.request.parts if part.rp not in wrong]
            ahead.sent = {rp: one for rp, one in ahead.sent.items() if rp not in wrong}
            self._todo |= dict.fromkeys(sorted(wrong))
        if not ahead.sent:
            self._ahead = None

    def _note_taken(self, took: bool | None) -> None:
        """Record whether the peer acknowledged any of the events sent; a peer that accepts nothing is shown
        (standing.py).
        """
        if took is not None and took is not self._took:
            peer_state.taken_note(self._peer.name, took)
            self._took = took

    def _tally(self, covered: bool | None, took_s: float) -> None:
        """Count the request for the estimate of the link: whether its events were acknowledged in time, or that it was
        answered.
        """
        if covered is None:
            link_tallies.probe_note(self._peer.name, answered=True, took_s=took_s)
        else:
            in_time = covered and took_s <= IN_TIME_S
            link_tallies.delivery_note(self._peer.name, delivered=in_time, took_s=took_s)

    def _tally_failed(self, failure: Failure, sent: Mapping[str, SentPart]) -> None:
        """Count a request without an answer that can be used. One that the peer refuses or puts off is no evidence about the link."""
        if failure in (Failure.UNREACHABLE, Failure.INVALID):
            if any(one.last for one in sent.values()):
                link_tallies.delivery_note(self._peer.name, delivered=False, took_s=None)
            else:
                link_tallies.probe_note(self._peer.name, answered=False, took_s=None)

    def _succeeded(self, request: wire.ExchangeRequest) -> None:
        if self._failing:
            self._failing = False
            delivery_succeeded(peer=self._peer.name)
            peer_state.failing_set(self._peer.name, False)
            log.info("The peer %s accepts requests again.", self._peer.name)
        if (timezone.now() - self._contact_at).total_seconds() > CONTACT_S:
            partner_contacted(self._peer.name)
            self._contact_at = timezone.now()
        fork_detection.proofs_acknowledged(self._peer.name, len(request.evidence))

    def _failed(self, error: PeerError, sent: Mapping[str, SentPart]) -> bool:
        """Record the failure; return whether the turn continues, because the next attempt is near."""
        self._todo |= dict.fromkeys(sent)
        self._drop_ahead()
        asked_feeds().forget(self._peer.name)
        chance = random.random()  # noqa: S311 - not a secret
        failure = Failure(error.kind)
        self._tally_failed(failure, sent)
        row = delivery_failed(
            peer=self._peer.name,
            failure=failure,
            detail=error.detail,
            jitter=chance,
            retry_after_s=error.retry_after_s,
        )
        newly, self._failing = not self._failing, True
        peer_state.failing_set(self._peer.name, True, cut=error.code == NO_ANSWER)
        if newly:
            log.warning("Forwarding to %s fails (%s): %s", self._peer.name, failure, error.detail)
            linked = requests_under_way().linked(self._names)
            silent = {self._peer.name, *requests_under_way().doubted(), *peer_state.cut_off(linked)}
            links_failing(silent, linked)  # what they do not receive, they do not send on either
        if row is not None:
            if failure in PROBED and peer_state.probed(self._peer.name):
                return True  # there was contact while the request was in flight
            wait_s = _left_s(row, timezone.now())
            if wait_s <= SOON_S:
                time.sleep(max(0.0, wait_s))
                return True
            peer_state.hold_off(self._peer.name, wait_s)
        self._give_back()
        return False


def _left_s(delivery: DeliveryColumns, now: datetime) -> float:
    """Seconds during which publishes enqueue no forward task for a failing peer. Sweep, probes and manual retries
    bypass this.
    """
    return STOPPED_S if delivery.next_try_at is None else (delivery.next_try_at - now).total_seconds()
