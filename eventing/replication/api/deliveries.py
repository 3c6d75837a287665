"""/api/v1/peers/{name}/delivery and /links: how forwarding to a peer goes; /api/v1/rps/{reference}/spread: who holds what."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.timestamps import timestamp
from eventing.peering.selectors.deliveries import delivery_get
from eventing.peering.selectors.peers import peer_row
from eventing.peering.services.peers import require_overseer
from eventing.peering.wire import traffic
from eventing.replication.forwarding import watermarks
from eventing.replication.peer_links import peer_links
from eventing.replication.spreading import EVENTS_MAX, spread
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require

LINKS_SHOWN_MAX = 1000
NAME = OpenApiParameter("name", {"type": "string", "maxLength": 253}, OpenApiParameter.PATH)


class PeerDelivery(View):
    """The delivery to one peer."""

    @extend_schema(
        operation_id="peers_delivery",
        summary="How forwarding to a peer goes",
        description="What failed since when, when it is tried next, how many events wait and since when, and per "
        "rendezvous point what the peer holds, as it said last; and what was taken of it so far. At most 1,000 rendezvous points are listed.",
        parameters=[NAME],
        responses={200: docs.ref("PeerDelivery")},
    )
    def get(self, request: Request, name: str) -> Response:
        """Show."""
        require_overseer(self.principal)
        return Response(representation(peer_row(name).name))


class PeerLinks(View):
    """The links with one peer."""

    @extend_schema(
        operation_id="peers_links",
        summary="List the links with a peer",
        description="One per rendezvous point that is shared with it, by id: whether it carries runs (`eager`) or vectors only "
        "(`lazy`), what either side holds, and how many events each lacks. For whoever oversees the domain.",
        parameters=[NAME, docs.CURSOR, docs.LIMIT],
        responses={200: docs.ref("PeerLinkPage")},
    )
    def get(self, request: Request, name: str) -> Response:
        """List."""
        require_overseer(self.principal)
        page = peer_links(peer_row(name).name, cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, page.items)


class Spread(View):
    """Where the newest events of a rendezvous point are."""

    @extend_schema(
        operation_id="rps_spread",
        summary="Where the newest events are",
        description=f"At most {EVENTS_MAX} events, the newest first, each with the domains that hold it, as far as they have "
        "said so here. Needs the operation `history`.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.LIMIT],
        responses={200: docs.ref("Spread")},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Look."""
        row = rendezvous_point_get(reference)
        require(descriptor_of(row), self.principal, "history")
        return Response(spread(row, limit=self.limit()))


def representation(peer: str) -> dict[str, Any]:
    """A delivery in answers."""
    row = delivery_get(peer)
    links = watermarks.links_all(peer)

    def moment(name: str) -> str | None:
        value = getattr(row, name) if row is not None else None
        return None if value is None else timestamp(value)

    return {
        "peer": peer,
        "failures": row.failures if row is not None else 0,
        "failure": row.failure if row is not None else "",
        "detail": row.detail if row is not None else "",
        "first_failure_at": moment("first_failure_at"),
        "next_try_at": moment("next_try_at"),
        "stopped_at": moment("stopped_at"),
        "backlog": row.backlog if row is not None else 0,
        "oldest_at": moment("oldest_at"),
        "traffic": traffic.taken(peer),
        "links": [
            {
                "rp": rp,
                "vector": dict(sorted(link.theirs.items())),
                "lazy": sorted(link.lazy),
                "pruned": sorted(link.pruned),
            }
            for rp, link in list(links.items())[:LINKS_SHOWN_MAX]
        ],
    }
