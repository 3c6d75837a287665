"""/api/v1/evidence: the stored proofs of equivocation, to list and to export."""

from __future__ import annotations

import base64

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.core.errors import InvalidRequest
from eventing.core.signing import Signed
from eventing.peering.models import Evidence as EvidenceRow
from eventing.peering.rules.domain_documents import published
from eventing.peering.selectors.domain_documents import domain_statement
from eventing.peering.selectors.evidence import evidence_get, evidence_page, seals_of
from eventing.peering.shapes import EvidenceAnswer, EvidenceExport, EvidencePage, SealAnswer
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer

ORIGIN_CHARS_MAX = 253
ORIGIN = OpenApiParameter(
    "origin", {"type": "string", "maxLength": ORIGIN_CHARS_MAX}, description="Only proofs against this domain."
)
DIGEST = OpenApiParameter("digest", {"type": "string", "pattern": "^[0-9a-f]{64}$"}, OpenApiParameter.PATH)


class EvidenceListView(View):
    """List of proofs."""

    @extend_schema(
        operation_id="evidence_list",
        summary="List proofs of equivocation",
        description="Newest first; for administrators, operators and viewers.",
        parameters=[ORIGIN, docs.CURSOR, docs.LIMIT],
        responses={200: EvidencePage},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        origin = self.query("origin")
        if origin is not None and (len(origin) > ORIGIN_CHARS_MAX or "\0" in origin):
            raise InvalidRequest("origin is the name of a domain.")
        page = evidence_page(origin=origin, cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, [representation(row) for row in page.items])


class EvidenceView(View):
    """One proof."""

    @extend_schema(
        operation_id="evidence_get",
        summary="Export a proof of equivocation",
        description="The two seals that contradict each other, as their origin signed them, and its domain document "
        "(null if "
        "it is not known here any more), so that anybody can verify the file without this domain. For "
        "administrators, operators and viewers.",
        parameters=[DIGEST],
        responses={200: EvidenceExport},
    )
    def get(self, request: Request, digest: str) -> Response:
        """Export."""
        require_overseer(self.principal)
        row = evidence_get(digest)
        document = domain_statement(row.origin)
        exported = EvidenceExport.of(
            row,
            carrier=row.carrier or None,
            seals=[seal_answer(statement) for statement in seals_of(row)],
            document=None if document is None else published(document),
        )
        name = f'attachment; filename="herald-evidence-{row.digest[:16]}.json"'
        return Response(exported, headers={"Content-Disposition": name})


def representation(row: EvidenceRow) -> EvidenceAnswer:
    """Return a proof as lists show it."""
    return EvidenceAnswer.of(row, carrier=row.carrier or None)


def seal_answer(statement: Signed) -> SealAnswer:
    """Return a seal as it was signed."""
    return SealAnswer(
        payload=base64.b64encode(statement.payload).decode(),
        kid=statement.kid,
        signature=base64.b64encode(statement.signature).decode(),
    )
