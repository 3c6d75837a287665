"""/api/v1/overlay: this domain's part in the overlay of its federation."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.conf import config
from eventing.core.errors import Forbidden, InvalidRequest, NotFound
from eventing.core.names import ZONE_PATTERN
from eventing.core.principals import Principal
from eventing.core.roles import oversees
from eventing.core.timestamps import timestamp
from eventing.membership.models import DirectoryDomain, OverlayLink
from eventing.membership.rules.sponsoring import day_of, quota_of
from eventing.membership.selectors import directory
from eventing.membership.selectors.membership import (
    founders,
    founders_all,
    link_of,
    links_all,
    membership_get,
    sponsorships_since,
)
from eventing.membership.selectors.picture import KnownNow, known_now, picture_looked_at
from eventing.membership.services.joining import overlay_found, overlay_leave, require_administrator
from eventing.membership.services.own_record import own_record_problem
from eventing.membership.shapes import (
    OverlayAnswer,
    OverlayDomainAnswer,
    OverlayDomainExplanation,
    OverlayDomainPage,
    OverlayFounderAnswer,
    OverlayLinkAnswer,
    OverlayLinkList,
    OverlayZone,
)
from eventing.membership.wire.joining import join
from eventing.overlay.directory_records import DAY_S
from eventing.peering.selectors.domain_documents import own_fingerprint
from eventing.peering.selectors.peers import peer_found, peers_active
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer
from eventing.rest.fields import StrictObject, StrictString
from eventing.store.errors import RedisError
from eventing.store.overlay_queues import overlay_again, overlay_running

NAME_CHARS = 253
SPONSOR_CHARS = 255
DOMAIN = OpenApiParameter(
    "name", {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"}, OpenApiParameter.PATH
)
SEARCH = OpenApiParameter(
    "search", {"type": "string", "maxLength": NAME_CHARS}, description="Only domains whose name contains this."
)
ZONE = OpenApiParameter("zone", {"type": "string", "maxLength": 32}, description="Only domains of this zone.")


class JoinSerializer(StrictObject):
    """The sponsor."""

    sponsor = StrictString(min_length=1, max_length=SPONSOR_CHARS, help_text="Name or address of an active peer.")


class OverlayView(View):
    """This domain's membership."""

    @extend_schema(
        operation_id="overlay_get",
        summary="Describe this domain's part in the overlay",
        description="For administrators, operators and viewers.",
        responses={200: OverlayAnswer},
    )
    def get(self, request: Request) -> Response:
        """Describe."""
        _require_overseer(self.principal)
        return Response(representation())


class OverlayFoundingsView(View):
    """Founding of an overlay."""

    @extend_schema(
        operation_id="overlay_found",
        summary="Found an overlay",
        description="Makes this domain the first of a federation: it needs no sponsor, and may sponsor its peers. For administrators.",
        request=None,
        responses={200: OverlayAnswer},
    )
    def post(self, request: Request) -> Response:
        """Found."""
        overlay_found(principal=self.principal)
        return Response(representation())


class OverlayJoinsView(View):
    """Joining an overlay."""

    @extend_schema(
        operation_id="overlay_join",
        summary="Join the overlay of a peer",
        description="Asks an active peer for sponsorship, and takes part in its overlay. A member keeps its own sponsor, and trusts the "
        "founder of the other federation as well. For administrators.",
        request=JoinSerializer,
        responses={200: OverlayAnswer},
        examples=[OpenApiExample("By name", value={"sponsor": "b.example"}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Join."""
        require_administrator(self.principal)
        join(principal=self.principal, reference=self.body(JoinSerializer)["sponsor"])
        _again()
        return Response(representation())


class OverlayLeavesView(View):
    """Leaving the overlay."""

    @extend_schema(
        operation_id="overlay_leave",
        summary="Leave the overlay",
        description="Ends all overlay links. Peers and rendezvous points stay as they are. For administrators.",
        request=None,
        responses={200: OverlayAnswer},
    )
    def post(self, request: Request) -> Response:
        """Leave."""
        overlay_leave(principal=self.principal)
        _again()
        return Response(representation())


class OverlayLinksView(View):
    """Links of the overlay."""

    @extend_schema(
        operation_id="overlay_links",
        summary="List overlay links",
        description="Links that stand, then those that ended lately, each with the reason. For administrators, operators and viewers.",
        responses={200: OverlayLinkList},
    )
    def get(self, request: Request) -> Response:
        """List."""
        _require_overseer(self.principal)
        rows, peers = links_all(), {peer.name for peer in peers_active()}
        zones, known = directory.zones_of([row.peer for row in rows]), known_now()
        items = [_link(row, row.peer in peers, zones.get(row.peer, ""), known) for row in rows]
        return Response(OverlayLinkList(items=items))


class OverlayDomainsView(View):
    """The directory."""

    @extend_schema(
        operation_id="overlay_domains",
        summary="List the domains of the overlay",
        description="The directory by name: who exists, with what is known of each. For administrators, operators and viewers.",
        parameters=[SEARCH, ZONE, docs.CURSOR, docs.LIMIT],
        responses={200: OverlayDomainPage},
    )
    def get(self, request: Request) -> Response:
        """List."""
        _require_overseer(self.principal)
        search, zone = self.query("search") or "", self.query("zone")
        if len(search) > NAME_CHARS or "\0" in search:
            raise InvalidRequest("search is a part of a domain's name.")
        if zone is not None and not ZONE_PATTERN.fullmatch(zone):
            raise InvalidRequest("zone is the name of a zone.")
        page = directory.domains_page(search=search, zone=zone, cursor=self.query("cursor"), limit=self.limit())
        known, linked = known_now(), {link.peer for link in links_all() if link.up}
        return page_answer(page, [OverlayDomainAnswer.of(row, **_members(row, known, linked)) for row in page.items])


class OverlayDomainView(View):
    """One domain of the directory."""

    @extend_schema(
        operation_id="overlay_explain",
        summary="Explain a domain of the overlay",
        description="Its record, its chain of sponsors, and the link with it: why it was made, or ended. For administrators, operators "
        "and viewers.",
        parameters=[DOMAIN],
        responses={200: OverlayDomainExplanation},
    )
    def get(self, request: Request, name: str) -> Response:
        """Explain."""
        _require_overseer(self.principal)
        row = directory.domain_row(name)
        if row is None:
            raise NotFound("The directory has no such domain. `herald overlay domains` lists all domains.")
        chain = [record.domain for record in directory.chain_of(name)]
        link, peer, known = link_of(name), peer_found(name), known_now()
        active = peer is not None and peer.active
        linked = {name} if link is not None and link.up else set()
        return Response(
            OverlayDomainExplanation.of(
                row,
                **_members(row, known, linked),
                sponsors=chain[1:],
                rooted=bool(chain) and chain[-1] in founders(),
                peer=None if peer is None else peer.state,
                link=None if link is None else _link(link, active, row.zone, known),
                suspicion=known.suspected.get(name),
                scores=known.scores_of(name),
            )
        )


def representation() -> OverlayAnswer:
    """Return this domain's membership as answers show it."""
    membership, links = membership_get(), links_all()
    today = day_of(time.time())
    running = membership is not None and _running()
    return OverlayAnswer(
        domain=config().domain,
        joined=membership is not None,
        running=running,
        problem=None if membership is None else own_record_problem() or None,
        mode=config().overlay,
        joined_at=None if membership is None else timestamp(membership.joined_at),
        sponsor=None if membership is None else membership.sponsor or None,
        version=None if membership is None else membership.version,
        fingerprint=own_fingerprint(),
        founders=[OverlayFounderAnswer.of(row) for row in founders_all()],
        domains=directory.domains_count(),
        links=sum(1 for link in links if link.up),
        zones=[OverlayZone(zone=zone, domains=count) for zone, count in directory.zones_counted()],
        sponsored_today=sponsorships_since(today * DAY_S),
        quota=quota_of(founder=membership is not None and not membership.sponsor),
        picture=picture_looked_at() if running else None,
    )


def _members(row: DirectoryDomain, known: KnownNow, linked: Collection[str]) -> dict[str, Any]:
    return {
        "url": row.url or None,
        "sponsor": row.sponsor or None,
        "linked": row.name in linked,
        "rtt_ms": known.seen.rtt_ms.get(row.name),
        "suspected": row.name in known.suspected,
        "load": known.seen.loads.get(row.name),
    }


def _link(row: OverlayLink, anchor: bool, zone: str, known: KnownNow) -> OverlayLinkAnswer:
    return OverlayLinkAnswer.of(
        row,
        anchor=anchor,
        zone=zone,
        rtt_ms=known.seen.rtt_ms.get(row.peer) if row.up else None,
        suspected=row.peer in known.suspected,
        scores=known.scores_of(row.peer),
    )


def _require_overseer(principal: Principal) -> None:
    if not oversees(principal):
        raise Forbidden("Reading the overlay requires the role administrator, operator or viewer.")


def _running() -> bool:
    try:
        return overlay_running()
    except RedisError:
        return False


def _again() -> None:
    """Have the process of the overlay take in the change; it finds it by itself at its next start."""
    with suppress(RedisError):
        overlay_again()
