"""/api/v1/peers/{name}/delivery, /links, /retry and /replay: state of forwarding to a peer, and acts on the peer;
/api/v1/rps/{reference}/spread: which domains hold the events of an RP.
"""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.events.cursors import CURSOR_CHARS_MAX
from eventing.core.names import NAME_CHARS_MAX
from eventing.log import watermarks
from eventing.peering.api.peers import NAME
from eventing.peering.api.peers import representation as peer_representation
from eventing.peering.models import PeerDelivery as DeliveryRow
from eventing.peering.selectors.deliveries import delivery_get
from eventing.peering.selectors.peers import peer_row
from eventing.peering.services.peers import require_overseer
from eventing.peering.shapes import PeerAnswer
from eventing.replication.links import peer_links
from eventing.replication.operating import EARLIEST, replay, retry
from eventing.replication.shapes import PeerDeliveryAnswer, PeerHolding, PeerLinkPage, PeerReplayAnswer, TrafficTotals
from eventing.replication.spreading import EVENTS_MAX, spread
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer
from eventing.rest.fields import NothingSerializer, StrictObject, StrictString
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require
from eventing.rps.shapes import SpreadAnswer
from eventing.store import peer_state

LINKS_SHOWN_MAX = 1000


class PeerDeliveryView(View):
    """Delivery to one peer."""

    @extend_schema(
        operation_id="peers_delivery",
        summary="Show the state of forwarding to a peer",
        description="The failure and its begin, the time of the next attempt, the number of waiting events and the "
        "time of the oldest, per rendezvous point the version vector that the peer last stated, and the traffic "
        "with the peer so far. At most 1,000 rendezvous points are listed.",
        parameters=[NAME],
        responses={200: PeerDeliveryAnswer},
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the delivery."""
        require_overseer(self.principal)
        return Response(representation(peer_row(name).name))


class PeerLinksView(View):
    """Links with one peer."""

    @extend_schema(
        operation_id="peers_links",
        summary="List the links with a peer",
        description="One per rendezvous point that is shared with it, by id: whether it carries runs (`eager`) or "
        "vectors only "
        "(`lazy`), what either side holds, and how many events each lacks. For administrators, operators and viewers.",
        parameters=[NAME, docs.CURSOR, docs.LIMIT],
        responses={200: PeerLinkPage},
    )
    def get(self, request: Request, name: str) -> Response:
        """List."""
        require_overseer(self.principal)
        page = peer_links(peer_row(name).name, cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, page.items)


class SpreadView(View):
    """Domains that hold the newest events of a rendezvous point."""

    @extend_schema(
        operation_id="rps_spread",
        summary="List which domains hold the newest events",
        description=f"At most {EVENTS_MAX} events, the newest first, each with the domains that hold it according to "
        "their last version vectors. Requires the operation `history`.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.LIMIT],
        responses={200: SpreadAnswer},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Return the events with the domains that hold them."""
        row = rendezvous_point_get(reference)
        require(descriptor_of(row), self.principal, "history")
        return Response(spread(row, limit=self.limit()))


def representation(peer: str) -> PeerDeliveryAnswer:
    """Return a delivery as answers show it."""
    links = list(watermarks.links_all(peer).items())[:LINKS_SHOWN_MAX]
    return PeerDeliveryAnswer.of(
        delivery_get(peer) or DeliveryRow(peer_id=peer),
        peer=peer,
        traffic=TrafficTotals(**peer_state.traffic_taken(peer)),
        links=[
            PeerHolding(
                rp=rp,
                vector=dict(sorted(link.theirs.items())),
                lazy=sorted(link.tree.lazy),
                pruned=sorted(link.tree.pruned),
            )
            for rp, link in links
        ],
    )


class ReplaySerializer(StrictObject):
    """The events to send again."""

    rp = StrictString(min_length=1, max_length=NAME_CHARS_MAX, help_text="The rendezvous point, by id or name.")
    after = StrictString(
        required=False,
        default=EARLIEST,
        min_length=1,
        max_length=CURSOR_CHARS_MAX,
        help_text=f"A cursor of this domain's log, or {EARLIEST} (the default).",
    )


class PeerRetriesView(View):
    """Immediate retry of a peer."""

    @extend_schema(
        operation_id="peers_retry",
        summary="Retry a peer now",
        description="For administrators and operators. Ends the pause after failures, also if delivery had stopped: a "
        "hello is sent at once (`hello` in the answer states its outcome), and then the waiting events.",
        parameters=[NAME],
        request=NothingSerializer,
        responses={200: PeerAnswer},
        examples=[OpenApiExample("Retry now", value={}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Retry the peer."""
        self.body(NothingSerializer)
        return Response(peer_representation(retry(principal=self.principal, name=name)))


class PeerReplaysView(View):
    """Renewed offer of events to a peer."""

    @extend_schema(
        operation_id="peers_replay",
        summary="Offer a peer events again",
        description="For administrators and operators. Offers the events of a rendezvous point after a cursor as if "
        "the peer had never stated to hold them. The peer does not store an event twice.",
        parameters=[NAME],
        request=ReplaySerializer,
        responses={202: PeerReplayAnswer},
        examples=[
            OpenApiExample("All held events", value={"rp": docs.ID_EXAMPLE}, request_only=True),
            OpenApiExample("After a cursor", value={"rp": docs.ID_EXAMPLE, "after": "f2h5ue7q:120"}, request_only=True),
        ],
    )
    def post(self, request: Request, name: str) -> Response:
        """Offer the events again."""
        body = self.body(ReplaySerializer)
        replay(principal=self.principal, name=name, reference=body["rp"], after=body["after"])
        return Response(PeerReplayAnswer(peer=peer_row(name).name, **body), status=202)
