"""/api/v1/misbehaviour and /api/v1/quarantines: counted misbehaviour of other domains, and the origins whose events are
refused.
"""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.errors import Forbidden, InvalidRequest
from eventing.core.roles import oversees
from eventing.peering.models import Misbehaviour as MisbehaviourRow
from eventing.peering.models import Quarantine as QuarantineRow
from eventing.peering.rules.misbehaviour import KINDS
from eventing.peering.selectors.misbehaviour import misbehaviour_page
from eventing.peering.selectors.quarantines import quarantines_list
from eventing.peering.services.quarantines import quarantine_lift
from eventing.peering.shapes import (
    MisbehaviourAnswer,
    MisbehaviourPage,
    QuarantineAnswer,
    QuarantineEvidence,
    QuarantineList,
)
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer

NAME_CHARS = 253
KIND = OpenApiParameter("kind", str, enum=list(KINDS), description="Only this kind.")
DOMAIN = OpenApiParameter(
    "domain",
    {"type": "string", "maxLength": NAME_CHARS},
    description="Only misbehaviour that this domain carried or originated.",
)
ORIGIN = OpenApiParameter("origin", {"type": "string", "maxLength": NAME_CHARS}, OpenApiParameter.PATH)


class OverseersView(View):
    """Base of both lists, which require a principal with oversight of the domain."""

    def require_overseer(self) -> None:
        """Raise Forbidden unless the principal oversees the domain: administrator, operator or viewer."""
        if not oversees(self.principal):
            raise Forbidden(
                "This list requires the role administrator, operator or viewer of this domain, and a token that is "
                "not narrowed."
            )


class MisbehaviourView(OverseersView):
    """Counts of misbehaviour."""

    @extend_schema(
        operation_id="misbehaviour_list",
        summary="List misbehaviour of other domains",
        description="For administrators, operators and viewers of the domain: one item per kind, carrier (the peer "
        "that delivered it) and origin (the domain concerned, if another), with the count and the detail of the "
        "last occurrence.",
        parameters=[KIND, DOMAIN, docs.CURSOR, docs.LIMIT],
        responses={200: MisbehaviourPage},
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


class QuarantinesView(OverseersView):
    """List of quarantined origins."""

    @extend_schema(
        operation_id="quarantines_list",
        summary="List quarantines",
        description="For administrators, operators and viewers of the domain, newest first.",
        responses={200: QuarantineList},
    )
    def get(self, request: Request) -> Response:
        """List."""
        self.require_overseer()
        return Response(QuarantineList(items=[quarantine(row) for row in quarantines_list()]))


class QuarantineView(View):
    """One quarantine."""

    @extend_schema(
        operation_id="quarantines_lift",
        summary="Lift a quarantine",
        description="For administrators whose token is not narrowed. The domain's events are accepted again; the "
        "evidence is kept.",
        parameters=[ORIGIN],
        responses={204: None},
    )
    def delete(self, request: Request, origin: str) -> Response:
        """Lift."""
        quarantine_lift(principal=self.principal, origin=origin)
        return Response(status=204)


def representation(row: MisbehaviourRow) -> MisbehaviourAnswer:
    """Return a count as answers show it."""
    about = next((text for kind, text in KINDS.items() if kind == row.kind), "")
    return MisbehaviourAnswer.of(row, id=str(row.pk), about=about, origin=row.origin or row.carrier, rp=row.rp or None)


def quarantine(row: QuarantineRow) -> QuarantineAnswer:
    """Return a quarantine as answers show it."""
    proof = row.evidence
    return QuarantineAnswer.of(row, evidence=None if proof is None else QuarantineEvidence.of(proof))
