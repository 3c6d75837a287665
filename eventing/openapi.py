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

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.shapes import component_name, components
from eventing.gateway.openapi_paths import PATHS
from eventing.gateway.shapes import AcknowledgedAnswer, PublishedAnswer, PulledAnswer
from eventing.rest.base import View
from eventing.rest.documents import ref
from eventing.rest.examples import PEER as DOMAIN_EXAMPLE
from eventing.rest.examples import TEXT_OF_TYPE, ExampleMaker
from eventing.rest.shapes import ProblemAnswer

_PROBLEM = {
    "description": "Problem document.",
    "content": {"application/problem+json": {"schema": ref("Problem")}},
}
_METHODS = ("get", "post", "put", "patch", "delete")
_TAGS = {
    "rps": ("Rendezvous points", "Create, change and delete rendezvous points; publish events, and read them."),
    "subscriptions": (
        "Durable subscriptions",
        "Subscriptions that outlive a connection: pulled and acknowledged, or delivered to an endpoint of yours.",
    ),
    "cloudevents": ("CloudEvents subscriptions", "Durable subscriptions by the CloudEvents Subscriptions API."),
    "intakes": ("Intakes", "Addresses at which webhooks of other systems become events."),
    "endpoints": ("Endpoints", "Endpoints of all durable subscriptions, and how deliveries go."),
    "tokens": ("Tokens", "Issue tokens, and make Biscuits that their holders can narrow."),
    "keys": ("Signing keys", "The keys that sign tokens; rotate and retire them."),
    "revocations": ("Revocations", "Tokens, subjects and keys that are rejected before they expire."),
    "limits": ("Limits", "Rates and quotas of the requesting principal, and their use."),
    "leases": ("Leases", "Everything with a lease, the soonest to end first."),
    "names": ("Names", "The tree of names of rendezvous points, one level at a time."),
    "sessions": ("Sessions", "Connections of readers and publishers; disconnect them."),
    "alarms": ("Alarms", "Alarms of watch rules, and their acknowledgement."),
    "contact-points": ("Contact points", "Who is notified of alarms, by webhook or mail."),
    "watches": ("Watch rules of the domain", "Rules whose violation raises alarms, for the domain as a whole."),
    "audit": ("Audit", "Who did what, chained by hashes; a list and an export."),
    "reports": ("Reports", "Reports over the access records, and their tables."),
    "admin": (
        "Administrative state",
        "Snapshots of the domain and of rendezvous points, and the catalogue of administrative events.",
    ),
    "peers": ("Peers", "Other domains that this one exchanges events with."),
    "replicas": ("Replicas", "Rendezvous points of other domains that this one holds."),
    "evidence": ("Evidence", "Proofs of equivocation by other domains."),
    "misbehaviour": ("Misbehaviour", "Rejected behaviour of other domains, counted by kind."),
    "quarantines": ("Quarantines", "Origins whose events are rejected because of a proof."),
    "overlay": ("Overlay", "The federation beyond peers: directory, links, joining and leaving."),
    "plan": ("Self-administration", "Plans for replicas, homes and routes: limits, decisions, dry runs."),
    "drain": ("Draining", "Hand over what this domain serves before it stops."),
}
"""Titles and descriptions of the tags, in the order of the document."""
SESSION_COOKIE = "herald_session"


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


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The security scheme of the console's session, without the port that the real name of its cookie ends with."""

    target_class = "rest_framework.authentication.SessionAuthentication"
    name = "session"
    priority = 1

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        about = (
            f"The console's session, for its own pages. The cookie's name is {SESSION_COOKIE}_ and the domain's port."
        )
        return {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE, "description": about}


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
    result["tags"] = [
        {"name": name, "x-displayName": title, "description": about} for name, (title, about) in _TAGS.items()
    ]
    _add_addresses(result)
    _add_examples(result)
    return result


def _add_addresses(document: dict[str, Any]) -> None:
    base = config().base_url
    document["servers"] = [{"url": base, "description": f"The domain {config().domain}"}]
    document["externalDocs"] = {"url": f"{base}/docs/protocol", "description": "The protocol in words"}


def _add_examples(document: dict[str, Any]) -> None:
    """Give every parameter of a path, and every answer, an example where it has none."""
    maker = ExampleMaker(document["components"]["schemas"])
    for item in document["paths"].values():
        for operation in (item[method] for method in _METHODS if method in item):
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path" and "examples" not in parameter["schema"]:
                    parameter["schema"] = {
                        **parameter["schema"],
                        "examples": [_path_example(operation, parameter, maker)],
                    }
            for answer in operation["responses"].values():
                for media_type, media in answer.get("content", {}).items():
                    _add_example(media_type, media, maker)
    for answer in document["components"]["responses"].values():
        for media_type, media in answer["content"].items():
            _add_example(media_type, media, maker)


def _add_example(media_type: str, media: dict[str, Any], maker: ExampleMaker) -> None:
    if "example" not in media and "examples" not in media:
        if media_type in TEXT_OF_TYPE:
            media["example"] = TEXT_OF_TYPE[media_type]
        elif media_type.endswith("json"):
            media["example"] = maker.value(media.get("schema", {}))


def _path_example(operation: dict[str, Any], parameter: dict[str, Any], maker: ExampleMaker) -> Any:
    if parameter["name"] == "name":  # of a domain, wherever it is in a path
        return DOMAIN_EXAMPLE
    return maker.value(parameter["schema"], parameter["name"])


@per_process
def _document() -> dict[str, Any]:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    document: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document
