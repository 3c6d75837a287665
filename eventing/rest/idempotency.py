"""Idempotency-Key on creations: a repeated request gets the first answer, without a second creation."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import to_builtins
from rest_framework.response import Response

from eventing.core.errors import InvalidRequest
from eventing.rest.base import View
from eventing.rest.idempotency_records import (
    IdempotencyClaim,
    StoredAnswer,
    idempotency_answer,
    idempotency_claim,
    idempotency_release,
)

HEADER = "Idempotency-Key"


def created_once(
    view: View, create: Callable[[IdempotencyClaim | None], str], answer: Callable[[str], Response]
) -> Response:
    """Answer a creation.

    Args:
        create: makes the resource, fulfilling the claim in its transaction if there is one, and returns its id.
        answer: the 201 for a resource's id.
    """
    key = view.request.headers.get(HEADER)
    if key is None:
        return answer(create(None))
    request, body = view.request, view.request.data
    if not isinstance(body, dict):
        raise InvalidRequest("The body is a JSON object.")
    outcome = idempotency_claim(
        principal=view.principal, key=key, method=str(request.method), path=request.path, body=body
    )
    if isinstance(outcome, StoredAnswer):
        if outcome.status is not None:
            return Response(outcome.body, status=outcome.status, headers=dict(outcome.headers))
        resource = outcome.resource
    else:
        resource = _create(outcome, create)
    response = answer(resource)
    headers = {name: response.headers[name] for name in ("ETag", "Location") if name in response.headers}
    idempotency_answer(
        record=outcome.record, status=response.status_code, body=to_builtins(response.data), headers=headers
    )
    return response


def _create(claim: IdempotencyClaim, create: Callable[[IdempotencyClaim | None], str]) -> str:
    """Create; after any failure release the key, so that the client may repeat with it."""
    resource = None
    try:
        resource = create(claim)
    finally:
        if resource is None:
            idempotency_release(claim=claim)
    return resource
