"""Inbound: what another domain sends to /federation/v1/exchange, from its bytes to the answer.

The life of a request: its rates, its form -> the statements it brings (domain documents, proofs, descriptors, admissions,
floors), which the rest may need -> each run is judged (run_validation.py) -> all runs that may come go into their logs in one
round trip -> the links take in what the peer said and what came (overlay/broadcast.py) -> other links of these RPs are woken, so
that new runs go on -> the answer says what is held now. Nothing of it is believed; whatever is refused is counted.

It runs on a thread of a gateway with a database connection (gateway/endpoints/federation.py), safe side by side for one peer: what
must be one step is one script of the log's or of the links'.
"""

from __future__ import annotations

import contextlib
import math
import random
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from eventing.access.rules.rates import Bucket, Rate
from eventing.conf import config
from eventing.core.errors import RateLimited
from eventing.core.events.feeds import FEEDS_MAX, Feed
from eventing.core.events.vectors import Vector
from eventing.core.seals.seals import BadSeal, seal_read
from eventing.core.signing import Signed
from eventing.log import federated
from eventing.log.federated import Head, Received, StoredSeal
from eventing.log.federated_bulk import last_seals, newest_seals, receive_all
from eventing.overlay import broadcast
from eventing.overlay import exchange as rules
from eventing.overlay.broadcast import Came, Heard, Link, Plan
from eventing.peering.models import Peer
from eventing.peering.rules.domain_documents import BadDocument
from eventing.peering.selectors.recent_keys import recent_keys_forget
from eventing.peering.services.domain_documents import document_accept
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.services.peers import peer_contacted
from eventing.peering.wire import messages as wire
from eventing.peering.wire import traffic
from eventing.peering.wire.endpoints import Sender
from eventing.replication.forwarding import fork_detection, gaps, holding, wakeups, watermarks
from eventing.replication.forwarding.gaps import KeptFloor
from eventing.replication.forwarding.gossip import proofs_shown
from eventing.replication.forwarding.low_water_marks import floors_true
from eventing.replication.forwarding.run_validation import Judge, Judged
from eventing.replication.selectors.forwarding import Participation, participations, participations_forget
from eventing.replication.services.replica_links import links_offer, links_resume
from eventing.replication.services.replica_statements import documents_by_domain, statements_accept
from eventing.subscriptions.services.lease_use import leases_use

PEERS_COUNTED_MAX = 2000  # whose rates a process counts; twice the peers there may be
LATE_S = 10.0  # as long as a peer waits for its answer (outbound.py: CALL_S)
NEWEST_MAX = 256  # RPs of a request whose newest seals are looked for; at the others the peer asks for the runs
SEALS_AT_ONCE = 128  # of one round trip: each comes with its leaves, 32 KiB at most
CONTACT_S = 30.0  # between two notes of a process that the peer was in contact
NOT_HERE = "not-found"
NOT_YET = "unavailable"
NOT_ALLOWED = "forbidden"


class _Rates:
    """What one peer sent to this process: requests, events and bytes."""

    def __init__(self, peer: Peer) -> None:
        def bucket(per_s: int) -> Bucket:
            return Bucket(Rate(per_s, config().rate_window_s).shared(config().gateways))

        self.limits = (peer.requests_per_s, peer.events_per_s, peer.bytes_per_s)
        self.requests, self.events, self.bytes = (bucket(limit) for limit in self.limits)
        self.contact_at = -math.inf

    def idle(self, now: float) -> bool:
        """Whether a new one would be the same."""
        return self.requests.idle(now) and self.events.idle(now) and self.bytes.idle(now)


_lock = threading.Lock()
_rates: dict[str, _Rates] = {}


def exchange(sender: Sender, body: bytes) -> bytes:
    """Answer one exchange of an active peer. Raises wire.BadMessage, RateLimited, redis.RedisError."""
    peer = sender.peer
    assert peer is not None  # noqa: S101 - only hello is open to others
    rates = _rates_of(peer)
    _within(peer, rates.requests, 1, "requests")
    _within(peer, rates.bytes, len(body), "bytes")
    try:
        request = wire.request(body)
    except wire.BadMessage as error:
        kind = "oversize" if len(body) > wire.BODY_BYTES_MAX else "malformed"
        misbehaviour_note(kind, carrier=peer.name, detail=str(error))  # type: ignore[arg-type]
        raise
    events = sum(len(run.events) for part in request.parts for run in part.runs)
    size = sum(len(event) for part in request.parts for run in part.runs for event in run.events)
    _bounded(peer, request, events, size)
    events += sum(len(part.floors) for part in request.parts)  # each may cost a signature's verification, as a run does
    _within(peer, rates.events, events, "events")
    _contact(peer, rates)
    _statements(peer, request)
    parts = _Exchange(peer, request).answered()
    now = time.monotonic()
    pause_s = max(rates.events.wait_s(events, now) if events else 0.0, rates.bytes.wait_s(len(body), now))
    return wire.encode(wire.Answer(wire.VERSION, parts, min(pause_s, 60.0)))


def _rates_of(peer: Peer) -> _Rates:
    with _lock:
        rates = _rates.get(peer.name)
        if rates is None or rates.limits != (peer.requests_per_s, peer.events_per_s, peer.bytes_per_s):
            if len(_rates) >= PEERS_COUNTED_MAX:
                _rates.clear()
            rates = _rates[peer.name] = _Rates(peer)
        return rates


def _within(peer: Peer, bucket: Bucket, amount: int, what: str) -> None:
    """Take `amount` of a rate. Raises RateLimited, and counts it: an honest peer was told to pause before."""
    if not amount:
        return
    with _lock:
        now = time.monotonic()
        if bucket.take(amount, now):
            return
        wait_s = bucket.wait_s(amount, now)
    misbehaviour_note("flooding", carrier=peer.name, detail=f"More {what} than its rate allows.")
    raise RateLimited(f"Fewer {what} per second are taken of {peer.name}.", retry_after_s=max(1, math.ceil(wait_s)))


def _bounded(peer: Peer, request: wire.Request, events: int, size: int) -> None:
    """The bounds that only the sum shows. One run that is larger than they are travels alone. Raises wire.BadMessage."""
    runs = sum(len(part.runs) for part in request.parts)
    if len({part.rp for part in request.parts}) != len(request.parts):
        problem = "A request speaks of each rendezvous point once."
    elif (events > wire.REQUEST_EVENTS_MAX or size > wire.REQUEST_BYTES_MAX) and runs > 1:
        problem = f"A request carries at most {wire.REQUEST_EVENTS_MAX} events of {wire.REQUEST_BYTES_MAX} bytes."
    else:
        return
    misbehaviour_note("oversize", carrier=peer.name, detail=problem)
    raise wire.BadMessage(problem)


def _contact(peer: Peer, rates: _Rates) -> None:
    """The peer is there: its lease counts anew, and if we failed to reach it, we try again now."""
    now = time.monotonic()
    if now - rates.contact_at > CONTACT_S:
        rates.contact_at = now
        peer_contacted(peer.name)
    if wakeups.failing(peer.name):
        wakeups.probe(peer.name)


def _statements(peer: Peer, request: wire.Request) -> None:
    """Take in what the rest of the request may need to be judged by."""
    for statement in documents_by_domain(request.domains).values():
        with contextlib.suppress(BadDocument):  # of domains that are not known here: by the home's word only, below
            document_accept(statement)
    proofs_shown(peer, request.evidence)
    told = [part for part in request.parts if part.statements]
    who = _participants(peer, [part.rp for part in told])
    newcomers: list[str] = []
    for part in told:
        # By the home's word alone, whoever brings it: a newcomer may bring its own admission before the home reaches us.
        statements_accept(part.rp, part.statements, carrier=peer.name, domains=request.domains)
        if who[part.rp].home and peer.name not in who[part.rp].links:
            newcomers.append(part.rp)
    if newcomers:
        links_offer(rps=newcomers)
    if told or request.domains:
        participations_forget()
        recent_keys_forget()


def _participants(peer: Peer, rps: Sequence[str]) -> dict[str, Participation]:
    """Who takes part in these RPs. Where the peer does not seem to, it is read anew: it may have joined, or have been
    admitted, within the time that this process believes what it read. A link that had stopped is live again."""
    who = dict(participations(rps)) if rps else {}
    new = [rp for rp in rps if peer.name not in who[rp].links]
    if new:
        links_resume(peer=peer.name, rps=new)
    return who | participations(new, fresh=True) if new else who


@dataclass(slots=True)
class _Part:
    """One RP of a request, while it is worked on."""

    said: wire.RpPart
    who: Participation
    head: Head | None
    error: str = ""
    judged: list[Judged] = field(default_factory=list)
    results: dict[int, Received | None] = field(default_factory=dict)
    came: Came = broadcast.NOTHING_CAME
    ours: dict[str, int] = field(default_factory=dict)
    doubtful: list[fork_detection.Place] = field(default_factory=list)
    floors: dict[str, KeptFloor] = field(default_factory=dict)
    claim: holding.Claim | None = None
    newest: list[Signed] | None = None

    @property
    def believed(self) -> Vector:
        """The peer's vector without a claim of our own feed that it has not proved."""
        return holding.believed(self.said.have, self.claim)


class _Exchange:
    """The parts of one request, worked on together: each step is one round trip for all of them."""

    def __init__(self, peer: Peer, request: wire.Request) -> None:
        self._peer = peer
        self._me = config().domain
        self._began = time.monotonic()
        rps = [part.rp for part in request.parts]
        who = _participants(peer, rps)
        heads = federated.heads(rps)
        self._parts = {
            part.rp: _Part(part, who[part.rp], head) for part, head in zip(request.parts, heads, strict=True)
        }
        self._seals: dict[tuple[str, str, int], StoredSeal | None] = {}

    def answered(self) -> list[wire.RpAnswer]:
        """Do everything, and say what is held now."""
        for part in self._parts.values():
            part.error = self._refusal(part)
        self._look_up()
        kept = gaps.floors_all([rp for rp, part in self._parts.items() if self._takes_floors(part)])
        for rp, part in self._parts.items():
            if not part.error:
                self._judge(rp, part, kept.get(rp))
        self._keep_floors(kept)
        self._note_claims()
        self._note_said()
        self._take()
        good = [rp for rp, part in self._parts.items() if not part.error]
        for rp in good:
            self._account(rp, self._parts[rp])
        self._count()
        self._note_use(good)
        heard = self._hear(good)
        self._wake(good, heard)
        self._show_newest(heard)
        answers = [self._answer(rp, part, heard.get(rp)) for rp, part in self._parts.items()]
        fork_detection.tips_say(answers, {rp: part.head for rp, part in self._parts.items() if part.head is not None})
        return answers

    def _refusal(self, part: _Part) -> str:
        if self._peer.name not in part.who.links:
            return NOT_HERE
        if part.said.runs and not self._peer.push:
            return NOT_ALLOWED
        return NOT_YET if part.head is None else ""

    def _takes_floors(self, part: _Part) -> bool:
        """Floors are part of what is pushed."""
        return bool(part.said.floors) and not part.error and self._peer.push

    def _judge(self, rp: str, part: _Part, kept: Mapping[str, KeptFloor] | None) -> None:
        head = part.head
        assert head is not None  # noqa: S101 - refused above
        own = Feed(self._me, head.epoch).key
        if rules.overclaims(part.said.have, own, head.own):
            detail = "It says to hold more of our feed than we published, or we were put back from a copy."
            misbehaviour_note("false-vector", carrier=self._peer.name, rp=rp, detail=detail)
        judge = Judge(rp, self._peer.name, part.who, head, lambda feed, sequence: self._seal_at(rp, feed, sequence))
        if kept is not None:
            part.floors = floors_true(part.said, carrier=self._peer.name, who=part.who, foreign=head.foreign, kept=kept)
            judge.floors = {**kept, **part.floors}
        part.judged = [judge.judge(run) for run in part.said.runs]
        if judge.renewed:
            part.error, part.judged, part.floors = NOT_YET, [], {}
        here = (
            head.foreign.keys() | part.said.have.keys() | {one.feed_key for one in part.judged if one.outcome == "take"}
        )
        part.floors = {feed: floor for feed, floor in part.floors.items() if feed in here}

    def _look_up(self) -> None:
        """Read the seals that runs claim to follow, and those that tips may contradict: one that is held stays what it is."""
        wanted: dict[tuple[str, str, int], None] = {}
        for rp, part in self._parts.items():
            if part.error or part.head is None:
                continue
            for run in part.said.runs:
                with contextlib.suppress(BadSeal):
                    seal = seal_read(run.seal)
                    held = part.head.foreign.get(seal.feed.key, 0)
                    if held and seal.first == held + 1:
                        wanted[rp, seal.feed.key, held] = None
        for place in fork_detection.doubtful(
            [(part.said, part.head) for part in self._parts.values() if part.head and not part.error]
        ):
            self._parts[place[0]].doubtful.append(place)
            wanted[place] = None
        places = list(wanted)
        for begin in range(0, len(places), SEALS_AT_ONCE):
            some = places[begin : begin + SEALS_AT_ONCE]
            for place, stored in zip(some, last_seals(some), strict=True):
                self._seals[place] = None if stored is None else stored._replace(leaves=b"")  # up to 32 KiB each

    def _seal_at(self, rp: str, feed: str, sequence: int) -> StoredSeal | None:
        place = (rp, feed, sequence)
        return self._seals[place] if place in self._seals else federated.seal_of(rp, feed, sequence)

    def _keep_floors(self, kept: Mapping[str, Mapping[str, KeptFloor]]) -> None:
        """Before the runs are in the log: others may be sent them from there, and need the floors too."""
        keeping = {}
        for rp in kept:
            part = self._parts[rp]
            if part.floors and part.head is not None:
                crowded = len(kept[rp].keys() | part.floors.keys()) > FEEDS_MAX
                spare = kept[rp].keys() - part.floors.keys() - part.head.foreign.keys()
                keeping[rp] = part.floors, spare if crowded else ()
        gaps.floors_keep(keeping)

    def _note_claims(self) -> None:
        """Note the claims of our own feed beyond its seals; those of a peer that has stated no vector before hold the RP back."""
        judged = {rp: part for rp, part in self._parts.items() if not part.error}
        claims = holding.claims_of(
            {rp: part.said.have for rp, part in judged.items()}, {rp: part.head for rp, part in judged.items()}
        )
        if not claims:
            return
        for rp, claim in claims.items():
            judged[rp].claim = claim
        known = watermarks.links_read(self._peer.name, list(claims))
        unheard = {rp: claim for rp, claim in claims.items() if not known[rp].met}
        holding.claimed(self._peer.name, holding.credible(unheard))

    def _note_said(self) -> None:
        """Before runs are in the log, the links know who holds them: the order of overlay/broadcast.py."""
        now = time.time()
        judged = {rp: part for rp, part in self._parts.items() if part.judged and not part.error}
        own = watermarks.links_change(
            self._peer.name, judged, lambda rp, link: broadcast.said(link, judged[rp].believed)
        )
        by = self._peer.name
        for other, some in _carried(
            {rp: judged[rp] for rp, link in own.items() if link.paths_doubted_until < now}
        ).items():

            def change(rp: str, link: Link, some: _Carried = some) -> Link:
                for feed_key, last in some[rp]:
                    link = broadcast.carried(link, feed_key, last, now=now, by=by)
                return link

            watermarks.links_change(other, some, change)

    def _take(self) -> None:
        """Append everything that may come."""
        places = [
            (part, at, one.incoming)
            for part in self._parts.values()
            for at, one in enumerate(part.judged)
            if one.incoming is not None
        ]
        results = receive_all([incoming for _, _, incoming in places])
        for (part, at, _), result in zip(places, results, strict=True):
            part.results[at] = result

    def _count(self) -> None:
        runs = events = copies = 0
        for part in self._parts.values():
            for at, (run, one) in enumerate(zip(part.said.runs, part.judged, strict=False)):
                result = part.results.get(at)
                runs += 1
                if one.outcome == "known" or (result is not None and result.kind == "known"):
                    copies += len(run.events)
                elif result is not None and result.kind == "new":
                    events += result.appended
                    copies += len(run.events) - result.appended
        traffic.count(self._peer.name, requests=1, runs=runs, events=events, copies=copies)

    def _note_use(self, rps: Sequence[str]) -> None:
        """Events that came to an RP of ours are its use, wherever they were published."""
        now = time.time()
        used = [rp for rp in rps if self._parts[rp].came.new and self._parts[rp].who.renewed_from <= now]
        if used:
            leases_use(rps=used)

    def _account(self, rp: str, part: _Part) -> None:
        """What came of the runs, and our vector after them."""
        head = part.head
        assert head is not None  # noqa: S101 - refused above
        part.ours = vector_of(self._me, head)
        own = Feed(self._me, head.epoch).key  # nobody needs to bring us that
        found: dict[str, set[str]] = {"new": set(), "known": set(), "redundant": set(), "hole": set(), "refused": set()}
        for at, one in enumerate(part.judged):
            result = part.results.get(at)
            outcome = one.outcome if one.incoming is None else "refused" if result is None else result.kind
            if result is not None and result.held:
                part.ours[one.feed_key] = max(part.ours.get(one.feed_key, 0), result.held)
            if outcome == "known" and (one.feed_key == own or self._redundant(rp, one)):
                found["redundant"].add(one.feed_key)
            found["refused" if outcome == "full" else outcome].add(one.feed_key)
        part.came = Came(*(frozenset(found[kind]) for kind in ("new", "known", "redundant", "hole", "refused")))

    def _redundant(self, rp: str, one: Judged) -> bool:
        """Whether a known run had come by another peer that still brings the feed."""
        feed_key, stored = one.feed_key, one.stored
        if one.incoming is not None:  # by both at once, and the other's was in the log first
            stored = federated.seal_of(rp, feed_key, one.incoming.last)
        carrier = stored.path[-1] if stored is not None and stored.path else self._peer.name
        if carrier == self._peer.name or carrier not in self._parts[rp].who.links:
            return False
        link = watermarks.links_read(carrier, [rp])[rp]
        if broadcast.early(link, feed_key) is not link:
            watermarks.links_change(carrier, [rp], lambda _, link: broadcast.early(link, feed_key))
        return broadcast.feeds(link, feed_key)

    def _hear(self, rps: Sequence[str]) -> dict[str, Heard]:
        """Have the links with the peer take in what it said; unless it waits no longer and may have said other things since."""
        heard: dict[str, Heard] = {}
        if time.monotonic() - self._began > LATE_S:
            return heard
        now = time.time()

        def change(rp: str, link: Link) -> Link:
            part = self._parts[rp]
            heard[rp] = broadcast.heard(
                link,
                part.believed,
                ours=part.ours,
                now=now,
                jitter=random.random(),  # noqa: S311 - chance, not a secret
                came=part.came,
                graft=part.said.graft,
                shown=part.claim is None,
            )
            return heard[rp].link

        watermarks.links_change(self._peer.name, rps, change)
        return heard

    def _wake(self, rps: Sequence[str], heard: dict[str, Heard]) -> None:
        """Have new runs go on by the other links, and send the peer what it lacks."""
        now = time.time()
        onward: dict[str, list[str]] = {}
        for rp in rps:
            part = self._parts[rp]
            if rp in heard and broadcast.plan(heard[rp].link, part.ours, now=now) is not Plan.NOTHING:
                onward.setdefault(self._peer.name, []).append(rp)
            if part.came.new:
                for other in part.who.links:
                    if other != self._peer.name:
                        onward.setdefault(other, []).append(rp)
        if any(self._parts[rp].came.new for rp in rps):
            wakeups.supplied_set(self._peer.name)
        for peer, some in onward.items():
            wakeups.wake(peer, some)

    def _show_newest(self, rps: Iterable[str]) -> None:
        """Find the newest seals of the peer's own feed where it states less than is held here: it may have been put back."""
        asked = [rp for rp in rps if self._parts[rp].said.own][:NEWEST_MAX]
        places: list[tuple[str, str]] = []
        for rp in asked:
            part = self._parts[rp]
            part.newest = []
            if part.ours.get(part.said.own, 0) > part.said.have.get(part.said.own, 0):
                places.append((rp, part.said.own))
        for (rp, _), seal in zip(places, newest_seals(places), strict=True):
            self._parts[rp].newest = None if seal is None else [fork_detection.signed_read(seal)]

    def _answer(self, rp: str, part: _Part, heard: Heard | None) -> wire.RpAnswer:
        if heard is None:
            return wire.RpAnswer(rp, error=part.error or NOT_YET)
        contradicting = fork_detection.contradicting(part.said, part.doubtful, self._seals.get)
        graft = (
            heard.graft if part.claim is None else heard.graft | {part.claim.feed_key}
        )  # so that it sends what it claims
        return wire.RpAnswer(rp, part.ours, "", sorted(graft), sorted(heard.prune), contradicting, newest=part.newest)


_Carried = dict[str, list[tuple[str, int]]]  # by RP: feeds, and up to where


def _carried(parts: dict[str, _Part]) -> dict[str, _Carried]:
    """By peer, the runs to be taken that came through it: it is not sent them again."""
    found: dict[str, _Carried] = {}
    for rp, part in parts.items():
        for run, one in zip(part.said.runs, part.judged, strict=True):
            if one.incoming is not None:
                for other in set(run.path[:-1]).intersection(part.who.links):
                    found.setdefault(other, {}).setdefault(rp, []).append((one.feed_key, one.incoming.last))
    return found


def vector_of(me: str, head: Head) -> dict[str, int]:
    """Our vector as peers are told it: the own feed as far as it is sealed."""
    vector = dict(head.foreign)
    if head.sealed:
        vector[Feed(me, head.epoch).key] = head.sealed
    return vector
