"""Inbound: processing of another domain's request to /federation/v1/exchange, from its bytes to the answer.

The life of a request: its rates, its form -> the statements in it (domain documents, proofs, descriptors, admissions,
low-water marks), which the rest may need -> each run is validated (run_validation.py) -> all accepted runs are appended
to their logs in one round trip -> the links are updated with the peer's vectors and the new runs (overlay/broadcast.py)
-> other links of these RPs are woken, so that new runs are forwarded -> the answer states what is held now. Nothing in
the request is trusted; every refusal is counted.

It runs on a thread of a gateway with a database connection (gateway/endpoints/federation.py), safe for concurrent
requests of one peer: whatever must be one step is one script of the log's or of the links'.
"""

from __future__ import annotations

import contextlib
import math
import random
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils import timezone

from eventing.access.rules.rates import Bucket, Rate
from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.errors import RateLimited
from eventing.core.events.feeds import FEEDS_MAX, Feed
from eventing.core.events.vectors import Vector
from eventing.core.seals.seals import BadSeal, Seal, seal_read
from eventing.core.signing import Signed
from eventing.log import federated, gaps, watermarks
from eventing.log.federated import LogHead, ReceivedRun, StoredSeal
from eventing.log.federated_bulk import last_seals, newest_seals, receive_all
from eventing.log.gaps import KeptLowWaterMark
from eventing.log.watermarks import SeenLinks
from eventing.overlay import broadcast, feed_tree, link_planning
from eventing.overlay import exchange as rules
from eventing.overlay.broadcast import MessageOutcome
from eventing.overlay.feed_tree import ReceivedFeeds
from eventing.overlay.link_planning import LinkPlan
from eventing.overlay.link_state import Link
from eventing.overlay.reopening import EVERY_S, FOR_S
from eventing.peering.models import Acquaintance
from eventing.peering.rules import acquaintances
from eventing.peering.rules.domain_documents import BadDocument
from eventing.peering.selectors.partners import Partner
from eventing.peering.selectors.recent_keys import recent_keys_forget
from eventing.peering.services.domain_documents import document_accept
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.services.partners import partner_contacted
from eventing.peering.wire import messages as wire
from eventing.peering.wire.endpoints import Sender
from eventing.replication.forwarding import flapping, fork_detection, holding, wakeups
from eventing.replication.forwarding.new_events import events_forward, held
from eventing.replication.forwarding.run_validation import RunValidator, ValidatedRun, low_water_marks_true
from eventing.replication.selectors.forwarding import Participation, participations, participations_forget
from eventing.replication.services.conduct import supplies_note
from eventing.replication.services.replica_links import links_offer, links_resume
from eventing.replication.services.replica_properties import properties_accept
from eventing.replication.services.replica_statements import documents_by_domain, statements_accept
from eventing.store import peer_state
from eventing.store.waiting_vectors import reopening_begins, vectors_note
from eventing.subscriptions.services.lease_use import leases_use

# Twice the number of peers.
PEERS_COUNTED_MAX = 2000  # bound: peers whose rates a process counts; an idle peer is discarded
# The time that a peer waits for its answer (outbound.py: CALL_S).
LATE_S = 10.0  # bound: seconds of work on a request; the runs are stored, the request's vectors are ignored
# bound: RPs of a request whose newest seals are in the answer; the other RPs' runs are requested instead
NEWEST_MAX = 256
SEALS_AT_ONCE = 128  # in one round trip; each has its leaves, 32 KiB at most
CONTACT_S = 30.0  # seconds between two notes of a process about a peer's contact
NOT_HERE = "not-found"
NOT_YET = "unavailable"
NOT_ALLOWED = "forbidden"


class _Rates:
    """The rates of one peer at this process: requests, events and bytes."""

    def __init__(self, peer: Partner) -> None:
        def bucket(per_s: int) -> Bucket:
            return Bucket(Rate(per_s, config().rate_window_s).shared(config().gateways))

        self.limits = (peer.requests_per_s, peer.events_per_s, peer.bytes_per_s)
        self.requests, self.events, self.bytes = (bucket(limit) for limit in self.limits)
        self.contact_at = -math.inf

    def idle(self, now: float) -> bool:
        """Return whether a new object would be equal."""
        return self.requests.idle(now) and self.events.idle(now) and self.bytes.idle(now)


class _Counted:
    """The rates of peers by name, held under `lock`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rates: dict[str, _Rates] = {}


_counted = per_process(_Counted)


def exchange(sender: Sender, body: bytes) -> bytes:
    """Answer one exchange of an active peer or an acquaintance. Raises wire.BadMessage, RateLimited, redis.RedisError."""
    peer = sender.partner
    assert peer is not None  # noqa: S101 - the wire admits no others here
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
    events += sum(
        len(part.low_water_marks) for part in request.parts
    )  # each may cost the verification of a signature, as a run does
    _within(peer, rates.events, events, "events")
    _statements(peer, _limited(peer, request) if isinstance(peer, Acquaintance) else request)
    exchanged = _Exchange(peer, request)
    parts = exchanged.answered()
    _contact(peer, rates, exchanged.counts, supplied=exchanged.supplied)
    now = time.monotonic()
    pause_s = max(rates.events.wait_s(events, now) if events else 0.0, rates.bytes.wait_s(len(body), now))
    return wire.encode(wire.ExchangeAnswer(wire.VERSION, parts, min(pause_s, 60.0)))


def _rates_of(peer: Partner) -> _Rates:
    counted = _counted()
    with counted.lock:
        rates = counted.rates.get(peer.name)
        if rates is None or rates.limits != (peer.requests_per_s, peer.events_per_s, peer.bytes_per_s):
            if len(counted.rates) >= PEERS_COUNTED_MAX:
                counted.rates.clear()
            rates = counted.rates[peer.name] = _Rates(peer)
        return rates


def _within(peer: Partner, bucket: Bucket, amount: int, what: str) -> None:
    """Use `amount` of a rate. Raises RateLimited, and counts the excess: an honest peer was asked to pause before."""
    if not amount:
        return
    with _counted().lock:
        now = time.monotonic()
        if bucket.take(amount, now):
            return
        wait_s = bucket.wait_s(amount, now)
    misbehaviour_note("flooding", carrier=peer.name, detail=f"More {what} than its rate allows.")
    raise RateLimited(
        f"The rate of {what} per second from {peer.name} is exceeded.", retry_after_s=max(1, math.ceil(wait_s))
    )


def _bounded(peer: Partner, request: wire.ExchangeRequest, events: int, size: int) -> None:
    """Check the bounds on sums. A single run that exceeds them is sent alone. Raises wire.BadMessage."""
    runs = sum(len(part.runs) for part in request.parts)
    if len({part.rp for part in request.parts}) != len(request.parts):
        problem = "A request must have one part for each rendezvous point."
    elif (events > wire.REQUEST_EVENTS_MAX or size > wire.REQUEST_BYTES_MAX) and runs > 1:
        problem = f"A request must have at most {wire.REQUEST_EVENTS_MAX} events of {wire.REQUEST_BYTES_MAX} bytes."
    else:
        return
    misbehaviour_note("oversize", carrier=peer.name, detail=problem)
    raise wire.BadMessage(problem)


def _contact(peer: Partner, rates: _Rates, counts: Mapping[str, int], *, supplied: bool) -> None:
    """Record the contact: renew the peer's lease, count what it brought, and retry at once if delivery to it was failing."""
    now = time.monotonic()
    if now - rates.contact_at > CONTACT_S:
        rates.contact_at = now
        partner_contacted(peer.name)
    if peer_state.request_noted(peer.name, counts, supplied=supplied):
        wakeups.probe(peer.name)


def _limited(peer: Partner, request: wire.ExchangeRequest) -> wire.ExchangeRequest:
    """Return what of an acquaintance's request may be looked at before its runs: statements about RPs that both domains
    are admitted to, and few documents. Asking for other RPs is no misbehaviour: admissions, and ends of replicas, reach honest
    domains at different times.
    """
    who = _participants(peer, [part.rp for part in request.parts])
    now = timezone.now()
    soon = [
        rp
        for rp, one in who.items()
        if peer.name not in one.links and one.takes_part(peer.name, now) and one.takes_part(config().domain, now)
    ]
    if soon:  # its link stands there already
        links_offer(rps=soon)
        who |= participations(soon, fresh=True)
    shared = [part for part in request.parts if peer.name in who[part.rp].links]
    return wire.ExchangeRequest(request.version, shared, request.domains[: acquaintances.DOCUMENTS_MAX])


def _statements(peer: Partner, request: wire.ExchangeRequest) -> None:
    """Process the statements that validation of the rest may need."""
    for statement in documents_by_domain(request.domains).values():
        with contextlib.suppress(BadDocument):  # unknown domains: only if a home vouches for them, below
            document_accept(statement)
    fork_detection.proofs_shown(peer, request.evidence)
    told = [part for part in request.parts if part.statements or part.properties or part.homes]
    who = _participants(peer, [part.rp for part in told])
    newcomers: list[str] = []
    for part in told:
        # Only as signed by the home, whoever carries it: a newcomer may bring its own admission before the home does.
        statements_accept(part.rp, part.statements, carrier=peer.name, domains=request.domains, homes=part.homes)
        for statement in part.properties:
            properties_accept(part.rp, statement, carrier=peer.name)
        if who[part.rp].home and peer.name not in who[part.rp].links:
            newcomers.append(part.rp)
    if newcomers:
        links_offer(rps=newcomers)
    if told or request.domains:
        participations_forget()
        recent_keys_forget()


def _participants(peer: Partner, rps: Sequence[str]) -> dict[str, Participation]:
    """Return who takes part in these RPs. If the peer does not seem to, this is read anew: it may have joined, or have
    been admitted, since the cached read. A link that had stopped is live again.
    """
    who = dict(participations(rps)) if rps else {}
    new = [rp for rp in rps if peer.name not in who[rp].links]
    if new:
        links_resume(peer=peer.name, rps=new)
    return who | participations(new, fresh=True) if new else who


@dataclass(slots=True)
class _Part:
    """One RP of a request while it is processed."""

    stated: wire.RpPart
    who: Participation
    head: LogHead | None
    error: str = ""
    read: dict[int, Seal] = field(default_factory=dict)
    validated: list[ValidatedRun] = field(default_factory=list)
    results: dict[int, ReceivedRun | None] = field(default_factory=dict)
    received: ReceivedFeeds = feed_tree.NOTHING_RECEIVED
    ours: dict[str, int] = field(default_factory=dict)
    doubtful: list[fork_detection.SealPosition] = field(default_factory=list)
    low_water_marks: dict[str, KeptLowWaterMark] = field(default_factory=dict)
    claim: holding.FeedClaim | None = None
    newest: list[Signed] | None = None

    @property
    def asked(self) -> list[str]:
        """Return the feeds that the peer lacks and wants by this link: not those of which it brings new events itself."""
        return [feed for feed in self.stated.graft if feed not in self.received.new]

    @property
    def believed(self) -> Vector:
        """Return the peer's vector without an unproved claim of the own feed."""
        return holding.believed(self.stated.have, self.claim)


class _Exchange:
    """The parts of one request, processed together: each step is one round trip for all of them.

    Attributes:
        counts: what the peer brought, by `peer_state.TRAFFIC_NAMES`, once all is answered.
        supplied: whether anything of it was new.
    """

    def __init__(self, peer: Partner, request: wire.ExchangeRequest) -> None:
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
        self._links: SeenLinks = {}
        self.counts: dict[str, int] = {}
        self.supplied = False

    def answered(self) -> list[wire.RpAnswer]:
        """Process all parts, and return the answers."""
        for part in self._parts.values():
            part.error = self._refusal(part)
        self._read_seals()
        kept = gaps.low_water_marks_all([rp for rp, part in self._parts.items() if self._takes_low_water_marks(part)])
        for rp, part in self._parts.items():
            if not part.error:
                self._validate(rp, part, kept.get(rp))
        self._keep_low_water_marks(kept)
        self._note_claims()
        self._note_vectors()
        self._take()
        good = [rp for rp, part in self._parts.items() if not part.error]
        for rp in good:
            self._account(rp, self._parts[rp])
        self._forward(good)
        outcomes = self._update_links(good)
        self._wake(good, outcomes)
        self._count()
        self._note_use(good)
        self._show_newest(outcomes)
        answers = [self._answer(rp, part, outcomes.get(rp)) for rp, part in self._parts.items()]
        fork_detection.heads_add(answers, {rp: part.head for rp, part in self._parts.items() if part.head is not None})
        return answers

    def _refusal(self, part: _Part) -> str:
        if self._peer.name not in part.who.links:
            return NOT_HERE
        if part.stated.runs and not self._peer.push:
            return NOT_ALLOWED
        return NOT_YET if part.head is None else ""

    def _takes_low_water_marks(self, part: _Part) -> bool:
        """Return whether low-water marks are accepted: only with the trust `push`."""
        return bool(part.stated.low_water_marks) and not part.error and self._peer.push

    def _validate(self, rp: str, part: _Part, kept: Mapping[str, KeptLowWaterMark] | None) -> None:
        head = part.head
        assert head is not None  # noqa: S101 - refused above
        own = Feed(self._me, head.epoch).key
        if rules.overclaims(part.stated.have, own, head.own):
            detail = "It claims to hold more of this domain's feed than was published, unless this domain was restored from a copy."
            misbehaviour_note("false-vector", carrier=self._peer.name, rp=rp, detail=detail)
        validator = RunValidator(
            rp, self._peer.name, part.who, head, lambda feed, sequence: self._seal_at(rp, feed, sequence)
        )
        if kept is not None:
            part.low_water_marks = low_water_marks_true(
                part.stated, carrier=self._peer.name, who=part.who, foreign=head.foreign, kept=kept
            )
            validator.low_water_marks = {**kept, **part.low_water_marks}
        part.validated = [validator.validate(run, part.read.get(at)) for at, run in enumerate(part.stated.runs)]
        if validator.renewed:
            part.error, part.validated, part.low_water_marks = NOT_YET, [], {}
        here = (
            head.foreign.keys()
            | part.stated.have.keys()
            | {one.feed_key for one in part.validated if one.outcome == "take"}
        )
        part.low_water_marks = {
            feed: low_water_mark for feed, low_water_mark in part.low_water_marks.items() if feed in here
        }

    def _read_seals(self) -> None:
        """Read the seals that runs claim to follow, unless their digests show that they do, and those that heads may contradict: a
        held seal never changes.
        """
        wanted: dict[tuple[str, str, int], None] = {}
        for rp, part in self._parts.items():
            if part.error or part.head is None:
                continue
            for at, run in enumerate(part.stated.runs):
                with contextlib.suppress(BadSeal):
                    seal = part.read[at] = seal_read(run.seal)
                    key = seal.feed.key
                    held = part.head.foreign.get(key, 0)
                    if held and seal.first == held + 1 and seal.previous != part.head.foreign_digests.get(key):
                        wanted[rp, key, held] = None
        for place in fork_detection.doubtful(
            [(part.stated, part.head) for part in self._parts.values() if part.head and not part.error]
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

    def _keep_low_water_marks(self, kept: Mapping[str, Mapping[str, KeptLowWaterMark]]) -> None:
        """Keep the low-water marks before the runs are in the log: the runs may be forwarded from there, and need them."""
        keeping = {}
        for rp in kept:
            part = self._parts[rp]
            if part.low_water_marks and part.head is not None:
                crowded = len(kept[rp].keys() | part.low_water_marks.keys()) > FEEDS_MAX
                spare = kept[rp].keys() - part.low_water_marks.keys() - part.head.foreign.keys()
                keeping[rp] = part.low_water_marks, spare if crowded else ()
        gaps.low_water_marks_keep(keeping)

    def _note_claims(self) -> None:
        """Record claims of the own feed beyond its seals; those of a peer without an earlier vector hold the RP back."""
        validated = {rp: part for rp, part in self._parts.items() if not part.error}
        claims = holding.claims_of(
            {rp: part.stated.have for rp, part in validated.items()}, {rp: part.head for rp, part in validated.items()}
        )
        if not claims:
            return
        for rp, claim in claims.items():
            validated[rp].claim = claim
        known = watermarks.links_read(self._peer.name, list(claims))
        unheard = {rp: claim for rp, claim in claims.items() if not known[rp].met}
        holding.claimed(self._peer.name, holding.credible(unheard))

    def _note_vectors(self) -> None:
        """Record the stated vectors in the links before runs are in the log: the order of overlay/broadcast.py."""
        now = time.time()
        validated = {rp: part for rp, part in self._parts.items() if part.validated and not part.error}
        own = watermarks.links_change(
            self._peer.name, validated, lambda rp, link: broadcast.on_vector(link, validated[rp].believed), self._links
        )
        by = self._peer.name
        for other, some in _carried(
            {rp: validated[rp] for rp, link in own.items() if link.presumed.paths_doubted_until < now}
        ).items():

            def change(rp: str, link: Link, some: _Carried = some) -> Link:
                for feed_key, last in some[rp]:
                    link = broadcast.carried(link, feed_key, last, now=now, by=by)
                return link

            watermarks.links_change(other, some, change)

    def _take(self) -> None:
        """Append all accepted runs."""
        places = [
            (part, at, one.incoming)
            for part in self._parts.values()
            for at, one in enumerate(part.validated)
            if one.incoming is not None
        ]
        results = receive_all([incoming for _, _, incoming in places])
        for (part, at, _), result in zip(places, results, strict=True):
            part.results[at] = result

    def _count(self) -> None:
        runs = events = copies = 0
        first: dict[str, int] = {}
        for part in self._parts.values():
            for at, (run, one) in enumerate(zip(part.stated.runs, part.validated, strict=False)):
                result = part.results.get(at)
                runs += 1
                if one.outcome == "known" or (result is not None and result.kind == "known"):
                    copies += len(run.events)
                elif result is not None and result.kind == "new":
                    events += result.appended
                    if result.appended:
                        first[part.stated.rp] = first.get(part.stated.rp, 0) + result.appended
                    copies += len(run.events) - result.appended
        supplies_note(self._peer.name, first)
        self.supplied = any(part.received.new for part in self._parts.values())
        self.counts = {"requests": 1, "runs": runs, "events": events, "copies": copies}

    def _note_use(self, rps: Sequence[str]) -> None:
        """Note the arrival of events at an RP of this domain as its use, wherever they were published."""
        now = time.time()
        used = [rp for rp in rps if self._parts[rp].received.new and self._parts[rp].who.renewed_from <= now]
        if used:
            leases_use(rps=used)

    def _account(self, rp: str, part: _Part) -> None:
        """Count the outcome of the runs, and compute the own vector after them."""
        head = part.head
        assert head is not None  # noqa: S101 - refused above
        part.ours = vector_of(self._me, head)
        own = Feed(self._me, head.epoch).key  # no peer needs to send that here
        found: dict[str, set[str]] = {"new": set(), "known": set(), "redundant": set(), "hole": set(), "refused": set()}
        for at, one in enumerate(part.validated):
            result = part.results.get(at)
            outcome = one.outcome if one.incoming is None else "refused" if result is None else result.kind
            if result is not None and result.held:
                part.ours[one.feed_key] = max(part.ours.get(one.feed_key, 0), result.held)
            if outcome == "known" and (one.feed_key == own or self._redundant(rp, one)):
                found["redundant"].add(one.feed_key)
            found["refused" if outcome == "full" else outcome].add(one.feed_key)
        part.received = ReceivedFeeds(
            *(frozenset(found[kind]) for kind in ("new", "known", "redundant", "hole", "refused"))
        )

    def _redundant(self, rp: str, one: ValidatedRun) -> bool:
        """Return whether a known run had arrived by another peer that still sends the feed."""
        feed_key, stored = one.feed_key, one.stored
        if one.incoming is not None:  # both arrived at once, and the other's was in the log first
            stored = federated.seal_of(rp, feed_key, one.incoming.last)
        carrier = stored.path[-1] if stored is not None and stored.path else self._peer.name
        if carrier == self._peer.name or carrier not in self._parts[rp].who.links:
            return False
        link = watermarks.links_read(carrier, [rp])[rp]
        if broadcast.early(link, feed_key) is not link:
            watermarks.links_change(carrier, [rp], lambda _, link: broadcast.early(link, feed_key))
        return broadcast.feeds(link, feed_key)

    def _update_links(self, rps: Sequence[str]) -> dict[str, MessageOutcome]:
        """Apply the peer's vectors to its links, unless the request is older than LATE_S: the peer has timed out and
        may have sent newer vectors.
        """
        outcomes: dict[str, MessageOutcome] = {}
        if time.monotonic() - self._began > LATE_S:
            return outcomes
        now = time.time()

        def change(rp: str, link: Link) -> Link:
            part = self._parts[rp]
            outcomes[rp] = broadcast.on_message(
                link,
                part.believed,
                ours=part.ours,
                now=now,
                jitter=random.random(),  # noqa: S311 - chance, not a secret
                received=part.received,
                graft=part.stated.graft,
                shown=part.claim is None,
            )
            return outcomes[rp].link

        watermarks.links_change(self._peer.name, rps, change, self._links)
        flapping.grafts_judge(self._peer.name, {rp: self._parts[rp].asked for rp in rps})
        return outcomes

    def _forward(self, rps: Sequence[str]) -> None:
        """Have the new runs forwarded over the other links: before anything that they need not wait for."""
        onward: dict[str, list[str]] = {}
        ours: dict[str, Vector] = {}
        reopen: list[str] = []
        for rp in rps:
            part = self._parts[rp]
            if part.received.new and part.head is not None:
                ours[rp] = held(part.head._replace(foreign=part.ours))
                if feed_tree.reopened_by(part.received, frozenset(part.stated.graft)):
                    reopen.append(rp)
                for other in part.who.links:
                    if other != self._peer.name:
                        onward.setdefault(other, []).append(rp)
        if onward:
            if reopen and not reopening_begins(time.time(), FOR_S, EVERY_S):
                reopen = []
            events_forward(onward, ours, reopen=reopen)

    def _wake(self, rps: Sequence[str], outcomes: dict[str, MessageOutcome]) -> None:
        """Wake forwarding to the peer for what it lacks."""
        now = time.time()
        lacking: list[str] = []
        announced: list[str] = []
        for rp in rps:
            part = self._parts[rp]
            if rp in outcomes:
                link = outcomes[rp].link
                plan = link_planning.plan(link, part.ours, now=now)
                if plan is LinkPlan.RUNS or part.asked or link_planning.asks(link, now=now):
                    lacking.append(rp)
                elif plan is LinkPlan.VECTOR:
                    announced.append(rp)
        if announced:
            vectors_note({self._peer.name: announced}, now)
        if lacking:
            wakeups.wake(self._peer.name, lacking)

    def _show_newest(self, rps: Iterable[str]) -> None:
        """Find the newest seals of the peer's own feed if it states less than is held here: it may have been restored
        from a copy.
        """
        asked = [rp for rp in rps if self._parts[rp].stated.own][:NEWEST_MAX]
        places: list[tuple[str, str]] = []
        for rp in asked:
            part = self._parts[rp]
            part.newest = []
            if part.ours.get(part.stated.own, 0) > part.stated.have.get(part.stated.own, 0):
                places.append((rp, part.stated.own))
        for (rp, _), seal in zip(places, newest_seals(places), strict=True):
            self._parts[rp].newest = None if seal is None else [fork_detection.signed_read(seal)]

    def _answer(self, rp: str, part: _Part, outcomes: MessageOutcome | None) -> wire.RpAnswer:
        if outcomes is None:
            return wire.RpAnswer(rp, error=part.error or NOT_YET)
        contradicting = fork_detection.contradicting(part.stated, part.doubtful, self._seals.get)
        graft = (
            outcomes.graft if part.claim is None else outcomes.graft | {part.claim.feed_key}
        )  # so that it sends what it claims
        return wire.RpAnswer(
            rp,
            part.ours,
            "",
            sorted(graft),
            sorted(outcomes.prune),
            contradicting,
            newest=part.newest,
            term=part.who.term,
        )


_Carried = dict[str, list[tuple[str, int]]]  # by RP: feeds, with the last sequence


def _carried(parts: dict[str, _Part]) -> dict[str, _Carried]:
    """Return, by peer, the runs to accept that it carried: they are not sent to it again."""
    found: dict[str, _Carried] = {}
    for rp, part in parts.items():
        for run, one in zip(part.stated.runs, part.validated, strict=True):
            if one.incoming is not None:
                for other in set(run.path[:-1]).intersection(part.who.links):
                    found.setdefault(other, {}).setdefault(rp, []).append((one.feed_key, one.incoming.last))
    return found


def vector_of(me: str, head: LogHead) -> dict[str, int]:
    """Return the own vector as peers get it: the own feed as far as it is sealed."""
    vector = dict(head.foreign)
    if head.sealed:
        vector[Feed(me, head.epoch).key] = head.sealed
    return vector
