"""/api/v1/peers: other domains, and what administrators here decide about them (peering/rules/peers.py has the states).

Nobody is added unseen: `look` fetches what a domain states of itself, an administrator compares the fingerprint with the
other domain's administrator, and states it when adding or approving. The other domain is told at once if it answers, else
later, so the answers here show how things are after that.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from redis.exceptions import RedisError
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
from eventing.peering.rules.deliveries import ADVICE, Failure, Standing, Standstill
from eventing.peering.rules.domain_documents import BadDocument, fingerprint_shown, from_published, read
from eventing.peering.selectors.deliveries import delivery_get
from eventing.peering.selectors.event_data import peer_data
from eventing.peering.selectors.peers import peer_row, peers_all
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
from eventing.peering.wire.hello import farewell, greet
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import Integer, Members, Text, Truth

FINGERPRINT_CHARS_MAX = 128  # with spaces between its groups
NAME = OpenApiParameter(
    "name", {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"}, OpenApiParameter.PATH
)
_FINGERPRINT = (
    "The fingerprint that you compared with the other domain's administrator. Spaces in it do not matter; another one "
    "than the domain's is refused."
)


class Document(serializers.JSONField):
    """What a domain publishes at /.well-known/herald, or its member `document`."""


class Source(Members):
    """Where a domain's document is: published at its address, or here."""

    url = Text(required=False, min_length=1, max_length=peers.URL_CHARS_MAX, help_text="Of the other domain.")
    document = Document(
        required=False,
        help_text="What the other domain publishes at /.well-known/herald, where it cannot be reached from here.",
    )


class Trust(Members):
    """What a peer may do, and how much it may send."""

    push = Truth(required=False, help_text="It may send us events. Default: true.")
    host = Truth(required=False, help_text="It may have us host replicas of its rendezvous points. Default: false.")
    gossip = Truth(required=False, help_text="It takes part in gossip. Default: true.")
    events_per_s = Integer(required=False, max_value=peers.RATE_MAX, help_text=f"Default: {peers.EVENTS_PER_S}.")
    bytes_per_s = Integer(required=False, max_value=peers.RATE_MAX, help_text=f"Default: {peers.BYTES_PER_S}.")
    requests_per_s = Integer(required=False, max_value=peers.RATE_MAX, help_text=f"Default: {peers.REQUESTS_PER_S}.")
    note = Text(required=False, allow_blank=True, max_length=peers.NOTE_CHARS_MAX, help_text="For administrators.")


class Addition(Source, Trust):
    """A domain to add."""

    fingerprint = Text(min_length=1, max_length=FINGERPRINT_CHARS_MAX, help_text=_FINGERPRINT)


class Approval(Trust):
    """An approval."""

    fingerprint = Text(min_length=1, max_length=FINGERPRINT_CHARS_MAX, help_text=_FINGERPRINT)
    url = Text(
        required=False,
        min_length=1,
        max_length=peers.URL_CHARS_MAX,
        help_text="Where it is reached; absent: where its document says.",
    )


class Change(Trust):
    """A change of a peer."""

    url = Text(required=False, min_length=1, max_length=peers.URL_CHARS_MAX, help_text="Where it is reached.")


class Reason(Members):
    """Why."""

    note = Text(required=False, allow_blank=True, max_length=peers.NOTE_CHARS_MAX, help_text="For administrators.")


class Peers(View):
    """The peers."""

    @extend_schema(
        operation_id="peers_list",
        summary="List the peers",
        description="By name, those that ask included; for whoever oversees the domain.",
        responses={200: docs.ref("PeerList")},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        return Response({"items": [representation(row) for row in peers_all()]})

    @extend_schema(
        operation_id="peers_add",
        summary="Add a peer",
        description="State where it is (`url`, or its `document`) and the `fingerprint` that you compared. It is `active` once "
        "its administrator has approved too; adding a domain that asks approves it. Repeating it asks again.",
        request=Addition,
        responses={201: docs.ref("Peer"), 200: docs.ref("Peer")},
        examples=[
            OpenApiExample(
                "A domain that you looked at",
                value={"url": "https://b.example", "fingerprint": "Kp4s 0kVb 9dQe ...", "host": True},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Add."""
        require_administrator(self.principal)
        stated = self.body(Addition)
        url = stated.pop("url", "")
        statement = _statement(url, stated.pop("document", None))
        known = PeerRow.objects.filter(name=document_read(statement).domain).exists()
        row = peer_add(principal=self.principal, statement=statement, url=url, **stated)
        return Response(_told(row), status=200 if known else 201)


class PeerLooks(View):
    """Looking at a domain before it is added."""

    @extend_schema(
        operation_id="peers_look",
        summary="Look at a domain",
        description="What it states of itself, and the fingerprints to compare. Nothing is changed and nobody is trusted by it. "
        "For administrators.",
        request=Source,
        responses={200: docs.ref("PeerLook")},
        examples=[OpenApiExample("By its address", value={"url": "https://b.example"}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Look."""
        require_administrator(self.principal)
        stated = self.body(Source)
        document = document_read(_statement(stated.get("url", ""), stated.get("document")))
        row = PeerRow.objects.filter(name=document.domain).first()
        return Response(
            {
                "domain": document.domain,
                "url": stated.get("url", document.url).rstrip("/"),
                **_fingerprints(document.fingerprint),
                "issued_at": document.issued_at,
                "versions": list(document.versions),
                "state": None if row is None else row.state,
            }
        )


class Peer(View):
    """One peer."""

    @extend_schema(
        operation_id="peers_get",
        summary="Describe a peer",
        description="For whoever oversees the domain.",
        parameters=[NAME],
        responses={200: docs.ref("Peer")},
    )
    def get(self, request: Request, name: str) -> Response:
        """Describe."""
        require_overseer(self.principal)
        return Response(representation(peer_row(name)))

    @extend_schema(
        operation_id="peers_change",
        summary="Change what a peer may do",
        parameters=[NAME],
        request=Change,
        responses={200: docs.ref("Peer")},
        examples=[OpenApiExample("It may have us host replicas", value={"host": True}, request_only=True)],
    )
    def patch(self, request: Request, name: str) -> Response:
        """Change."""
        require_administrator(self.principal)
        return Response(representation(peer_change(principal=self.principal, name=name, **self.body(Change))))

    @extend_schema(
        operation_id="peers_remove",
        summary="Remove a peer, or decline one that asks",
        description="Nothing is exchanged with it any more, and its tokens are refused. What it sent stays. It is told, if it answers.",
        parameters=[NAME],
        responses={204: None},
    )
    def delete(self, request: Request, name: str) -> Response:
        """Remove."""
        row = peer_remove(principal=self.principal, name=name)
        revocations().look()
        farewell(row)
        return Response(status=204)


class PeerApprovals(View):
    """Approvals of a domain that asks."""

    @extend_schema(
        operation_id="peers_approve",
        summary="Approve a domain that asks",
        parameters=[NAME],
        request=Approval,
        responses={200: docs.ref("Peer")},
        examples=[OpenApiExample("Compared", value={"fingerprint": "Kp4s 0kVb 9dQe ..."}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Approve."""
        require_administrator(self.principal)
        return Response(_told(peer_approve(principal=self.principal, name=name, **self.body(Approval))))


class PeerSuspensions(View):
    """Suspensions of a peer."""

    @extend_schema(
        operation_id="peers_suspend",
        summary="Suspend a peer",
        description="Nothing is exchanged with it until it is resumed, and its tokens are refused; both keep what they have.",
        parameters=[NAME],
        request=Reason,
        responses={200: docs.ref("Peer")},
        examples=[OpenApiExample("With the reason", value={"note": "floods us"}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Suspend."""
        require_administrator(self.principal)
        return Response(_told(peer_suspend(principal=self.principal, name=name, **self.body(Reason))))


class PeerResumptions(View):
    """Resumptions of a suspended peer."""

    @extend_schema(
        operation_id="peers_resume",
        summary="Resume a suspended peer",
        description="What was missed meanwhile flows, as after an outage.",
        parameters=[NAME],
        request=Reason,
        responses={200: docs.ref("Peer")},
        examples=[OpenApiExample("With a note", value={"note": "talked to Bea"}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Resume."""
        require_administrator(self.principal)
        return Response(_told(peer_resume(principal=self.principal, name=name, **self.body(Reason))))


def representation(row: PeerRow) -> dict[str, Any]:
    """A peer in answers."""
    delivery, standing, now = delivery_get(row.name), _standing(row.name), timezone.now()
    return {
        **peer_data(row),
        **_fingerprints(row.fingerprint),
        "events_per_s": row.events_per_s,
        "bytes_per_s": row.bytes_per_s,
        "requests_per_s": row.requests_per_s,
        "note": row.note,
        "heard_at": _moment(
            max(filter(None, (_seconds(row.heard_at), standing.request_at, standing.answer_at)), default=None)
        ),
        "contact": {"request_at": _moment(standing.request_at), "answer_at": _moment(standing.answer_at)},
        "problem": problem(delivery, standing, now) if row.active else None,
        "hello": {
            "failures": row.hello_failures,
            "problem": row.hello_problem or None,
            "next_at": None if row.hello_at is None else timestamp(row.hello_at),
        },
        "delivery": None
        if delivery is None
        else {
            "failures": delivery.failures,
            "failure": delivery.failure or None,
            "detail": delivery.detail or None,
            "first_failure_at": None if delivery.first_failure_at is None else timestamp(delivery.first_failure_at),
            "next_try_at": None if delivery.next_try_at is None else timestamp(delivery.next_try_at),
            "stopped_at": None if delivery.stopped_at is None else timestamp(delivery.stopped_at),
            "backlog": delivery.backlog,
            "oldest_at": None if delivery.oldest_at is None else timestamp(delivery.oldest_at),
        },
        "created_at": timestamp(row.created_at),
        "changed_at": timestamp(row.changed_at),
    }


def problem(delivery: PeerDelivery | None, standing: Standing, now: datetime) -> dict[str, Any] | None:
    """Why nothing arrives at a peer, since when, and what to do; None where all is well."""
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
    return {
        "kind": kind.value,
        "since": _moment(since),
        "until": _moment(until),
        "detail": detail,
        "advice": ADVICE[kind],
    }


def _standing(peer: str) -> Standing:
    """What Redis knows of the peer; nothing while Redis is away."""
    try:
        return standings([peer])[peer]
    except RedisError:
        return Standing()


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(datetime.fromtimestamp(seconds, UTC))


def _told(row: PeerRow) -> dict[str, Any]:
    """The peer after it was told, if it answers; this process knows at once, the others as they hear of it."""
    revocations().look()
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
    """The document that was stated, or what is published at the address. Raises InvalidRequest, PeerUnreachable."""
    if document is not None:
        try:
            inner = document.get("document", document) if isinstance(document, Mapping) else document
            return from_published(inner)
        except BadDocument as error:
            raise InvalidRequest(str(error)) from None
    if not url:
        raise InvalidRequest("State the url of the other domain, or its document.")
    try:
        return document_fetch(url)
    except FetchFailed as error:
        raise PeerUnreachable(f"{url} cannot be looked at: {error}", retry_after_s=5) from None
