"""Requests to a peer: the runs that it lacks, vectors, and the statements and documents that go with them.

A request about many RPs is built from a few round trips for all of them: seal what is unsealed, read the links, the
missing runs and the statements. It is bounded in events, bytes and RPs; what does not fit is for the next one.

Documents: the key that signed a run must be known before the run is validated. A domain that rotates its keys notifies
its own peers; a carrier may bring a run signed with the new key to other domains sooner. So a carrier of runs sends the
documents of their origins first, each once for each serial. What was sent is remembered per process: after a start it
is sent once more, which costs a few hundred bytes.
"""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from threading import Lock

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.decoding import msgpack_reader
from eventing.core.events import vectors
from eventing.core.events.feeds import Feed
from eventing.core.signing import Signed
from eventing.log import federated, gaps, watermarks
from eventing.log.federated import LogHead, StoredRun
from eventing.log.federated_bulk import WantedRuns, runs_after_all
from eventing.log.watermarks import SeenLinks
from eventing.overlay import broadcast, graft_timer, link_planning
from eventing.overlay import exchange as rules
from eventing.overlay.link_planning import LinkPlan
from eventing.overlay.link_state import Link
from eventing.overlay.scores import Deed
from eventing.peering.rules.domain_documents import read
from eventing.peering.selectors.domain_documents import domain_statement
from eventing.peering.selectors.recent_keys import Recent
from eventing.peering.services.domain_documents import own_document
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import fork_detection, holding
from eventing.replication.forwarding.asked_feeds import asked_feeds
from eventing.replication.forwarding.inbound import vector_of
from eventing.replication.forwarding.repeats import wanted_allowed
from eventing.replication.rules.repeats import SentRun
from eventing.replication.selectors.forwarding import participations
from eventing.replication.services.conduct import conduct_note
from eventing.replication.services.replica_statements import PendingStatements, documents_for, statements_pending
from eventing.replication.services.sealing import low_water_mark_own, seals_next
from eventing.store import peer_state

LOW_WATER_MARKS_PER_PART = 8
# bound: bytes of the RPs' statements in one request; the others are in the next request; one RP's statements always fit
STATEMENTS_BYTES_MAX = 512 * 1024
# Half a minute to a minute: a peer that catches up sends something of each RP in that time, and what it sends of others pays for none.
GRAFTS_EXCUSED = 6  # bound: grafts without a result while the peer sends events of other RPs; `false-vector`
REMEMBERED_MAX = 20_000  # pairs of peer and origin, the oldest forgotten first; ~200 bytes each
_signed = msgpack_reader(Signed)


class LazyVectors(Enum):
    """Vectors on lazy links in a request: none, those that go with what is sent anyway, or all."""

    NONE = 0
    WITH_OTHERS = 1
    ALL = 2


@dataclass(slots=True)
class SentPart:
    """The content of one request about one RP.

    Attributes:
        head: the log when it was built.
        ours: the own vector in it.
        before: the link when it was built.
        last: by feed key, the last sequence of the runs in it.
        pending: version of the statements in it; None for none.
        awaits_term: whether the statements follow once the peer has stated that it knows of terms of the home.
        runs: the runs in it.
    """

    head: LogHead
    ours: dict[str, int]
    before: Link
    last: dict[str, int] = field(default_factory=dict)
    pending: int | None = None
    awaits_term: bool = False
    runs: list[SentRun] = field(default_factory=list)


@dataclass(slots=True)
class BuiltRequest:
    """A request, and its content by RP.

    Attributes:
        seen: the links as they were read for it, unless another request was in flight, whose answer changes them.
    """

    request: wire.ExchangeRequest
    sent: dict[str, SentPart]
    seen: SeenLinks = field(default_factory=dict)


NOTHING_SENT: Mapping[str, SentPart] = {}


def request_build(
    peer: str, rps: Sequence[str], flying: Mapping[str, SentPart], *, lazies: LazyVectors
) -> tuple[BuiltRequest | None, list[str], list[str]]:
    """Return the request about these RPs, the RPs that did not fit, and those whose vectors can wait.

    Args:
        flying: the content of the request in flight, on the assumption that it is acknowledged whole.
        lazies: which of the vectors that can wait are sent now.
    """
    me = config().domain
    who = participations(rps)
    shared = [rp for rp in rps if peer in who[rp].links and (rp not in flying or flying[rp].before.met)]
    watermarks.links_forget(peer, [rp for rp in rps if peer not in who[rp].links])
    if not shared:
        return None, [], []
    met = [rp for rp, link in watermarks.links_read(peer, shared).items() if link.met]
    holding.check(peer, {rp: who[rp].links for rp in met})
    sealed = seals_next(met)
    others = [rp for rp in shared if rp not in sealed.heads]
    heads = {**sealed.heads, **dict(zip(others, federated.heads(others), strict=True))}
    seen: SeenLinks = {}
    before = watermarks.links_read(peer, shared, seen)  # after the log: overlay/broadcast.py states why
    sent = {rp: SentPart(head, vector_of(me, head), before[rp]) for rp, head in heads.items() if head is not None}
    _check_timers(peer, sent, seen)
    for rp in sent.keys() & flying.keys():
        sent[rp].before = link_planning.assumed(sent[rp].before, flying[rp].before, flying[rp].last)
    now = time.time()
    open_ = [rp for rp, one in sent.items() if now >= one.before.refusals.shut_until]
    pending, crowded = _fitting(
        statements_pending(peer, [rp for rp in open_ if rp not in flying or flying[rp].pending is None])
    )
    wanted: list[WantedRuns] = []
    parts: dict[str, wire.RpPart] = {}
    lazy: dict[str, SentPart] = {}
    for rp, one in list(sent.items()):
        plan = link_planning.plan(one.before, one.ours, now=now)
        if plan is LinkPlan.NOTHING and rp not in pending:
            del sent[rp]
            continue
        can_wait = not link_planning.asks(one.before, now=now) and rp not in pending
        if plan is LinkPlan.VECTOR and can_wait and (rp in flying or lazies is not LazyVectors.ALL):
            lazy[rp] = sent.pop(rp)
            continue
        own = Feed(me, one.head.epoch).key
        parts[rp] = wire.RpPart(rp, one.ours, own=own)
        if one.before.timer.grafting:
            parts[rp].graft = sorted(link_planning.grafts(one.before, one.ours))
        if plan is LinkPlan.RUNS:
            wanted.append(WantedRuns(rp, link_planning.wanting(one.before, now=now), own))
    later = list(dict.fromkeys([*_add_runs(peer, parts, wanted, sent, sealed.runs), *sealed.more, *crowded]))
    if not parts:
        return None, later, list(lazy)
    if lazies is LazyVectors.WITH_OTHERS:
        for rp in lazy.keys() - flying.keys():
            one = sent[rp] = lazy.pop(rp)
            parts[rp] = wire.RpPart(rp, one.ours, own=Feed(me, one.head.epoch).key)
    request = wire.ExchangeRequest(wire.VERSION, [])
    if pending:
        _add_statements(peer, request, parts, sent, pending)
    request.parts = list(parts.values())
    fork_detection.heads_add(request.parts, {rp: one.head for rp, one in sent.items()})
    return BuiltRequest(request, sent, {} if flying else seen), later, list(lazy)


def _check_timers(peer: str, sent: dict[str, SentPart], seen: SeenLinks) -> None:
    now, asked = time.time(), asked_feeds()
    futile: dict[str, int] = {}
    withheld: dict[str, Deed | None] = {}
    timed = [rp for rp, one in sent.items() if one.before.timer.ask_at is not None and one.before.timer.ask_at <= now]
    gone = {rp: gaps.gone(rp) for rp in timed if sent[rp].before.timer.asked + 1 >= graft_timer.GRAFTS_FUTILE}

    def change(rp: str, link: Link) -> Link:
        chance = random.random()  # noqa: S311 - not a secret
        elsewhere = asked.elsewhere(rp, peer, link.timer.awaited, now)
        due = broadcast.due(link, ours=sent[rp].ours, now=now, jitter=chance, gone=gone.get(rp), elsewhere=elsewhere)
        if due.ask:
            asked.note(rp, peer, link_planning.grafts(due.link, sent[rp].ours), now + due.link.timer.patience_s)
            withheld[rp] = _withheld(link, due.link, sent[rp].ours)
        if due.futile:
            futile[rp] = due.link.timer.asked
        return due.link

    for rp, link in watermarks.links_change(peer, timed, change, seen).items():
        sent[rp].before = link
    for rp, deed in withheld.items():
        if deed is not None:
            conduct_note(deed, peer=peer, rp=rp)
    supplies = bool(futile) and peer_state.supplied(peer)
    for rp in [rp for rp, times in futile.items() if times >= GRAFTS_EXCUSED or not supplies]:
        detail = "It claims to hold events that it does not send, after repeated requests."
        misbehaviour_note("false-vector", carrier=peer, rp=rp, detail=detail)


def _withheld(before: Link, after: Link, ours: Mapping[str, int]) -> Deed | None:
    """Return what a peer did that is asked for runs now: it did not send them though asked before, or though its link is eager; None:
    nothing that it is to be blamed for.
    """
    if after.timer.asked > 1:
        return Deed.BROKEN_PROMISE
    lacking = graft_timer.ahead(before.timer.awaited, ours).keys()
    return Deed.SILENT if lacking - before.tree.pruned else None


def _add_runs(
    peer: str,
    parts: dict[str, wire.RpPart],
    wanted: Sequence[WantedRuns],
    sent: dict[str, SentPart],
    fresh: Mapping[str, StoredRun],
) -> list[str]:
    """Put the runs into their parts; return the RPs that have more, or did not fit at all. What cannot be sent is
    deferred: an immediate retry would find the same.
    """
    wanted = wanted_allowed(peer, wanted)
    found = _found(wanted, sent, fresh)
    nothing = not any(found)
    later: list[str] = []
    unsendable: dict[str, dict[str, int]] = {}
    for one, runs in zip(wanted, found, strict=True):
        part, about = parts[one.rp], sent[one.rp]
        reached = dict(one.vector)
        stuck = {feed: last for feed, (_, last) in vectors.lacking(reached, about.ours).items()} if nothing else {}
        for run in runs:
            if not link_planning.within(about.ours, run.feed_key, run.last):
                continue
            path = rules.onward(run.path, config().domain)
            if path is None or not run.events:
                stuck[run.feed_key] = run.last
                continue
            seal = _signed(run.seal)
            part.runs.append(wire.SealedRun(seal, run.events, run.leaves, path))
            about.last[run.feed_key] = reached[run.feed_key] = run.last
            size = len(run.leaves) + sum(map(len, run.events))
            about.runs.append(SentRun(run.feed_key, run.first, run.last, size))
        reopening = link_planning.reopening(about.before, about.last)
        if reopening:
            part.graft = sorted(reopening.union(part.graft))
        _add_low_water_marks(part, one, runs, about)
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
            peer, unsendable, lambda rp, link: link_planning.unsendable(link, unsendable[rp], now=now)
        )
    return later


def _add_low_water_marks(part: wire.RpPart, wanted: WantedRuns, runs: Sequence[StoredRun], about: SentPart) -> None:
    """State, for a run that begins beyond what the peer holds, that its origin does not keep the events between."""
    behind: set[str] = set()
    reached = vectors.merged(about.before.theirs, about.before.presumed.upto)  # `wanted` is beyond what cannot be sent
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
        part.low_water_marks += [kept[feed][1] for feed in sorted(behind) if feed in kept][:LOW_WATER_MARKS_PER_PART]


def _add_statements(
    peer: str,
    request: wire.ExchangeRequest,
    parts: dict[str, wire.RpPart],
    sent: dict[str, SentPart],
    pending: Mapping[str, PendingStatements],
) -> None:
    acknowledged: list[str] = []
    for rp, one in pending.items():
        if rp in parts and (one.statements or one.homes):
            parts[rp].statements, parts[rp].properties, parts[rp].homes = one.statements, one.properties, one.homes
            sent[rp].pending, sent[rp].awaits_term = one.version, one.awaits_term
            acknowledged.append(rp)
    request.domains = documents_for(acknowledged, peer)


def _fitting(pending: Mapping[str, PendingStatements]) -> tuple[dict[str, PendingStatements], list[str]]:
    """Return the statements for the next request, of those that a peer has not acknowledged, and the RPs whose
    statements are for another.
    """
    fitting: dict[str, PendingStatements] = {}
    crowded: list[str] = []
    size = 0
    for rp, one in pending.items():
        size += sum(len(statement.payload) + len(statement.signature) for statement in one.statements) + len(one.homes)
        if size > STATEMENTS_BYTES_MAX and fitting:
            crowded.append(rp)
        else:
            fitting[rp] = one
    return fitting, crowded


def _found(
    wanted: Sequence[WantedRuns], sent: Mapping[str, SentPart], fresh: Mapping[str, StoredRun]
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


def _is_all(run: StoredRun, wanted: WantedRuns, sent: Mapping[str, SentPart]) -> bool:
    """Return whether the peer lacks this run of the own feed, and nothing else that is here."""
    follows = run.feed_key == wanted.own_key and run.first == wanted.vector.get(run.feed_key, 0) + 1
    return follows and vectors.covers({**wanted.vector, run.feed_key: run.last}, sent[wanted.rp].ours)


def _held(name: str) -> tuple[int, Signed] | None:
    statement = own_document() if name == config().domain else domain_statement(name)
    return None if statement is None else (read(statement).serial, statement)


class _SentDocuments:
    """The documents as read last, and the serials sent to peers, held under `lock`."""

    def __init__(self) -> None:
        self.recent: Recent[tuple[int, Signed] | None] = Recent(_held)
        self.lock = Lock()
        self.serials: OrderedDict[tuple[str, str], int] = OrderedDict()


documents_sent = per_process(_SentDocuments)


def documents_pending(peer: str, origins: Sequence[str]) -> dict[str, tuple[int, Signed]]:
    """Return those origins' documents (serial, statement) that the peer has not been sent, without its own."""
    found: dict[str, tuple[int, Signed]] = {}
    so_far = documents_sent()
    for origin in origins:
        held = None if origin == peer else so_far.recent.get(origin)
        if held is not None and so_far.serials.get((peer, origin)) != held[0]:
            found[origin] = held
    return found


def documents_add(peer: str, request: wire.ExchangeRequest) -> dict[str, tuple[int, Signed]]:
    """Add the documents of the runs' origins that the peer may not have; return them."""
    origins = {run.path[0] for part in request.parts for run in part.runs}
    pending = documents_pending(peer, sorted(origins))
    more = [statement for _, statement in pending.values() if statement not in request.domains]
    request.domains = [*more, *request.domains][: wire.STATEMENTS_MAX]
    return pending


def documents_acknowledged(peer: str, documents: dict[str, tuple[int, Signed]]) -> None:
    """Record that the peer has answered a request with these documents."""
    so_far = documents_sent()
    with so_far.lock:
        for origin, (serial, _) in documents.items():
            so_far.serials[peer, origin] = serial
            so_far.serials.move_to_end((peer, origin))
        while len(so_far.serials) > REMEMBERED_MAX:
            so_far.serials.popitem(last=False)
