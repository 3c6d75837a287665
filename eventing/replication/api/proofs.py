"""/api/v1/rps/{id}/proof: the proof of one event, which a reader can verify by itself."""

from __future__ import annotations

import base64
import re

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.errors import InvalidRequest
from eventing.core.events.cursors import OFFSET_MAX, Cursor
from eventing.peering.api.evidence import seal_answer
from eventing.peering.rules.domain_documents import published
from eventing.replication.services.proofs import CheckedProof, event_proof
from eventing.replication.shapes import EventProofAnswer
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require

_OFFSET = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)
EVENT = OpenApiParameter("cursor", str, description="The event's cursor, as returned when it was read.")
OFFSET = OpenApiParameter(
    "offset",
    {"type": "integer", "minimum": 1, "maximum": OFFSET_MAX},
    description="Instead of a cursor: the event's offset in this domain's log in the present epoch.",
)


class EventProofView(View):
    """The proof of one event."""

    @extend_schema(
        operation_id="rps_proof",
        summary="Prove one event",
        description="The event's exact bytes, the seal of its origin that covers it, the Merkle path (RFC 9162) from "
        "the "
        "event's leaf hash to the sealed root, and the domain document of the origin, by whose key the seal is signed. "
        "Requires the operation `history`. An event of this domain that is not sealed yet is sealed first.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, EVENT, OFFSET],
        responses={200: EventProofAnswer},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Return the proof."""
        descriptor = descriptor_get(reference)
        require(descriptor, self.principal, "history")
        return Response(representation(event_proof(rp=descriptor.id, place=self._place())))

    def _place(self) -> Cursor | int:
        cursor, offset = self.query("cursor"), self.query("offset")
        if (cursor is None) == (offset is None):
            raise InvalidRequest("Give either the event's cursor or its offset.")
        if cursor is not None:
            return Cursor.parse(cursor)
        if offset is None or not _OFFSET.fullmatch(offset) or int(offset) > OFFSET_MAX:
            raise InvalidRequest(f"offset must be a number from 1 to {OFFSET_MAX}.")
        return int(offset)


def representation(proof: CheckedProof) -> EventProofAnswer:
    """Return a proof as answers show it, with bytes in base64."""
    seal = proof.seal
    return EventProofAnswer.of(
        seal,
        sequence=proof.sequence,
        event=_base64(proof.event),
        leaf_index=proof.sequence - seal.first,
        tree_size=seal.count,
        path=[_base64(one) for one in proof.path],
        seal=seal_answer(proof.statement),
        document=published(proof.document),
        carriers=list(proof.carriers),
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
