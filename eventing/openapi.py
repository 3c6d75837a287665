"""/api/v1/schema: the OpenAPI 3.1 description, of the management interface and of the hot path's."""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.api import documents as access
from eventing.gateway.openapi_paths import PATHS
from eventing.operations.api import alarm_documents, session_documents
from eventing.peering.api import documents as peers
from eventing.peering.api import trust_documents
from eventing.reports.api import documents as reports
from eventing.rest.base import View
from eventing.rest.documents import common, ref
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
"""Forms of all answers, joined from the subjects."""

_PROBLEM = {
    "description": "A refusal: problem document.",
    "content": {"application/problem+json": {"schema": ref("Problem")}},
}
_METHODS = ("get", "post", "put", "patch", "delete")
_TAGS = {
    "rps": "Rendezvous points",
    "subscriptions": "Durable subscriptions",
    "tokens": "Tokens",
    "limits": "Limits",
    "keys": "Signing keys",
    "revocations": "Revocations",
    "audit": "Audit",
}


class Schema(View):
    """The description, as JSON; open to everybody."""

    authentication_classes = ()
    permission_classes = ()
    schema = None

    def get(self, request: Request) -> Response:
        """The description."""
        return Response(_document(), headers={"Access-Control-Allow-Origin": "*"})


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the description names our tokens."""

    target_class = "eventing.access.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """The scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}


def add_edge_paths(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """drf-spectacular's hook: add the hot path, the forms of answers, and the problem document to every operation."""
    for path, item in deepcopy(PATHS).items():
        result["paths"].setdefault(path, {}).update(item)
    components = result.setdefault("components", {})
    components.setdefault("schemas", {}).update(deepcopy(SCHEMAS))
    components.setdefault("responses", {})["Problem"] = deepcopy(_PROBLEM)
    for name, schema in components["schemas"].items():
        if name not in SCHEMAS and schema.get("type") == "object":
            schema["additionalProperties"] = False  # what we do not know is refused, not ignored
    for item in result["paths"].values():
        for method in _METHODS:
            if method in item:
                for status, answer in item[method]["responses"].items():
                    answer["description"] = answer.get("description") or HTTPStatus(int(status)).phrase
                item[method]["responses"]["default"] = {"$ref": "#/components/responses/Problem"}
    result["tags"] = [{"name": name, "description": about} for name, about in _TAGS.items()]
    return result


@lru_cache(maxsize=1)
def _document() -> dict[str, Any]:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    document: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document
