"""/api/v1/admin: the catalogue, snapshots, the export of names."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpResponse, HttpResponseNotModified, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from admin_rp import catalogue
from admin_rp.names import names_begin, names_run
from admin_rp.shapes import DomainSnapshot, RpSnapshot
from admin_rp.snapshots import domain_snapshot, overlay_snapshot, rp_snapshot
from eventing.core.errors import Forbidden, NotFound
from eventing.core.ids import admin_id, is_admin
from eventing.core.roles import oversees
from eventing.membership.map_shapes import MapSnapshot
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require

_FOREVER_S = 365 * 86_400
_VERSION = OpenApiParameter(
    "v", str, description="Digest from an `ETag`: if it is the present one, the answer may be cached permanently."
)
_JSON: dict[str, Any] = {"type": "object"}
_NAME: dict[str, Any] = {
    "type": "object",
    "description": "One line: an RP, or, in the last line, the cursor.",
    "properties": {
        "id": {"type": "string"},
        "name": {"type": ["string", "null"]},
        "title": {"type": "string"},
        "home": {"type": "string"},
        "version": {"type": "integer"},
        "cursor": {"type": "string"},
    },
}


class CatalogueView(View):
    """The catalogue of administrative events."""

    @extend_schema(
        operation_id="admin_catalogue",
        summary="The catalogue of administrative events",
        description="Per type the schema of its data and its effects on the states, and the empty states. The "
        "catalogue is the same for everybody and changes only with an upgrade of the domain: send "
        "`If-None-Match`.",
        parameters=[_VERSION],
        responses={200: _JSON},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Return the catalogue."""
        packs = _takes_gzip(request.headers.get("Accept-Encoding", ""))
        tag = f'"{catalogue.etag()}{"-gzip" if packs else ""}"'
        answer = get_conditional_response(request._request, etag=tag)
        if answer is None:
            content = catalogue.packed() if packs else catalogue.exported()
            answer = HttpResponse(content, content_type="application/json")
            if packs:
                answer["Content-Encoding"] = "gzip"
        if not isinstance(answer, HttpResponseNotModified):
            current = self.query("v") == catalogue.etag()
            answer["Cache-Control"] = f"private, max-age={_FOREVER_S}, immutable" if current else "private, max-age=60"
        answer["ETag"] = tag
        answer["Vary"] = "Accept-Encoding"
        return answer


class DomainSnapshotView(View):
    """Snapshot of the domain."""

    @extend_schema(
        operation_id="admin_snapshot",
        summary="Snapshot of the domain",
        description="The state, and the cursor of `domain.admin` from which to follow it. For administrators, "
        "operators and viewers.",
        responses={200: DomainSnapshot},
    )
    def get(self, request: Request) -> Response:
        """Return the snapshot."""
        require_overseer(self)
        return Response(domain_snapshot(), headers={"Cache-Control": "no-store"})


class OverlaySnapshotView(View):
    """Snapshot of the map of the overlay."""

    @extend_schema(
        operation_id="overlay_snapshot",
        summary="Snapshot of the map of the overlay",
        description="All domains of the directory, the links of this domain and the last sample, and the cursor of "
        "`overlay.admin` from which to follow them. With 10,000 domains about 2 MB. For administrators, operators and viewers.",
        responses={200: MapSnapshot},
    )
    def get(self, request: Request) -> Response:
        """Return the snapshot."""
        require_overseer(self)
        return Response(overlay_snapshot(), headers={"Cache-Control": "no-store"})


class RendezvousPointSnapshotView(View):
    """Snapshot of an RP."""

    @extend_schema(
        operation_id="rps_snapshot",
        summary="Snapshot of a rendezvous point",
        description="The state, and the cursor of `ID.admin` from which to follow it. Requires permission to read "
        "`ID.admin`, or oversight of the domain.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        responses={200: RpSnapshot},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Return the snapshot."""
        found = descriptor_get(reference)
        if is_admin(found.id):
            raise NotFound("An administrative rendezvous point has no administrative rendezvous point of its own.")
        if not oversees(self.principal):
            require(descriptor_get(admin_id(found.id)), self.principal, "subscribe")
        return Response(rp_snapshot(found.id), headers={"Cache-Control": "no-store"})


class NamesExportView(View):
    """Export of all names."""

    @extend_schema(
        operation_id="admin_names",
        summary="Export all names",
        description="JSON Lines by id: every RP with its name, and in the last line the cursor of `domain.admin` from "
        "which to continue; without that line the answer is incomplete. For administrators, operators and "
        "viewers.",
        responses={(200, "application/x-ndjson"): _NAME},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export."""
        require_overseer(self)
        answer = StreamingHttpResponse(_lines(names_begin()), content_type="application/x-ndjson")
        answer["Cache-Control"] = "no-store"
        return answer


def _takes_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding allows gzip (RFC 9110, section 12.5.3)."""
    for coding in header.split(","):
        name, _, weight = coding.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return weight.replace(" ", "").lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


async def _lines(cursor: str) -> AsyncIterator[bytes]:
    """Yield one run of RPs per piece, then the cursor."""
    after, run_of = "", sync_to_async(names_run)
    while run := await run_of(after):
        yield b"".join(json.dumps(one._asdict(), ensure_ascii=False).encode() + b"\n" for one in run)
        after = run[-1].id
    yield json.dumps({"cursor": cursor}).encode() + b"\n"


def require_overseer(view: View) -> None:
    """Raise Forbidden unless the principal oversees the domain."""
    if not oversees(view.principal):
        raise Forbidden("This requires the role administrator, operator or viewer of this domain.")
