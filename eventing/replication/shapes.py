"""Shapes of deliveries, links with peers, and proofs of events."""

from __future__ import annotations

from typing import Annotated, Any

from eventing.core.modes import MODES
from eventing.core.shapes import Base64, Count, Moment, Number, Positive, Shape, doc, one_of, page_of
from eventing.peering.rules.deliveries import Failure
from eventing.peering.shapes import DeliveryProgress, SealAnswer
from eventing.replication.rules.route_decisions import STATES
from eventing.rps.rules.home_terms import MOVE, SUCCESSION

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


class PlannedLinkAnswer(Shape):
    """A link that is known here, and what it is planned for."""

    ends: Annotated[list[str], doc("Its two domains.")]
    delivery: Annotated[Number, doc("Share of deliveries in time that plans count on: it is more with 95 %.")]
    origins: Annotated[list[str], doc("Domains for whose events it was chosen.")]


class ParticipantReliability(Shape):
    """Reliability of the deliveries to one participant."""

    domain: str
    planned: Annotated[
        Number | None,
        doc("Share of events that the plan brings in time, of the origin for which it is least; null: no plan."),
    ]
    missed: Annotated[str | None, doc("Why the target cannot be met, with the best that can be had; null: it is met.")]
    states_links: Annotated[bool, doc("Whether its measurements of links are known here.")]
    measured: Annotated[
        Number | None,
        doc(
            "Share of events held here that it held in time, by its own vectors, of the last days; null: not measured here."
        ),
    ]
    events: Annotated[Number, doc("Events that this rests on, halved each day.")]


class ReliabilityAnswer(Shape):
    """The target reliability of a rendezvous point, as this domain plans and measures it."""

    rp: str
    target: Annotated[Number | None, doc("null: no target.")]
    mode: Annotated[str, one_of(*MODES), doc("Of the planner of routes here; advise: the plan has no effect.")]
    within_s: Annotated[Number, doc("Seconds within which an event is in time.")]
    state: Annotated[
        str,
        one_of("none", *STATES),
        doc(
            "none: no target, or no other participant; unknown: not enough is known of the links to say whether it is met."
        ),
    ]
    reason: Annotated[str | None, doc("Why links were chosen or changed last; null: no plan.")]
    planned_at: Annotated[Moment | None, doc("When that was; null: no plan.")]
    participants: Annotated[list[ParticipantReliability], doc("This domain left out.")]
    links: list[PlannedLinkAnswer]


class RoutesSwitchAnswer(Shape):
    """Switch of the planner of routes, of a rendezvous point or of the domain."""

    rp: Annotated[str | None, doc("Null: of the domain.")]
    mode: Annotated[str | None, one_of(*MODES), doc("Null: as the domain, or its setting HERALD_ROUTES.")]
    mode_in_force: Annotated[str, one_of(*MODES)]
    changed_at: Moment | None
    changed_by: Annotated[str, doc("Empty: nobody has set anything.")]


class PlannedRpAnswer(Shape):
    """A rendezvous point with a target reliability, and its plan, in short."""

    rp: str
    target: Number
    mode: Annotated[str | None, one_of(*MODES), doc("Its own switch; null: as the domain.")]
    mode_in_force: Annotated[str, one_of(*MODES), doc("advise: the plan has no effect.")]
    state: Annotated[str, one_of("none", *STATES), doc("none: no plan.")]
    reason: Annotated[str, doc("Why links were chosen or changed last; empty: no plan.")]
    planned_at: Moment | None
    participants: Annotated[Count, doc("Other participants.")]
    links: Annotated[Count, doc("Links that the plan uses.")]
    links_known: Annotated[Count, doc("Links whose delivery is known here.")]
    planned: Annotated[Number | None, doc("Planned share of events in time at the worst participant; null: no plan.")]
    measured: Annotated[
        Number | None, doc("Measured share of events in time at the worst participant; null: not measured here.")
    ]
    events: Annotated[Number, doc("Events that the measurement rests on, halved each day.")]
    missed: Annotated[dict[str, str], doc("Participants below the target, and why.")]


class RoutesAnswer(Shape):
    """The planner of routes of this domain."""

    switch: RoutesSwitchAnswer
    items: Annotated[list[PlannedRpAnswer], doc("Rendezvous points with a target reliability.")]
    complete: Annotated[bool, doc("False: there are more, which are not planned for.")]


class PreviewedLink(Shape):
    """A known link in a dry run."""

    ends: Annotated[list[str], doc("Its two domains.")]
    delivery: Annotated[Number, doc("Share of deliveries in time that plans count on.")]
    planned: Annotated[bool, doc("The dry run uses it.")]
    in_force: Annotated[bool, doc("The plan in force uses it.")]


class PreviewedReceiver(Shape):
    """A participant in a dry run."""

    domain: str
    planned: Annotated[Number, doc("Share of events in time by the dry run.")]
    in_force: Annotated[Number | None, doc("The same by the plan in force; null: none is in force.")]
    missed: Annotated[str | None, doc("Why the target cannot be met, with the best that can be had; null: it is met.")]


class RoutesPreviewAnswer(Shape):
    """Present choice of the planner of routes for the events of the home."""

    rp: str
    origin: Annotated[str, doc("Domain whose events are planned for: the home.")]
    target: Number
    mode_in_force: Annotated[str, one_of(*MODES)]
    met: Annotated[bool, doc("The target is met at every participant.")]
    receivers: list[PreviewedReceiver]
    links: list[PreviewedLink]


class HomeAnswer(Shape):
    """The home of a rendezvous point that moved, or whose home has successors."""

    rp: str
    home: Annotated[str, doc("The domain that is the home now.")]
    term: Annotated[Count, doc("Term of the home; that of the first home is 0.")]
    kind: Annotated[str | None, one_of(MOVE, SUCCESSION), doc("Of the last hand-over; null: it never moved.")]
    former: Annotated[str | None, doc("The home before; null: it never moved.")]
    moved_at: Annotated[Moment | None, doc("When the last hand-over was signed, by its signer's clock.")]
    electors: Annotated[
        list[str], doc("Who elects a successor, in the order in which they succeed; empty: succession is off.")
    ]
    silence_s: Annotated[int | None, doc("Seconds of silence of the home after which they elect one of them.")]
    silent_s: Annotated[
        Number | None, doc("Seconds since the home's last sign of life; null: this domain is no elector.")
    ]
    misses: Annotated[int, doc("Probes of the home without an answer since.")]
    electing: Annotated[bool, doc("This domain has voted for a successor in a later term.")]


class HandOverSignature(Shape):
    """A signature of a hand-over."""

    domain: str
    kid: Annotated[str, doc("Key id of the domain's key.")]
    signature: Annotated[str, doc("Base64url, without padding.")]


class SignedHandOver(Shape):
    """A hand-over of a home, as it is verified without this domain."""

    payload: Annotated[str, doc("The signed bytes: canonical JSON.")]
    signatures: list[HandOverSignature]


class HomeProofAnswer(Shape):
    """A proof that a rendezvous point was handed over twice."""

    rp: str
    term: Count
    kept: Annotated[str, doc("The domain that every domain keeps as the home.")]
    other: Annotated[str, doc("The domain that the other hand-over names.")]
    accused: Annotated[list[str], doc("The domains that signed against their promise.")]
    detail: Annotated[list[str], doc("One sentence for each of them.")]
    hand_overs: Annotated[list[SignedHandOver], doc("The kept one, and the other.")]
    carrier: Annotated[str, doc("The domain that delivered the second one.")]
    found_at: Moment


class HomesAnswer(Shape):
    """Homes of the rendezvous points here that moved, or have successors."""

    items: Annotated[list[HomeAnswer], doc("Those that moved last first.")]
    complete: Annotated[bool, doc("False: there are more.")]
    proofs: Annotated[list[HomeProofAnswer], doc("Proofs that one was handed over twice, the newest first.")] = []
