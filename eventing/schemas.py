"""The forms of all answers, joined from the subjects, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from eventing.access.api import documents as access
from eventing.operations.api import alarm_documents, session_documents
from eventing.peering.api import documents as peers
from eventing.peering.api import trust_documents
from eventing.reports.api import documents as reports
from eventing.rest.documents import common
from eventing.rps.api import documents as rendezvous_points
from eventing.rps.api import event_documents
from eventing.subscriptions.api import documents as subscriptions

SCHEMAS: dict[str, Any] = {
    **common.SCHEMAS,
    **event_documents.SCHEMAS,
    **rendezvous_points.SCHEMAS,
    **subscriptions.SCHEMAS,
    **session_documents.SCHEMAS,
    **access.SCHEMAS,
    **peers.SCHEMAS,
    **trust_documents.SCHEMAS,
    **alarm_documents.SCHEMAS,
    **reports.SCHEMAS,
}
