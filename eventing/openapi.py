"""/api/v1/schema: the OpenAPI 3.1 description of the management interface and of the hot path."""

from __future__ import annotations

from copy import deepcopy
from http import HTTPStatus
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import Direction
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.container import per_process
from eventing.core.shapes import component_name, components
from eventing.gateway.openapi_paths import PATHS
from eventing.gateway.shapes import AcknowledgedAnswer, PublishedAnswer, PulledAnswer
from eventing.rest.base import View
from eventing.rest.documents import ref
from eventing.rest.shapes import ProblemAnswer

_PROBLEM = {
    "description": "Problem document.",
    "content": {"application/problem+json": {"schema": ref("Problem")}},
}
_METHODS = ("get", "post", "put", "patch", "delete")
_TAGS = {
    "rps": "Rendezvous points",
    "subscriptions": "Durable subscriptions",
    "cloudevents": "CloudEvents Subscriptions API",
    "tokens": "Tokens",
    "limits": "Limits",
    "keys": "Signing keys",
    "revocations": "Revocations",
    "audit": "Audit",
}


class SchemaView(View):
    """The OpenAPI description, as JSON; without authentication."""

    authentication_classes = ()
    permission_classes = ()
    schema = None

    def get(self, request: Request) -> Response:
        """Return the description."""
        return Response(_document(), headers={"Access-Control-Allow-Origin": "*"})


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The security scheme of Herald's tokens."""

    target_class = "eventing.access.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}


class ShapeSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """The component of a shape, and of the shapes that it consists of."""

    target_class = "eventing.core.shapes.Shape"
    match_subclasses = True

    def get_name(self, auto_schema: Any, direction: Direction) -> str:
        """Name the component."""
        return component_name(self.target.__name__)

    def get_identity(self, auto_schema: Any, direction: Direction) -> str:
        """Identify the component by its name, as nested components are."""
        return self.get_name(auto_schema, direction)

    def map_serializer(self, auto_schema: Any, direction: Direction) -> dict[str, Any]:
        """Make the component's schema, and register those that it refers to."""
        made = components(self.target)
        own = made.pop(self.get_name(auto_schema, direction))
        for name, schema in made.items():
            component = ResolvedComponent(name=name, type=ResolvedComponent.SCHEMA, object=name, schema=schema)  # type: ignore[no-untyped-call]
            if component not in auto_schema.registry:
                auto_schema.registry.register(component)
        return own


class ClosedSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """The component of a request body: members that are not known are refused, not ignored."""

    target_class = "eventing.rest.fields.StrictObject"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Direction) -> dict[str, Any]:
        """Make its schema."""
        made: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**made, "additionalProperties": False} if made.get("properties") else made


def add_gateway_paths(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Add the hot path, the schemas of answers, and the problem document of every operation; a hook of drf-spectacular."""
    for path, item in deepcopy(PATHS).items():
        result["paths"].setdefault(path, {}).update(item)
    parts = result.setdefault("components", {})
    parts.setdefault("schemas", {}).update(components(ProblemAnswer, PublishedAnswer, PulledAnswer, AcknowledgedAnswer))
    parts.setdefault("responses", {})["Problem"] = deepcopy(_PROBLEM)
    for item in result["paths"].values():
        for method in _METHODS:
            if method in item:
                for status, answer in item[method]["responses"].items():
                    answer["description"] = answer.get("description") or HTTPStatus(int(status)).phrase
                item[method]["responses"]["default"] = {"$ref": "#/components/responses/Problem"}
    result["tags"] = [{"name": name, "description": about} for name, about in _TAGS.items()]
    return result


@per_process
def _document() -> dict[str, Any]:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    document: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document
