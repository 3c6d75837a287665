"""Shapes of deliveries, links with peers, and proofs of events."""

from __future__ import annotations

from typing import Annotated, Any

from eventing.core.shapes import Base64, Count, Moment, Positive, Shape, doc, one_of, page_of
from eventing.peering.rules.deliveries import Failure
from eventing.peering.shapes import DeliveryProgress, SealAnswer

Vector = dict[str, int]


class TrafficTotals(Shape):
    """Counts of the exchange with a peer since the peering."""

    requests: Annotated[Count, doc("Requests received from the peer.")]
    runs: Annotated[Count, doc("Runs in these requests.")]
    events: Annotated[Count, doc("New events in these runs.")]
    copies: Annotated[Count, doc("Duplicate events in these runs.")]
    sent: Annotated[Count, doc("Events sent to the peer in requests that it acknowledged.")]


class PeerHolding(Shape):
    """A peer's vector of a rendezvous point, and the feeds that the peer, or this domain, pruned."""

    rp: str
    vector: Vector
    lazy: list[str]
    pruned: list[str]


class PeerDeliveryAnswer(DeliveryProgress):
    """State of forwarding to a peer."""

    peer: str
    failure: Annotated[str, one_of("", *Failure)]
    detail: str
    traffic: TrafficTotals
    links: list[PeerHolding]


class PeerLinkAnswer(Shape):
    """The link with a peer at one rendezvous point."""

    rp: str
    name: str | None
    title: str
    home: Annotated[str, doc("The home of the rendezvous point.")]
    link: Annotated[str, one_of("eager", "lazy", "stopped")]
    detail: Annotated[str, doc("Why delivery stopped or is delayed; may be empty.")]
    vector: Annotated[Vector, doc("Version vector that the peer stated.")]
    own: Annotated[Vector, doc("Version vector of this domain.")]
    backlog: Annotated[Count, doc("Events held here that the peer lacks.")]
    ahead: Annotated[Count, doc("Events that the peer states to hold and this domain lacks.")]
    heard_at: Annotated[Moment | None, doc("Time of the peer's last vector for the rendezvous point; null: none.")]
    held_until: Annotated[Moment | None, doc("Earliest time of the next run of this rendezvous point; null: no delay.")]


PeerLinkPage = page_of(PeerLinkAnswer)


class PeerReplayAnswer(Shape):
    """Events that a peer is offered again."""

    peer: str
    rp: str
    after: str


class EventProofAnswer(Shape):
    """The proof of one event; bytes are base64."""

    rp: str
    origin: Annotated[str, doc("The domain that published the event.")]
    epoch: Annotated[str, doc("Epoch of the origin's feed.")]
    sequence: Annotated[Positive, doc("The event's place in that feed.")]
    event: Annotated[Base64, doc("The event's exact bytes.")]
    leaf_index: Count
    tree_size: Positive
    path: Annotated[list[Base64], doc("RFC 9162 inclusion proof, from the leaf upwards.")]
    seal: SealAnswer
    document: Annotated[dict[str, Any], doc("The origin's domain document, as at /.well-known/herald.")]
    carriers: Annotated[
        list[str], doc("Domains that carried it, the origin first, as they stated; not proved. Empty for an own event.")
    ]
