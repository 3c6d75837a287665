"""/api/v1/evidence: the proofs of equivocation that are kept, to look at and to take elsewhere."""

from __future__ import annotations

import base64
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.core.errors import InvalidRequest
from eventing.core.signing import Signed
from eventing.core.timestamps import timestamp
from eventing.peering.models import Evidence as EvidenceRow
from eventing.peering.rules.domain_documents import published
from eventing.peering.selectors.domain_documents import domain_statement
from eventing.peering.selectors.evidence import evidence_get, evidence_page, seals_of
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer

ORIGIN_CHARS_MAX = 253
ORIGIN = OpenApiParameter(
    "origin", {"type": "string", "maxLength": ORIGIN_CHARS_MAX}, description="Only those against this domain."
)
DIGEST = OpenApiParameter("digest", {"type": "string", "pattern": "^[0-9a-f]{64}$"}, OpenApiParameter.PATH)


class EvidenceList(View):
    """The proofs."""

    @extend_schema(
        operation_id="evidence_list",
        summary="List proofs of equivocation",
        description="Newest first; for administrators, operators and viewers.",
        parameters=[ORIGIN, docs.CURSOR, docs.LIMIT],
        responses={200: docs.ref("EvidencePage")},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        origin = self.query("origin")
        if origin is not None and (len(origin) > ORIGIN_CHARS_MAX or "\0" in origin):
            raise InvalidRequest("origin is the name of a domain.")
        page = evidence_page(origin=origin, cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, [representation(row) for row in page.items])


class Evidence(View):
    """One proof."""

    @extend_schema(
        operation_id="evidence_get",
        summary="Export a proof of equivocation",
        description="The two seals that contradict each other, as their origin signed them, and its domain document (null if "
        "it is not known here any more), so that whoever gets this file can check it without this domain. For "
        "administrators, operators and viewers.",
        parameters=[DIGEST],
        responses={200: docs.ref("EvidenceExport")},
    )
    def get(self, request: Request, digest: str) -> Response:
        """Export."""
        require_overseer(self.principal)
        row = evidence_get(digest)
        document = domain_statement(row.origin)
        exported = {
            **representation(row),
            "seals": [_seal(statement) for statement in seals_of(row)],
            "document": None if document is None else published(document),
        }
        name = f'attachment; filename="herald-evidence-{row.digest[:16]}.json"'
        return Response(exported, headers={"Content-Disposition": name})


def representation(row: EvidenceRow) -> dict[str, Any]:
    """A proof in lists."""
    return {
        "digest": row.digest,
        "origin": row.origin,
        "rp": row.rp,
        "epoch": row.epoch,
        "carrier": row.carrier or None,
        "found_at": timestamp(row.found_at),
    }


def _seal(statement: Signed) -> dict[str, str]:
    return {
        "payload": base64.b64encode(statement.payload).decode(),
        "kid": statement.kid,
        "signature": base64.b64encode(statement.signature).decode(),
    }
