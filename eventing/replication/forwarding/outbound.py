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
import math
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.decoding import msgpack_reader
from eventing.core.events import vectors
from eventing.core.events.feeds import Feed
from eventing.core.signing import Signed
from eventing.log import federated, gaps, watermarks
from eventing.log.federated_bulk import WantedRuns, runs_after_all
from eventing.log.federated_types import LogHead, StoredRun
from eventing.overlay import broadcast
from eventing.overlay import exchange as rules
from eventing.overlay.broadcast import Link, LinkPlan
from eventing.peering.models import Peer, PeerDelivery
from eventing.peering.rules.deliveries import PROBED, RETRY_AFTER_S_MAX, Failure
from eventing.peering.selectors.deliveries import delivery_get
from eventing.peering.selectors.peers import peer_get
from eventing.peering.services.deliveries import delivery_failed, delivery_succeeded
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.services.peers import CONTACT_S, peer_contacted
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import NO_ANSWER, PeerError, begin
from eventing.replication.forwarding import fork_detection, gossip, holding, wakeups
from eventing.replication.forwarding.documents_sent import documents_acknowledged, documents_pending
from eventing.replication.forwarding.holding import FeedClaim
from eventing.replication.forwarding.inbound import NOT_HERE, vector_of
from eventing.replication.forwarding.sweeping import may_try
from eventing.replication.measures import request_measured
from eventing.replication.selectors.forwarding import participations
from eventing.replication.services.replica_links import link_stopped
from eventing.replication.services.replica_statements import (
    PendingStatements,
    documents_for,
    statements_acknowledged,
    statements_pending,
)
from eventing.replication.services.sealing import low_water_mark_own, own_seal_seen, seals_next
from eventing.store import exchange_notes, forwarding_locks, traffic
from eventing.store.forwarding_locks import PeerLock

EXCHANGE = "/federation/v1/exchange"
# Short, so that a stop never waits long.
TURN_S_MAX = 20.0  # bound: seconds of a forwarding task; the next task continues
CALL_S = 10.0  # bound: seconds of a request to a peer; `unreachable`
SPACING_GROWTH = 2.0  # times the duration of the last request, if that is longer: relieves a busy machine
SPACING_S_MAX = 0.25
SPACING_S = (
    0.05  # between the beginnings of two requests that are not full: 20 a second suffice for any number of events
)
LAZY_S = 0.25  # vectors on lazy links are gathered for this time: they only help when an eager link fails
LINGER_S = 2.0  # a turn waits this long for more before it ends: waking it is cheaper than a new task
SOON_S = 2.0  # a retry due within this time is waited for in the turn
PAUSE_S_MAX = 1.0  # bound: seconds of a pause that a peer asks for and a task waits; a longer pause ends the task
OTHERS_S = 1.0  # bound: seconds of a task while other peers wait for a thread; the task is enqueued behind them
STOPPED_S = 60.0  # bound: seconds that publishes enqueue no task for a stopped delivery; the delivery is tried again
LOW_WATER_MARKS_PER_PART = 8
# bound: bytes of the RPs' statements in one request; the others are in the next request; one RP's statements always fit
STATEMENTS_BYTES_MAX = 512 * 1024
REFUSALS_MAX = (
    10  # consecutive refusals of an RP, about three minutes: the link stops, and is offered again once a minute
)
RPS_MIN = 16  # least RPs considered for a request, however few fitted into the last ones
_signed = msgpack_reader(Signed)
log = logging.getLogger(__name__)


def forward(peer: str) -> bool:
    """Forward to `peer` what it lacks, until nothing is left or TURN_S_MAX is over. Returns whether another task is
    needed.

    Idempotent, also concurrently: one caller has the lock. Raises redis.RedisError, django.db.Error.
    """
    row = peer_get(peer)
    if row is None or not row.active:
        if row is None:
            forwarding_locks.forget(peer)
        return False
    lock = wakeups.peer_lock_acquire(peer)
    if lock is None:
        return False
    try:
        return _Forwarding(row, lock).run()
    except BaseException:
        wakeups.peer_lock_abandon(lock)
        raise


@dataclass(slots=True)
class _Sent:
    """The content of one request about one RP."""

    head: LogHead
    ours: dict[str, int]
    before: Link
    last: dict[str, int] = field(default_factory=dict)
    pending: int | None = None


@dataclass(slots=True)
class _Built:
    """A request, and its content by RP."""

    request: wire.ExchangeRequest
    sent: dict[str, _Sent]


NOTHING_SENT: Mapping[str, _Sent] = {}


class _Forwarding:
    """One turn."""

    def __init__(self, peer: Peer, lock: PeerLock) -> None:
        self._peer = peer
        self._lock = lock
        self._me = config().domain
        self._contact_at = peer.heard_at or datetime.fromtimestamp(
            0, UTC
        )  # as in the peer's lease, which answers renew
        self._todo: dict[str, None] = {}  # RPs in the order of their arrival
        self._lazy: set[str] = set()
        self._request_at = self._lazy_since = 0.0
        self._took_s = 0.0  # duration of the last round
        self._full = False
        self._ahead: _Built | None = None  # the next request, built while the one before was under way
        self._rps = (
            wire.RPS_MAX
        )  # RPs in the next request: about as many as fit, so that none is sealed before it is sent
        self._failing = False
        self._took: bool | None = (
            None  # whether the peer acknowledged any of the last events sent; None: nothing was sent yet
        )
        self._check_at = 0.0  # time of the next check for waiting peers

    def run(self) -> bool:
        """Run the turn; see `forward`."""
        began = time.monotonic()
        self._check_at = began + OTHERS_S
        if not self._may_try():
            self._lock.release(whatever=True)
            return False
        while True:
            if time.monotonic() - began > TURN_S_MAX or wakeups.stopping() or not self._lock.renew():
                self._give_back()
                return True
            if self._others_wait():
                return self._yield()
            self._todo |= dict.fromkeys(self._lock.take(wakeups.RPS_MAX))
            self._todo |= dict.fromkeys(watermarks.links_due(self._peer.name, time.time(), wakeups.RPS_MAX))
            if self._ahead is not None or self._todo or self._lazy:
                pause_s = self._pause_s()
                if pause_s > 0:
                    time.sleep(pause_s)
                    continue
                round_at = time.monotonic()
                if not self._round():
                    return False
                self._took_s = time.monotonic() - round_at
            elif gossip.proofs_due(self._peer):
                if not self._send(_Built(wire.ExchangeRequest(wire.VERSION), {})):
                    return False
            elif not self._wait() and self._lock.release():
                return False

    def _may_try(self) -> bool:
        """Return whether delivery works, or an attempt is due."""
        delivery = delivery_get(self._peer.name)
        self._failing = delivery is not None and delivery.failures > 0
        if delivery is None or not self._failing:
            return True
        now = timezone.now()
        if may_try(delivery, self._peer, now, forwarding_locks.probed(self._peer.name)):
            return True
        forwarding_locks.hold_off(self._peer.name, _left_s(delivery, now))
        return False

    def _pause_s(self) -> float:
        """Return how long to gather before the next request, seconds."""
        now = time.monotonic()
        if self._ahead is not None:
            return 0.0
        if self._todo:
            spacing_s = max(SPACING_S, min(SPACING_GROWTH * self._took_s, SPACING_S_MAX))
            return 0.0 if self._full else max(0.0, self._request_at + spacing_s - now)
        return max(0.0, self._lazy_since + LAZY_S - now)

    def _wait(self) -> bool:
        """Wait for a wake-up or an expired timer of a link; return whether there may be something to send."""
        due = watermarks.next_due(self._peer.name)
        left_s = LINGER_S if due is None else min(LINGER_S, max(0.0, due - time.time()))
        until = time.monotonic() + left_s
        while True:
            left_s = until - time.monotonic()
            if self._lock.wait(min(left_s, OTHERS_S)):
                return True
            if left_s <= OTHERS_S:
                return due is not None and due <= time.time() + 0.01
            if self._others_wait():
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
        """End the turn in favour of other peers; return whether another task is to continue it."""
        self._drop_ahead()
        self._lock.put_back([*self._todo, *self._lazy])
        if self._lock.release():
            return False
        self._lock.release(whatever=True)
        return True

    def _give_back(self) -> None:
        self._drop_ahead()
        self._lock.put_back([*self._todo, *self._lazy])
        self._lock.release(whatever=True)

    # One request

    def _round(self) -> bool:
        """Send one request about the RPs to do; False when the turn is over."""
        built, self._ahead = self._ahead or self._next(), None
        return True if built is None else self._send(built)

    def _next(self, flying: Mapping[str, _Sent] = NOTHING_SENT) -> _Built | None:
        """Build the next request; `flying` is the content of the one in flight."""
        todo = [*self._todo, *(rp for rp in self._lazy if rp not in self._todo)]
        some, waiting = todo[: self._rps], todo[self._rps :]
        eager = bool(self._todo)
        lazy_due = time.monotonic() >= self._lazy_since + LAZY_S
        self._todo = dict.fromkeys(rp for rp in waiting if rp in self._todo)
        self._lazy.intersection_update(waiting)
        request, sent, later = self._request(some, flying, with_lazy=lazy_due or not eager)
        in_vain = request is None and bool(later)  # retried after a while, as if something had been sent
        self._full = not in_vain and bool(self._todo or later)
        if in_vain:
            self._request_at = time.monotonic()
        self._rps = max(RPS_MIN, len(some) - len(later)) if later else min(2 * self._rps, wire.RPS_MAX)
        for rp in later:
            self._todo.setdefault(rp)
        return None if request is None else _Built(request, sent)

    def _send(self, built: _Built) -> bool:
        """Send a request and process its answer; False when the turn is over."""
        request, sent = built.request, built.sent
        request.evidence = gossip.proofs_for(self._peer)
        documents = self._add_documents(request)
        self._request_at = time.monotonic()
        try:
            with request_measured(self._peer.name, request):
                waiting = begin(self._peer.url, self._peer.name, EXCHANGE, wire.encode(request), CALL_S)
                try:
                    if self._full:
                        self._ahead = self._next(sent)
                finally:
                    data = waiting()
                answer = wire.answer(data)
        except PeerError as error:
            return self._failed(error, sent)
        except wire.BadMessage as error:
            return self._failed(PeerError("invalid", f"Its answer is not understood: {error}"), sent)
        documents_acknowledged(self._peer.name, documents)
        self._succeeded(request)
        traffic.count_sent(self._peer.name, sum(len(run.events) for part in request.parts for run in part.runs))
        self._answered(answer, sent)
        return self._paused(answer.pause_s, built) if answer.pause_s else True

    def _paused(self, pause_s: float, built: _Built) -> bool:
        """Apply the pause that the peer asks for: a short one is waited for, a longer one ends the turn. Returns
        whether the turn goes on.
        """
        self._drop_ahead()
        if pause_s <= PAUSE_S_MAX:
            time.sleep(pause_s)
            return True
        pause_s = min(pause_s, RETRY_AFTER_S_MAX)
        forwarding_locks.pause(self._peer.name, pause_s)
        rps = [*self._todo, *built.sent][:1]  # for the sweep, which then wakes the peer
        watermarks.check_again(self._peer.name, rps, time.time() + pause_s)
        self._give_back()
        return False

    def _add_documents(self, request: wire.ExchangeRequest) -> dict[str, tuple[int, Signed]]:
        """Add the documents of the runs' origins that the peer may not have; return them."""
        origins = {run.path[0] for part in request.parts for run in part.runs}
        pending = documents_pending(self._peer.name, sorted(origins)) if origins else {}
        more = [statement for _, statement in pending.values() if statement not in request.domains]
        request.domains = [*more, *request.domains][: wire.STATEMENTS_MAX]
        return pending

    def _drop_ahead(self) -> None:
        """Discard the request built ahead: its RPs are to be done anew."""
        if self._ahead is not None:
            self._todo |= dict.fromkeys(self._ahead.sent)
            self._ahead = None

    def _check_ahead(self, sent: Mapping[str, _Sent], answered: Mapping[str, Link]) -> None:
        """Remove from the request built ahead what relied on more acknowledgements of the one before than its answer
        has.
        """
        ahead, now = self._ahead, time.time()
        if ahead is None:
            return
        wrong: set[str] = set()
        for rp in sent.keys() & ahead.sent.keys():
            link, one = answered.get(rp), ahead.sent[rp]
            if link is None or not broadcast.as_assumed(link, one.before, one.last, now=now):
                wrong.add(rp)
        if wrong:
            ahead.request.parts = [part for part in ahead.request.parts if part.rp not in wrong]
            ahead.sent = {rp: one for rp, one in ahead.sent.items() if rp not in wrong}
            self._todo |= dict.fromkeys(sorted(wrong))
        if not ahead.sent:
            self._ahead = None

    def _request(
        self, rps: Sequence[str], flying: Mapping[str, _Sent], *, with_lazy: bool
    ) -> tuple[wire.ExchangeRequest | None, dict[str, _Sent], list[str]]:
        """Return the request about these RPs, its content by RP, and the RPs that did not fit."""
        peer = self._peer.name
        who = participations(rps)
        shared = [rp for rp in rps if peer in who[rp].links and (rp not in flying or flying[rp].before.met)]
        watermarks.links_forget(peer, [rp for rp in rps if peer not in who[rp].links])
        if not shared:
            return None, {}, []
        met = [rp for rp, link in watermarks.links_read(peer, shared).items() if link.met]
        holding.check(peer, {rp: who[rp].links for rp in met})
        sealed = seals_next(met)
        others = [rp for rp in shared if rp not in sealed.heads]
        heads = {**sealed.heads, **dict(zip(others, federated.heads(others), strict=True))}
        before = watermarks.links_read(peer, shared)  # after the log: overlay/broadcast.py states why
        sent = {
            rp: _Sent(head, vector_of(self._me, head), before[rp]) for rp, head in heads.items() if head is not None
        }
        self._check_timers(sent)
        for rp in sent.keys() & flying.keys():
            sent[rp].before = broadcast.assumed(sent[rp].before, flying[rp].before, flying[rp].last)
        now = time.time()
        open_ = [rp for rp, one in sent.items() if now >= one.before.shut_until]
        pending, crowded = _fitting(
            statements_pending(peer, [rp for rp in open_ if rp not in flying or flying[rp].pending is None])
        )
        wanted: list[WantedRuns] = []
        parts: dict[str, wire.RpPart] = {}
        for rp, one in list(sent.items()):
            plan = broadcast.plan(one.before, one.ours, now=now)
            if plan is LinkPlan.NOTHING and rp not in pending:
                del sent[rp]
                continue
            can_wait = not broadcast.asks(one.before, now=now) and rp not in pending
            if plan is LinkPlan.VECTOR and can_wait and (rp in flying or not with_lazy):
                self._lazy_later(rp)
                del sent[rp]
                continue
            own = Feed(self._me, one.head.epoch).key
            parts[rp] = wire.RpPart(rp, one.ours, own=own)
            if one.before.grafting:
                parts[rp].graft = sorted(broadcast.grafts(one.before, one.ours))
            if plan is LinkPlan.RUNS:
                wanted.append(WantedRuns(rp, broadcast.wanting(one.before, now=now), own))
        later = list(dict.fromkeys([*self._add_runs(parts, wanted, sent, sealed.runs), *sealed.more, *crowded]))
        if not parts:
            return None, {}, later
        request = wire.ExchangeRequest(wire.VERSION, [])
        if pending:
            self._add_statements(request, parts, sent, pending)
        request.parts = list(parts.values())
        fork_detection.heads_add(request.parts, {rp: one.head for rp, one in sent.items()})
        return request, sent, later

    def _check_timers(self, sent: dict[str, _Sent]) -> None:
        now = time.time()
        futile: list[str] = []
        timed = [rp for rp, one in sent.items() if one.before.ask_at is not None and one.before.ask_at <= now]
        gone = {rp: gaps.gone(rp) for rp in timed if sent[rp].before.asked + 1 >= broadcast.GRAFTS_FUTILE}

        def change(rp: str, link: Link) -> Link:
            chance = random.random()  # noqa: S311 - not a secret
            due = broadcast.due(link, ours=sent[rp].ours, now=now, jitter=chance, gone=gone.get(rp))
            if due.futile:
                futile.append(rp)
            return due.link

        for rp, link in watermarks.links_change(self._peer.name, timed, change).items():
            sent[rp].before = link
        for rp in dict.fromkeys(futile) if futile and not exchange_notes.supplied(self._peer.name) else ():
            detail = "It claims to hold events that it does not send, after repeated requests."
            misbehaviour_note("false-vector", carrier=self._peer.name, rp=rp, detail=detail)

    def _lazy_later(self, rp: str) -> None:
        if not self._lazy:
            self._lazy_since = time.monotonic()
        self._lazy.add(rp)

    def _add_runs(
        self,
        parts: dict[str, wire.RpPart],
        wanted: Sequence[WantedRuns],
        sent: dict[str, _Sent],
        fresh: Mapping[str, StoredRun],
    ) -> list[str]:
        """Put the runs into their parts; return the RPs that have more, or did not fit at all. What cannot be sent is
        deferred: an immediate retry would find the same.
        """
        found = _found(wanted, sent, fresh)
        nothing = not any(found)
        later: list[str] = []
        unsendable: dict[str, dict[str, int]] = {}
        for one, runs in zip(wanted, found, strict=True):
            part, about = parts[one.rp], sent[one.rp]
            reached = dict(one.vector)
            stuck = {feed: last for feed, (_, last) in vectors.lacking(reached, about.ours).items()} if nothing else {}
            for run in runs:
                if not broadcast.within(about.ours, run.feed_key, run.last):
                    continue
                path = rules.onward(run.path, self._me)
                if path is None or not run.events:
                    stuck[run.feed_key] = run.last
                    continue
                seal = _signed(run.seal)
                part.runs.append(wire.SealedRun(seal, run.events, run.leaves, path))
                about.last[run.feed_key] = reached[run.feed_key] = run.last
            self._add_low_water_marks(part, one, runs, about)
            if not part.runs and not part.graft and not part.low_water_marks and about.before.met:
                del parts[one.rp]
                del sent[one.rp]
            if stuck:
                unsendable[one.rp] = stuck
            if not vectors.covers(vectors.merged(reached, stuck), about.ours):
                later.append(one.rp)
        if unsendable:
            now = time.time()
            watermarks.links_change(
                self._peer.name, unsendable, lambda rp, link: broadcast.unsendable(link, unsendable[rp], now=now)
            )
        return later

    def _add_low_water_marks(
        self, part: wire.RpPart, wanted: WantedRuns, runs: Sequence[StoredRun], about: _Sent
    ) -> None:
        """State, for a run that begins beyond what the peer holds, that its origin does not keep the events between."""
        behind: set[str] = set()
        reached = vectors.merged(about.before.theirs, about.before.presumed)  # `wanted` is beyond what cannot be sent
        for run in runs:
            if rules.gap_before(reached.get(run.feed_key, 0), run.first, len(run.leaves) // 32, 0) is not None:
                behind.add(run.feed_key)
            reached[run.feed_key] = run.last
        if wanted.own_key in behind:
            low_water_mark = low_water_mark_own(wanted.rp)
            if low_water_mark is not None:
                part.low_water_marks.append(low_water_mark)
        if behind - {wanted.own_key}:
            kept = gaps.low_water_marks_of(wanted.rp)
            part.low_water_marks += [kept[feed][1] for feed in sorted(behind) if feed in kept][
                :LOW_WATER_MARKS_PER_PART
            ]

    def _add_statements(
        self,
        request: wire.ExchangeRequest,
        parts: dict[str, wire.RpPart],
        sent: dict[str, _Sent],
        pending: Mapping[str, PendingStatements],
    ) -> None:
        acknowledged: list[str] = []
        for rp, one in pending.items():
            if rp in parts and one.statements:
                parts[rp].statements = one.statements
                sent[rp].pending = one.version
                acknowledged.append(rp)
        request.domains = documents_for(acknowledged, self._peer.name)

    # Its answer

    def _answered(self, answer: wire.ExchangeAnswer, sent: Mapping[str, _Sent]) -> None:
        """Apply the answer: its vectors become the watermarks."""
        stated = {part.rp: part for part in answer.parts if part.rp in sent}
        unbelieved, asked = self._check_claims(stated, sent)
        now = time.time()
        mistaken: dict[str, frozenset[str]] = {}

        def change(rp: str, link: Link) -> Link:
            part, one = stated[rp], sent[rp]
            if part.error:
                return broadcast.on_sent(one.before, link, {}, now=now, refused=True)
            outcome = broadcast.on_message(
                link,
                holding.believed(part.have, unbelieved.get(rp)),
                ours=one.ours,
                now=now,
                jitter=random.random(),  # noqa: S311 - chance, not a secret
                graft=part.graft,
                prune=part.prune,
                answers=True,
            )
            mistaken[rp] = outcome.mistaken
            acknowledged = broadcast.on_sent(one.before, outcome.link, one.last, now=now)
            claim = asked.get(rp)
            return (
                acknowledged
                if claim is None
                else broadcast.asked_at_once(acknowledged, claim.feed_key, claim.last, now=now)
            )

        self._note_taken(stated, sent)
        changed = watermarks.links_change(self._peer.name, list(stated), change)
        for rp, carriers in mistaken.items():
            for carrier in sorted(carriers):
                watermarks.links_change(carrier, [rp], lambda _, link: broadcast.paths_doubted(link, now=now))
        self._check_ahead(sent, changed)
        for rp, link in changed.items():
            if stated[rp].error == NOT_HERE and link.refusals >= REFUSALS_MAX:
                link_stopped(
                    rp=rp, peer=self._peer.name, detail="It states that it has no replica of this rendezvous point."
                )
            if (link.met and not sent[rp].before.met) or broadcast.plan(link, sent[rp].ours, now=now) is LinkPlan.RUNS:
                self._todo.setdefault(rp)
        self._compare_heads(stated, sent)
        acknowledged = {
            rp: one.pending
            for rp, one in sent.items()
            if one.pending is not None and rp in stated and not stated[rp].error
        }
        if acknowledged:
            statements_acknowledged(self._peer.name, acknowledged)

    def _note_taken(self, stated: Mapping[str, wire.RpAnswer], sent: Mapping[str, _Sent]) -> None:
        """Record whether the peer acknowledged any of the events sent; a peer that accepts nothing is shown
        (standing.py).
        """
        runs = {rp: one for rp, one in sent.items() if one.last}
        if not runs:
            return
        took = any(
            stated[rp].have.get(feed, 0) > one.before.theirs.get(feed, 0)
            for rp, one in runs.items()
            if rp in stated
            for feed in one.last
        )
        if took is not self._took:
            exchange_notes.taken_note(self._peer.name, took)
            self._took = took

    def _check_claims(
        self, stated: Mapping[str, wire.RpAnswer], sent: Mapping[str, _Sent]
    ) -> tuple[dict[str, FeedClaim], dict[str, FeedClaim]]:
        """Check an answer's claims of the own feed beyond its seals (holding.py).

        Returns the claims that are not credible, and those whose runs are to be requested, because the peer's software
        sends no seals.
        """
        have = {rp: part.have for rp, part in stated.items()}
        claims = holding.claims_of(have, {rp: sent[rp].head for rp in stated})
        if not claims:
            return {}, {}
        # By the present heads: more may have been sealed since, and have reached the peer through others.
        claims = _claims_now(claims, have)
        known = {rp for rp in claims if stated[rp].newest is not None}
        renewed = [rp for rp in sorted(known) for seal in stated[rp].newest or () if own_seal_seen(rp, seal)]
        if renewed:
            claims = _claims_now(claims, have)
        credible = holding.credible({rp: claim for rp, claim in claims.items() if rp not in known})
        unbelieved = {rp: claim for rp, claim in claims.items() if rp not in credible}
        for rp in unbelieved:
            detail = "It claims more of this domain's feed than is sealed, without the seal."
            misbehaviour_note("false-vector", carrier=self._peer.name, rp=rp, detail=detail)
        holding.disproved(self._peer.name, unbelieved)
        asked = {rp: claim for rp, claim in credible.items() if not sent[rp].before.met}
        holding.claimed(self._peer.name, asked)
        return unbelieved, asked

    def _compare_heads(self, stated: Mapping[str, wire.RpAnswer], sent: Mapping[str, _Sent]) -> None:
        """Compare seals in the answer with the own ones; if only its heads contradict events that arrived meanwhile, ask
        the peer again.
        """
        for rp, part in stated.items():
            if part.seals:
                fork_detection.seals_met(rp, sent[rp].ours, part.seals, carrier=self._peer.name)
        again = fork_detection.contradicted(stated, {rp: sent[rp].ours for rp in stated})
        watermarks.links_change(self._peer.name, again, lambda _, link: broadcast.doubted(link, math.inf))
        self._todo |= dict.fromkeys(again)

    def _succeeded(self, request: wire.ExchangeRequest) -> None:
        if self._failing:
            self._failing = False
            delivery_succeeded(peer=self._peer.name)
            exchange_notes.failing_set(self._peer.name, False)
            log.info("The peer %s accepts requests again.", self._peer.name)
        if (timezone.now() - self._contact_at).total_seconds() > CONTACT_S:
            peer_contacted(self._peer.name)
            self._contact_at = timezone.now()
        gossip.proofs_acknowledged(self._peer.name, len(request.evidence))

    def _failed(self, error: PeerError, sent: Mapping[str, _Sent]) -> bool:
        """Record the failure; return whether the turn continues, because the next attempt is near."""
        self._todo |= dict.fromkeys(sent)
        self._drop_ahead()
        chance = random.random()  # noqa: S311 - not a secret
        failure = Failure(error.kind)
        row = delivery_failed(
            peer=self._peer.name,
            failure=failure,
            detail=error.detail,
            jitter=chance,
            retry_after_s=error.retry_after_s,
        )
        if not self._failing:
            log.warning("Forwarding to %s fails (%s): %s", self._peer.name, failure, error.detail)
        self._failing = True
        exchange_notes.failing_set(self._peer.name, True, cut=error.code == NO_ANSWER)
        if row is not None:
            if failure in PROBED and forwarding_locks.probed(self._peer.name):
                return True  # there was contact while the request was in flight
            wait_s = _left_s(row, timezone.now())
            if wait_s <= SOON_S:
                time.sleep(max(0.0, wait_s))
                return True
            forwarding_locks.hold_off(self._peer.name, wait_s)
        self._give_back()
        return False


def _fitting(pending: Mapping[str, PendingStatements]) -> tuple[dict[str, PendingStatements], list[str]]:
    """Return the statements for the next request, of those that a peer has not acknowledged, and the RPs whose
    statements are for another.
    """
    fitting: dict[str, PendingStatements] = {}
    crowded: list[str] = []
    size = 0
    for rp, one in pending.items():
        size += sum(len(statement.payload) + len(statement.signature) for statement in one.statements)
        if size > STATEMENTS_BYTES_MAX and fitting:
            crowded.append(rp)
        else:
            fitting[rp] = one
    return fitting, crowded


def _found(
    wanted: Sequence[WantedRuns], sent: Mapping[str, _Sent], fresh: Mapping[str, StoredRun]
) -> list[Sequence[StoredRun]]:
    """Return the missing runs that fit one request; runs sealed just now are not read again if nothing else is missing.
    They use no more than their share of the request, so that others' runs are not delayed.
    """
    events_left, bytes_left = wire.REQUEST_EVENTS_MAX, wire.REQUEST_BYTES_MAX
    ready: dict[str, Sequence[StoredRun]] = {}
    at_hand = {one.rp: fresh[one.rp] for one in wanted if one.rp in fresh and _is_all(fresh[one.rp], one, sent)}
    share = len(at_hand) / max(1, len(wanted))
    events_max, bytes_max = share * events_left, share * bytes_left
    for rp, run in at_hand.items():
        events_max, bytes_max = events_max - len(run.events), bytes_max - sum(map(len, run.events))
        if events_max < 0 or bytes_max < 0:
            break
        ready[rp] = [run]
        events_left, bytes_left = events_left - len(run.events), bytes_left - sum(map(len, run.events))
    others = [one for one in wanted if one.rp not in ready]
    read = dict(zip([one.rp for one in others], runs_after_all(others, events_left, bytes_left), strict=True))
    runs = [run for some in read.values() for run in some]
    size = sum(len(run.leaves) + sum(map(len, run.events)) for run in runs)
    if sum(len(run.events) for run in runs) > events_left or size > bytes_left:
        ready = {}  # a run that is larger than what is left is sent alone
    return [ready.get(one.rp) or read.get(one.rp) or () for one in wanted]


def _claims_now(rps: Iterable[str], have: Mapping[str, Mapping[str, int]]) -> dict[str, FeedClaim]:
    """Return the claims in these vectors of the own feeds beyond their present seals."""
    some = list(rps)
    heads = dict(zip(some, federated.heads(some), strict=True))
    return holding.claims_of({rp: have[rp] for rp in some}, heads)


def _left_s(delivery: PeerDelivery, now: datetime) -> float:
    """Seconds during which publishes enqueue no forward task for a failing peer. Sweep, probes and manual retries
    bypass this.
    """
    return STOPPED_S if delivery.next_try_at is None else (delivery.next_try_at - now).total_seconds()


def _is_all(run: StoredRun, wanted: WantedRuns, sent: Mapping[str, _Sent]) -> bool:
    """Return whether the peer lacks this run of the own feed, and nothing else that is here."""
    follows = run.feed_key == wanted.own_key and run.first == wanted.vector.get(run.feed_key, 0) + 1
    return follows and vectors.covers({**wanted.vector, run.feed_key: run.last}, sent[wanted.rp].ours)
