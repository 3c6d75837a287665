"""/api/v1/peers: other domains, and the decisions of this domain's administrators about them. The states are in
peering/rules/peers.py.

No domain is trusted unseen: `look` fetches a domain's document, an administrator compares the fingerprint with the
other domain's administrator, and gives it when adding or approving the domain. The other domain is notified at once if
it answers, else later; answers show the state after the attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.verification.fetching import FetchFailed
from eventing.access.verification.revocations import revocations
from eventing.core.errors import InvalidRequest, PeerUnreachable
from eventing.core.signing import Signed
from eventing.core.timestamps import timestamp
from eventing.peering.models import Peer as PeerRow
from eventing.peering.models import PeerDelivery
from eventing.peering.peer_documents import document_fetch
from eventing.peering.rules import peers
from eventing.peering.rules.deliveries import ADVICE, Failure, PeerStanding, Standstill
from eventing.peering.rules.domain_documents import BadDocument, fingerprint_shown, from_published, read
from eventing.peering.selectors.deliveries import delivery_get
from eventing.peering.selectors.event_data import peer_members
from eventing.peering.selectors.peers import peer_found, peer_row, peers_all
from eventing.peering.selectors.standing import standings
from eventing.peering.services.domain_documents import own_document
from eventing.peering.services.peers import (
    document_read,
    peer_add,
    peer_approve,
    peer_change,
    peer_remove,
    peer_resume,
    peer_suspend,
    require_administrator,
    require_overseer,
)
from eventing.peering.shapes import (
    PeerAnswer,
    PeerContact,
    PeerDeliveryState,
    PeerHello,
    PeerList,
    PeerLookAnswer,
    PeerProblem,
)
from eventing.peering.wire.hello import farewell, greet
from eventing.rest.base import View
from eventing.rest.fields import StrictBoolean, StrictInteger, StrictObject, StrictString
from eventing.store.errors import RedisError

FINGERPRINT_CHARS_MAX = 128  # with spaces between its groups
NAME = OpenApiParameter(
    "name", {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"}, OpenApiParameter.PATH
)
_FINGERPRINT = (
    "The fingerprint that you compared with the other domain's administrator. Spaces are ignored. A fingerprint that "
    "is not the domain's is refused."
)


class DomainDocumentField(serializers.JSONField):
    """Document that a domain publishes at /.well-known/herald, or its member `document`."""


class SourceSerializer(StrictObject):
    """Source of a domain's document: the domain's address, or the document itself."""

    url = StrictString(
        required=False, min_length=1, max_length=peers.URL_CHARS_MAX, help_text="Address of the other domain."
    )
    document = DomainDocumentField(
        required=False,
        help_text="What the other domain publishes at /.well-known/herald, for when it cannot be reached from here.",
    )


class TrustSerializer(StrictObject):
    """Trust in a peer: its permissions and rates."""

    push = StrictBoolean(required=False, help_text="The peer may send events to this domain. Default: true.")
    host = StrictBoolean(
        required=False,
        help_text="The peer may have this domain host replicas of its rendezvous points. Default: false.",
    )
    gossip = StrictBoolean(required=False, help_text="The peer takes part in gossip. Default: true.")
    events_per_s = StrictInteger(required=False, max_value=peers.RATE_MAX, help_text=f"Default: {peers.EVENTS_PER_S}.")
    bytes_per_s = StrictInteger(required=False, max_value=peers.RATE_MAX, help_text=f"Default: {peers.BYTES_PER_S}.")
    requests_per_s = StrictInteger(
        required=False, max_value=peers.RATE_MAX, help_text=f"Default: {peers.REQUESTS_PER_S}."
    )
    note = StrictString(
        required=False, allow_blank=True, max_length=peers.NOTE_CHARS_MAX, help_text="A note for administrators."
    )


class AdditionSerializer(SourceSerializer, TrustSerializer):
    """A domain to add."""

    fingerprint = StrictString(min_length=1, max_length=FINGERPRINT_CHARS_MAX, help_text=_FINGERPRINT)


class ApprovalSerializer(TrustSerializer):
    """An approval."""

    fingerprint = StrictString(min_length=1, max_length=FINGERPRINT_CHARS_MAX, help_text=_FINGERPRINT)
    url = StrictString(
        required=False,
        min_length=1,
        max_length=peers.URL_CHARS_MAX,
        help_text="Address of the domain; absent: the address in its document.",
    )


class ChangeSerializer(TrustSerializer):
    """A change of a peer."""

    url = StrictString(required=False, min_length=1, max_length=peers.URL_CHARS_MAX, help_text="Address of the peer.")


class ReasonSerializer(StrictObject):
    """The reason for an action."""

    note = StrictString(
        required=False, allow_blank=True, max_length=peers.NOTE_CHARS_MAX, help_text="The reason, for administrators."
    )


class PeersView(View):
    """List of peers."""

    @extend_schema(
        operation_id="peers_list",
        summary="List the peers",
        description="By name, including domains that ask to be peers. For administrators, operators and viewers.",
        responses={200: PeerList},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        return Response(PeerList(items=[representation(row) for row in peers_all()]))

    @extend_schema(
        operation_id="peers_add",
        summary="Add a peer",
        description="Give the domain's `url` or `document`, and the `fingerprint` that you compared. The peer is "
        "`active` once its administrator has approved too; adding a domain that asks approves it. Repeating the "
        "request sends the proposal again.",
        request=AdditionSerializer,
        responses={201: PeerAnswer, 200: PeerAnswer},
        examples=[
            OpenApiExample(
                "A domain that was inspected",
                value={"url": "https://b.example", "fingerprint": "Kp4s 0kVb 9dQe ...", "host": True},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Add."""
        require_administrator(self.principal)
        stated = self.body(AdditionSerializer)
        url = stated.pop("url", "")
        statement = _statement(url, stated.pop("document", None))
        known = peer_found(document_read(statement).domain) is not None
        row = peer_add(principal=self.principal, statement=statement, url=url, **stated)
        return Response(_described(row), status=200 if known else 201)


class PeerLooksView(View):
    """Inspection of a domain before it is added."""

    @extend_schema(
        operation_id="peers_look",
        summary="Look at a domain",
        description="Returns the domain's own statement and the fingerprints to compare. Changes nothing and trusts "
        "nobody. For administrators.",
        request=SourceSerializer,
        responses={200: PeerLookAnswer},
        examples=[OpenApiExample("By its address", value={"url": "https://b.example"}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Look."""
        require_administrator(self.principal)
        stated = self.body(SourceSerializer)
        document = document_read(_statement(stated.get("url", ""), stated.get("document")))
        row = peer_found(document.domain)
        return Response(
            PeerLookAnswer.of(
                document,
                url=stated.get("url", document.url).rstrip("/"),
                versions=list(document.versions),
                state=None if row is None else row.state,
                **_fingerprints(document.fingerprint),
            )
        )


class PeerView(View):
    """One peer."""

    @extend_schema(
        operation_id="peers_get",
        summary="Describe a peer",
        description="For administrators, operators and viewers.",
        parameters=[NAME],
        responses={200: PeerAnswer},
    )
    def get(self, request: Request, name: str) -> Response:
        """Describe."""
        require_overseer(self.principal)
        return Response(representation(peer_row(name)))

    @extend_schema(
        operation_id="peers_change",
        summary="Change what a peer may do",
        parameters=[NAME],
        request=ChangeSerializer,
        responses={200: PeerAnswer},
        examples=[
            OpenApiExample("Let the peer have this domain host replicas", value={"host": True}, request_only=True)
        ],
    )
    def patch(self, request: Request, name: str) -> Response:
        """Change."""
        require_administrator(self.principal)
        return Response(representation(peer_change(principal=self.principal, name=name, **self.body(ChangeSerializer))))

    @extend_schema(
        operation_id="peers_remove",
        summary="Remove a peer, or decline one that asks",
        description="Ends all exchange with the domain and refuses its tokens. Events that it sent are kept. The "
        "domain is notified if it answers.",
        parameters=[NAME],
        responses={204: None},
    )
    def delete(self, request: Request, name: str) -> Response:
        """Remove."""
        row = peer_remove(principal=self.principal, name=name)
        revocations().refresh()
        farewell(row)
        return Response(status=204)


class PeerApprovalsView(View):
    """Approvals of a domain that asks."""

    @extend_schema(
        operation_id="peers_approve",
        summary="Approve a domain that asks",
        parameters=[NAME],
        request=ApprovalSerializer,
        responses={200: PeerAnswer},
        examples=[OpenApiExample("Compared", value={"fingerprint": "Kp4s 0kVb 9dQe ..."}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Approve."""
        require_administrator(self.principal)
        return Response(_described(peer_approve(principal=self.principal, name=name, **self.body(ApprovalSerializer))))


class PeerSuspensionsView(View):
    """Suspensions of a peer."""

    @extend_schema(
        operation_id="peers_suspend",
        summary="Suspend a peer",
        description="Stops all exchange with the peer, and refuses its tokens, until it is resumed. Both domains keep "
        "their events.",
        parameters=[NAME],
        request=ReasonSerializer,
        responses={200: PeerAnswer},
        examples=[OpenApiExample("With the reason", value={"note": "floods this domain"}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Suspend."""
        require_administrator(self.principal)
        return Response(_described(peer_suspend(principal=self.principal, name=name, **self.body(ReasonSerializer))))


class PeerResumptionsView(View):
    """Resumptions of a suspended peer."""

    @extend_schema(
        operation_id="peers_resume",
        summary="Resume a suspended peer",
        description="Events that were missed meanwhile are exchanged, as after an outage.",
        parameters=[NAME],
        request=ReasonSerializer,
        responses={200: PeerAnswer},
        examples=[OpenApiExample("With a note", value={"note": "talked to Bea"}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Resume."""
        require_administrator(self.principal)
        return Response(_described(peer_resume(principal=self.principal, name=name, **self.body(ReasonSerializer))))


def representation(row: PeerRow) -> PeerAnswer:
    """Return a peer as answers show it."""
    delivery, standing, now = delivery_get(row.name), _standing(row.name), timezone.now()
    contacts = filter(None, (_seconds(row.heard_at), standing.request_at, standing.answer_at))
    return PeerAnswer.of(
        row,
        **peer_members(row),
        **_fingerprints(row.fingerprint),
        heard_at=_moment(max(contacts, default=None)),
        contact=PeerContact(request_at=_moment(standing.request_at), answer_at=_moment(standing.answer_at)),
        problem=problem(delivery, standing, now) if row.active else None,
        hello=PeerHello(
            failures=row.hello_failures,
            problem=row.hello_problem or None,
            next_at=None if row.hello_at is None else timestamp(row.hello_at),
        ),
        delivery=None
        if delivery is None
        else PeerDeliveryState.of(delivery, failure=delivery.failure or None, detail=delivery.detail or None),
    )


def problem(delivery: PeerDelivery | None, standing: PeerStanding, now: datetime) -> PeerProblem | None:
    """Return why a peer receives nothing, since when, and what to do; None where delivery works."""
    if delivery is not None and delivery.failures:
        since, until = _seconds(delivery.first_failure_at), _seconds(delivery.next_try_at)
        kind: Failure | Standstill = Failure(delivery.failure)
        detail = delivery.detail
    else:
        standstill = standing.standstill(delivery.backlog if delivery else 0, now.timestamp())
        if standstill is None:
            return None
        kind, detail = standstill, standing.detail(standstill)
        since, until = standing.span(standstill)
    return PeerProblem(kind=kind.value, since=_moment(since), until=_moment(until), detail=detail, advice=ADVICE[kind])


def _standing(peer: str) -> PeerStanding:
    """Return the peer's standing from Redis; an empty one while Redis does not answer."""
    try:
        return standings([peer])[peer]
    except RedisError:
        return PeerStanding()


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(datetime.fromtimestamp(seconds, UTC))


def _described(row: PeerRow) -> PeerAnswer:
    """Return the peer after a hello to it. This process sees the change at once, other processes within their cache
    time.
    """
    revocations().refresh()
    after = greet(row.name)
    return representation(row if after is None else after)


def _fingerprints(theirs: str) -> dict[str, str]:
    ours = read(own_document()).fingerprint
    return {
        "fingerprint": theirs,
        "fingerprint_shown": fingerprint_shown(theirs),
        "own_fingerprint": ours,
        "own_fingerprint_shown": fingerprint_shown(ours),
        "safety_number": peers.safety_number(ours, theirs),
    }


def _statement(url: str, document: Any) -> Signed:
    """Return the document in the request, or the one published at the address.

    Raises InvalidRequest, PeerUnreachable.
    """
    if document is not None:
        try:
            inner = document.get("document", document) if isinstance(document, Mapping) else document
            return from_published(inner)
        except BadDocument as error:
            raise InvalidRequest(str(error)) from None
    if not url:
        raise InvalidRequest("Give the url of the other domain, or its document.")
    try:
        return document_fetch(url)
    except FetchFailed as error:
        raise PeerUnreachable(f"The domain at {url} cannot be inspected: {error}", retry_after_s=5) from None
