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


class EventHop(Shape):
    """A hop of an event between two domains. Not proved."""

    source: str
    target: str
    stated_by: Annotated[list[str], doc("Domains that state the hop; the target is the one that can know it.")]
    at: Annotated[Moment | None, doc("When the target stored the event, by its clock; null: it did not say.")]


class PathDomain(Shape):
    """A domain on the path of an event, or one that may hold it."""

    domain: str
    zone: Annotated[str | None, doc("As the overlay's directory states it; null: the directory has no such domain.")]
    role: Annotated[str | None, one_of("home", "replica"), doc("Null: no participant any more.")]
    link: Annotated[str | None, one_of("eager", "lazy", "stopped"), doc("Link with this domain; null: none.")]
    held: Annotated[bool | None, doc("Whether it has received the event; null: unknown here.")]
    route: Annotated[list[str] | None, doc("Domains on the way to it, the origin first, it last; null: unknown here.")]
    stored_at: Annotated[Moment | None, doc("When it stored the event, by its clock; null: unknown here.")]
    answered: Annotated[bool | None, doc("Whether it answered the question for the path; null: it was not asked.")]
    detail: Annotated[str, doc("Why it did not answer, or its answer does not count; may be empty.")]
    known_from: Annotated[list[str], doc("Other domains that say it holds the event.")]

    @classmethod
    def named(cls, domain: str, zone: str | None) -> PathDomain:
        """Return a domain that is named on a route only."""
        return cls(
            domain=domain,
            zone=zone,
            role=None,
            link=None,
            held=True,
            route=None,
            stored_at=None,
            answered=None,
            detail="",
            known_from=[],
        )


class EventPathAnswer(Shape):
    """The path of one event, as far as it is known here. Paths are stated by the domains on them, and not proved."""

    rp: str
    feed: str
    sequence: Positive
    origin: Annotated[str | None, doc("Origin of the event; null: its seal has left the history.")]
    offset: Annotated[int | None, doc("Of the event in this domain's log; null: it is not in the history.")]
    route: Annotated[list[str], doc("Domains on the way here, the origin first, this one last; empty: it is not here.")]
    hops: Annotated[list[EventHop], doc("All known hops.")]
    domains: Annotated[list[PathDomain], doc("Participants, and other domains on a route.")]
    asked: Annotated[bool, doc("Whether other domains were asked.")]
