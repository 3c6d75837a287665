"""Shapes of rendezvous points."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from eventing.core.shapes import Count, Moment, Number, Positive, Shape, doc, one_of, page_of
from eventing.rest.shapes import HistoryAnswer, LeaseAnswer
from eventing.rps.rules.watches import AUDIENCE, KINDS, SEVERITIES

JsonObjects = list[dict[str, Any]]


class PausedState(Shape):
    """A pause: this domain refuses publishes."""

    at: Moment
    by: Annotated[str, doc("Identity of the operator.")]
    reason: Annotated[str, doc("For people.")]


class RpMembers(Shape):
    """Members of a rendezvous point that answers and administrative events share."""

    id: str
    name: Annotated[str | None, doc("null: none.")]
    title: Annotated[str, doc("For people; may be empty.")]
    home: Annotated[str, doc("The home domain; if it differs from the answering domain, this is a replica.")]
    version: Annotated[Positive, doc("Increases with every change, except of pause, lease, `audience` and `watch`.")]
    ack: Annotated[str, doc("Acknowledgement level.")]
    reliability: Annotated[
        float | None, doc("Target share of events that arrive at every participant in time; null: no target.")
    ]
    history: HistoryAnswer
    paused: Annotated[PausedState | None, doc("null: publishes are accepted.")]


class RecentRpData(RpMembers):
    """A rendezvous point, without its lease."""

    creator: Annotated[str, doc("Identity of the creator, or of the principal that requested the replica.")]
    created_at: Annotated[Moment, doc("When it was created here.")]


class RendezvousPointData(RecentRpData):
    """A rendezvous point."""

    lease: LeaseAnswer


class ParticipantAnswer(Shape):
    """A domain that participates in a rendezvous point."""

    domain: str
    url: Annotated[str, doc("Address of the domain; empty: not known here.")]
    role: Annotated[str, one_of("home", "replica")]
    vector: Annotated[dict[str, int], doc("The last sequence held of each feed, as reported last.")]
    link: Annotated[str | None, one_of("eager", "lazy", "stopped"), doc("Link with this domain; null: none.")]
    backlog: Annotated[int | None, doc("Events held here that the domain lacks; null: no link.")]


class RendezvousPointLinks(Shape):
    """Addresses of the resources of a rendezvous point."""

    events: str
    stream: str
    subscriptions: str
    admin: str | None


class SuccessionData(Shape):
    """A succession plan in force."""

    electors: Annotated[list[str], doc("The domains that elect a successor, in the order in which they succeed.")]
    silence_s: Annotated[Positive, doc("Seconds of silence of the home after which they elect one of them.")]
    version: Annotated[Positive, doc("Version of the plan.")]


class RendezvousPointAnswer(RpMembers):
    """A rendezvous point, or an administrative one."""

    domain: Annotated[str, doc("Its home.")]
    term: Annotated[Count, doc("Term of the home: 0 for the first, and more with every hand-over.")]
    succession: Annotated[SuccessionData | None, doc("null: nobody succeeds the home.")]
    creator: Annotated[str, doc("Subject that administers the rendezvous point; empty for the domain's own.")]
    epoch: Annotated[str | None, doc("null: there is no log yet; the first publish creates it.")]
    offset: Annotated[Count, doc("Offset of the last event; 0 before the first.")]
    lease: Annotated[LeaseAnswer | None, doc("null: an administrative one lives with what it reports on.")]
    renew_on_use: Annotated[bool, doc("Whether use renews the lease; false at a replica, whose domain renews it.")]
    policy: JsonObjects
    audience: Annotated[JsonObjects, doc("Readers that must be connected here while events are published; as stated.")]
    watch: Annotated[JsonObjects, doc("The watch rules; as stated.")]
    created_at: Moment | None
    changed_at: Moment | None
    links: RendezvousPointLinks
    genesis: Annotated[
        dict[str, Any] | UnsetType | None,
        doc("What the id certifies: base32 of the SHA-256 of its canonical JSON. Not in lists."),
    ] = UNSET
    replicas: Annotated[list[ParticipantAnswer] | UnsetType, doc("The home first. Not in lists.")] = UNSET
    notice: Annotated[
        str | UnsetType | None,
        doc("What the end of the lease deletes, and when; null: renewed automatically. Not in lists."),
    ] = UNSET


RendezvousPointPage = page_of(RendezvousPointAnswer)


class ParticipantList(Shape):
    """The participants of a rendezvous point."""

    items: list[ParticipantAnswer]


class BranchAnswer(Shape):
    """One branch of the tree of names."""

    part: Annotated[str, doc("The next part of the name.")]
    name: Annotated[str, doc("The name including that part: the prefix of the next level.")]
    rps: Annotated[Count, doc("Number of rendezvous points with this name or below.")]
    rp: Annotated[str | None, doc("Id of the rendezvous point with exactly this name.")]


BranchPage = page_of(BranchAnswer)


class HoldingDomain(Shape):
    """A participant, and whether it has reported what it holds."""

    domain: str
    role: Annotated[str, one_of("home", "replica")]
    known: Annotated[bool, doc("Whether the domain has stated here what it holds.")]


class SpreadEvent(Shape):
    """An event, and the domains that hold it."""

    offset: Count
    cursor: str
    id: str
    source: str
    type: str
    time: str | None
    origin: Annotated[str | None, doc("Origin of the event; null: its seal has left the history.")]
    sequence: Annotated[Positive, doc("Sequence in the origin's feed.")]
    held: Annotated[list[str], doc("The domains that hold it.")]


class SpreadAnswer(Shape):
    """Domains that hold the newest events."""

    domains: list[HoldingDomain]
    events: list[SpreadEvent]


class TrimmedAnswer(Shape):
    """The result of trimming a history."""

    removed: Annotated[Count, doc("Events removed.")]
    epoch: str
    first: Annotated[Count, doc("Oldest offset still held; one more than `offset` if none is.")]
    offset: Annotated[Count, doc("Offset of the last event.")]


class LogExtent(Shape):
    """The extent of a log."""

    epoch: Annotated[str, doc("Epoch of the log.")]
    first: Annotated[Count, doc("Oldest offset held.")]
    next: Annotated[Count, doc("Offset that the next event will get.")]
    bytes: Annotated[Count, doc("Bytes held.")]


class WatchRuleData(Shape):
    """A watch rule in force."""

    id: Annotated[str, doc("Changes with the content of the rule.")]
    rp: Annotated[str | None, doc("Id of the rendezvous point; null: the domain.")]
    kind: Annotated[str, one_of(*KINDS, AUDIENCE)]
    severity: Annotated[str, one_of(*SEVERITIES)]
    for_s: Annotated[Number, doc("Seconds that a broken rule waits for its alarm, and a kept one for its end.")]
    settings: Annotated[dict[str, Any], doc("Limits and filters of the kind (docs/operating.md).")]
    since: Annotated[Moment, doc("Time of the last change of the rules of the rendezvous point, or of the domain.")]
