"""Shapes of peers, of the delivery to them, and of misbehaviour and its evidence."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, field

from eventing.core.shapes import Base64, Count, Moment, Positive, Shape, doc, one_of, page_of
from eventing.peering.rules.deliveries import Failure, Standstill
from eventing.peering.rules.misbehaviour import KINDS
from eventing.peering.rules.peers import PeeringState, Stance

Fingerprint = Annotated[str, doc("The kid of the domain's first key.")]
Grouped = Annotated[str, doc("The fingerprint in groups of characters, to be read aloud.")]
Own = Annotated[str, doc("This domain's fingerprint, as the other administrator sees it.")]
Safety = Annotated[str, doc("Computed from both fingerprints; the other domain shows the same number.")]
PeerState = Annotated[str, one_of(*PeeringState)]
Maybe = Moment | None


class PeerLease(Shape):
    """The lease of a peer; contact renews it."""

    granted_s: Annotated[Count, doc("Seconds without contact until the peering expires.")]
    expires_at: Annotated[Moment, doc("When the peering expires.")]


class PeerData(Shape):
    """A peer."""

    name: Annotated[str, doc("The domain's name.")]
    url: Annotated[str, doc("Address of the peer.")]
    state: Annotated[PeerState, doc("State of the peering at this domain.")]
    theirs: Annotated[str | None, one_of(*Stance), doc("Its stance, as it reported last; null: not received.")]
    fingerprint: Fingerprint
    push: Annotated[bool, doc("Whether the peer may send events.")]
    host: Annotated[bool, doc("Whether the peer may have replicas hosted here.")]
    gossip: Annotated[bool, doc("Whether the peer takes part in gossip.")]
    lease: PeerLease


class PeerContact(Shape):
    """Times of the peer's last request, and of its last answer to a request of this domain, to the second; null: none
    known.
    """

    request_at: Maybe
    answer_at: Maybe


class PeerProblem(Shape):
    """Reason why nothing arrives at a peer."""

    kind: Annotated[str, one_of(*Failure, *Standstill)]
    since: Maybe
    until: Annotated[Maybe, doc("Time of the next attempt, or end of the peer's pause.")]
    detail: str
    advice: Annotated[str, doc("What an administrator can do.")]


class PeerHello(Shape):
    """State of informing the peer about its state here."""

    failures: Count
    problem: Annotated[str | None, doc("Why the last hello failed; null: it was delivered.")]
    next_at: Annotated[Maybe, doc("Time of the next hello; null: none is due.")]


class DeliveryProgress(Shape):
    """Progress and failures of delivery to a peer."""

    backlog: Annotated[
        Count,
        doc(
            "Events that wait for the peer, as of some seconds ago; 0 while delivery works and none has waited for 2 s."
        ),
    ]
    oldest_at: Annotated[Maybe, doc("When the oldest of them was stored here; null: none.")]
    failures: Annotated[Count, doc("Consecutive failures; 0 while delivery works.")]
    first_failure_at: Annotated[Maybe, doc("First of these, or since when nothing arrives although none fails.")]
    next_try_at: Annotated[
        Maybe, doc("When delivery is retried, or a pause ends; null: all is well, or it is stopped.")
    ]
    stopped_at: Annotated[
        Maybe, doc("Since when delivery is stopped until an administrator or the peer changes something.")
    ]


class PeerDeliveryState(DeliveryProgress):
    """The state of delivery to a peer."""

    failure: str | None
    detail: str | None


class DeliveryData(DeliveryProgress):
    """The state of delivery to a peer."""

    failure: Annotated[str | None, one_of(*Failure, *Standstill), doc("null: all is well.")] = field(name="class")
    detail: Annotated[str, doc("The last failure in a sentence; empty while delivery works.")]


class PeerAnswer(PeerData):
    """A peer, and what it may do."""

    fingerprint_shown: Grouped
    own_fingerprint: Own
    own_fingerprint_shown: str
    safety_number: Safety
    events_per_s: Count
    bytes_per_s: Count
    requests_per_s: Count
    note: str
    heard_at: Annotated[Maybe, doc("The last contact: a request or an answer of the peer; null: none.")]
    contact: PeerContact
    problem: Annotated[
        PeerProblem | None, doc("Why the peer receives nothing; null: delivery works, or the peer is not active.")
    ]
    hello: PeerHello
    delivery: Annotated[
        PeerDeliveryState | None, doc("State of sending events to the peer; null: it has never failed.")
    ]
    created_at: Moment
    changed_at: Moment


class PeerList(Shape):
    """The peers."""

    items: list[PeerAnswer]


class PeerLookAnswer(Shape):
    """Statement of a domain about itself."""

    domain: str
    url: str
    fingerprint: Fingerprint
    fingerprint_shown: Grouped
    own_fingerprint: Own
    own_fingerprint_shown: str
    safety_number: Safety
    issued_at: Annotated[int, doc("Unix seconds, by the domain's clock.")]
    versions: Annotated[list[int], doc("Protocol versions that the domain speaks.")]
    state: PeerState | None


class TrafficData(Shape):
    """Counts of the exchange with a peer."""

    sent: Annotated[Count, doc("Events in requests that the peer acknowledged.")]
    taken: Annotated[Count, doc("New events received from the peer.")]
    copies: Annotated[Count, doc("Duplicate events received from the peer.")]
    requests: Annotated[Count, doc("Requests received from the peer.")]


class MisbehaviourData(Shape):
    """Misbehaviour of a domain, counted."""

    kind: Annotated[str, one_of(*KINDS)]
    carrier: Annotated[str, doc("The peer that carried it; empty if not certain.")]
    origin: Annotated[str, doc("The domain concerned, if another.")]
    count: Annotated[Count, doc("Occurrences so far.")]
    rp: Annotated[str, doc("Rendezvous point of the last occurrence; may be empty.")]
    detail: Annotated[str, doc("Detail of the last occurrence, one sentence.")]
    last_at: Annotated[Moment, doc("Time of the last occurrence.")]


class MisbehaviourAnswer(Shape):
    """Misbehaviour of a domain, counted."""

    id: str
    kind: Annotated[str, one_of(*KINDS)]
    about: Annotated[str, doc("Description of the kind.")]
    carrier: Annotated[str, doc("The peer that carried it; empty if not certain.")]
    origin: Annotated[str, doc("The domain concerned.")]
    count: Positive
    rp: Annotated[str | None, doc("Rendezvous point of the last occurrence.")]
    detail: Annotated[str, doc("Detail of the last occurrence.")]
    first_at: Moment
    last_at: Moment


MisbehaviourPage = page_of(MisbehaviourAnswer)


class EvidenceAnswer(Shape):
    """A proof of equivocation."""

    digest: str
    origin: Annotated[str, doc("The domain that equivocated.")]
    rp: str
    epoch: Annotated[str, doc("Epoch of the origin's feed.")]
    carrier: Annotated[str | None, doc("The peer that delivered the proof; null: it was found here.")]
    found_at: Moment


EvidencePage = page_of(EvidenceAnswer)


class SealAnswer(Shape):
    """A seal, as its origin signed it."""

    payload: Annotated[Base64, doc("MessagePack: version, rp, origin, epoch, first, last, root, previous, ms.")]
    kid: str
    signature: Annotated[
        Base64,
        doc(
            "Ed25519 over `herald seal v1`, a zero byte and the payload; a longer one is of a batch of seals "
            "(docs/federation/seals.md)."
        ),
    ]


class EvidenceExport(EvidenceAnswer):
    """A proof of equivocation that can be verified without this domain."""

    seals: Annotated[list[SealAnswer], Meta(min_length=2, max_length=2)]
    document: Annotated[dict[str, Any] | None, doc("The origin's domain document, as at /.well-known/herald.")]


class QuarantineEvidence(Shape):
    """Two contradictory seals for one place."""

    digest: str
    rp: str
    carrier: Annotated[str, doc("The peer that delivered the proof.")]


class QuarantineAnswer(Shape):
    """A domain whose events are refused."""

    origin: str
    why: str
    since: Moment
    evidence: QuarantineEvidence | None


class QuarantineList(Shape):
    """The quarantines."""

    items: list[QuarantineAnswer]
