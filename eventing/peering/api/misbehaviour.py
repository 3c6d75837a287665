"""/api/v1/misbehaviour and /api/v1/quarantines: what other domains did wrong, and whose events are refused for it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.errors import Forbidden, InvalidRequest
from eventing.core.roles import oversees
from eventing.core.timestamps import timestamp
from eventing.peering.models import Misbehaviour as MisbehaviourRow
from eventing.peering.models import Quarantine as QuarantineRow
from eventing.peering.rules.misbehaviour import KINDS
from eventing.peering.selectors.misbehaviour import misbehaviour_page
from eventing.peering.selectors.quarantines import quarantines_list
from eventing.peering.services.quarantines import quarantine_lift
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer

NAME_CHARS = 253
KIND = OpenApiParameter("kind", str, enum=list(KINDS), description="Only this kind.")
DOMAIN = OpenApiParameter(
    "domain", {"type": "string", "maxLength": NAME_CHARS}, description="Only what this domain carried, or is about."
)
ORIGIN = OpenApiParameter("origin", {"type": "string", "maxLength": NAME_CHARS}, OpenApiParameter.PATH)


class OverseersView(View):
    """What both lists need: somebody who oversees the domain."""

    def require_overseer(self) -> None:
        """Raises Forbidden for everybody but those who see all of the domain: administrators, operators, viewers."""
        if not oversees(self.principal):
            raise Forbidden(
                "Only an administrator, operator or viewer of this domain sees this, with a token for all of it."
            )


class Misbehaviour(OverseersView):
    """The counts."""

    @extend_schema(
        operation_id="misbehaviour_list",
        summary="List misbehaviour of other domains",
        description="For administrators, operators and viewers of the domain: one item per kind, carrier (the peer it "
        "came from) and origin (the domain it is about, if another), with the count and the words of the last time.",
        parameters=[KIND, DOMAIN, docs.CURSOR, docs.LIMIT],
        responses={200: docs.ref("MisbehaviourPage")},
    )
    def get(self, request: Request) -> Response:
        """List."""
        self.require_overseer()
        kind, domain = self.query("kind"), self.query("domain")
        if kind is not None and kind not in KINDS:
            raise InvalidRequest(f"kind is one of {', '.join(KINDS)}.")
        if domain is not None and (len(domain) > NAME_CHARS or "\0" in domain):
            raise InvalidRequest("domain is the name of a domain.")
        page = misbehaviour_page(kind=kind, domain=domain, cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, [representation(row) for row in page.items])


class Quarantines(OverseersView):
    """Whose events are refused."""

    @extend_schema(
        operation_id="quarantines_list",
        summary="List quarantines",
        description="For administrators, operators and viewers of the domain, newest first.",
        responses={200: docs.ref("QuarantineList")},
    )
    def get(self, request: Request) -> Response:
        """List."""
        self.require_overseer()
        return Response({"items": [quarantine(row) for row in quarantines_list()]})


class Quarantine(View):
    """One quarantine."""

    @extend_schema(
        operation_id="quarantines_lift",
        summary="Lift a quarantine",
        description="For administrators whose token is not narrowed. The domain's events are taken again; the evidence is kept.",
        parameters=[ORIGIN],
        responses={204: None},
    )
    def delete(self, request: Request, origin: str) -> Response:
        """Lift."""
        quarantine_lift(principal=self.principal, origin=origin)
        return Response(status=204)


def representation(row: MisbehaviourRow) -> dict[str, Any]:
    """A count in answers."""
    return {
        "id": str(row.pk),
        "kind": row.kind,
        "about": next((text for kind, text in KINDS.items() if kind == row.kind), ""),
        "carrier": row.carrier,
        "origin": row.origin or row.carrier,
        "count": row.count,
        "rp": row.rp or None,
        "detail": row.detail,
        "first_at": timestamp(row.first_at),
        "last_at": timestamp(row.last_at),
    }


def quarantine(row: QuarantineRow) -> dict[str, Any]:
    """A quarantine in answers."""
    proof = row.evidence
    return {
        "origin": row.origin,
        "why": row.why,
        "since": timestamp(row.since),
        "evidence": None if proof is None else {"digest": proof.digest, "rp": proof.rp, "carrier": proof.carrier},
    }
