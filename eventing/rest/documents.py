"""Parameters and headers of the OpenAPI document, and the forms of references."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter

from eventing.core.events.positions import TIME_PATTERN, TIME_PREFIX
from eventing.sql.pages import LIMIT_DEFAULT, LIMIT_MAX

ID_EXAMPLE = "xiqk5k5qzcxbyjkpq2mkvxv3ti"

CURSOR = OpenApiParameter("cursor", str, description="The `next` of the previous page, with the same filters.")

LIMIT = OpenApiParameter(
    "limit",
    {"type": "integer", "minimum": 1, "default": LIMIT_DEFAULT},
    description=f"Most items examined for the page; more than {LIMIT_MAX} is lowered to it.",
)

PREFIX = OpenApiParameter("prefix", str, description="Only names in this subtree, `/authority/a/`, ordered by name.")

SORT = OpenApiParameter(
    "sort",
    str,
    enum=["created", "name", "ends"],
    description="`created`: newest first; `name`: those without a name last; `ends`: earliest end of the lease first.",
)

Q = OpenApiParameter(
    "q",
    {"type": "string", "maxLength": 100},
    description="Only those with this text in name or title, in any case, or at the beginning of the id.",
)

_PART = "[A-Za-z0-9._~-]{1,64}"

REFERENCE_SCHEMA = {
    "type": "string",
    "pattern": rf"^(domain\.admin|[a-z2-7]{{26}}(\.admin)?|/?({_PART}/){{1,16}}|{_PART})$",
    "examples": [ID_EXAMPLE, "/example.org/sensors/roof/"],
}

REFERENCE_BEFORE_ACTION_SCHEMA = {
    **REFERENCE_SCHEMA,
    "pattern": rf"^(domain\.admin|[a-z2-7]{{26}}(\.admin)?|/?({_PART}/){{1,16}})$",
}

REFERENCE = OpenApiParameter(
    "reference",
    REFERENCE_SCHEMA,
    OpenApiParameter.PATH,
    description="Id, `ID.admin`, `domain.admin`, `overlay.admin`, or a name with its slashes percent-encoded, the last one included: "
    "`%2Fauthority%2Fa%2Fb%2F`.",
)

REFERENCE_BEFORE_ACTION = OpenApiParameter(
    "reference", REFERENCE_BEFORE_ACTION_SCHEMA, OpenApiParameter.PATH, description=REFERENCE.description
)

_FEED_PATTERN = "[a-z2-7]{16}=(0|[1-9][0-9]{0,14})"

CURSOR_PATTERN = f"[a-z2-7]{{1,26}}:(0|[1-9][0-9]{{0,14}})(~{_FEED_PATTERN}([.]{_FEED_PATTERN}){{0,64}})?"
BEGIN_PATTERN = f"^(now|earliest|last|{TIME_PREFIX}{TIME_PATTERN}|{CURSOR_PATTERN})$"

SUBSCRIPTION_ID_SCHEMA = {"type": "string", "pattern": "^sub_[a-z2-7]{26}$"}

SUBSCRIPTION_ID = OpenApiParameter("subscription_id", SUBSCRIPTION_ID_SCHEMA, OpenApiParameter.PATH)

IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="The `ETag` of what is to be changed; else 412."
)

ETAG = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    response=[200, 201],
    description="Changes with whatever can be changed by `PATCH`; for `If-Match`.",
)

LOCATION = OpenApiParameter(
    "Location", str, OpenApiParameter.HEADER, response=[201], description="Path of the resource, by id."
)

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255},
    OpenApiParameter.HEADER,
    description="A request repeated with the same key within a day gets the first answer.",
)


def ref(name: str) -> dict[str, str]:
    """Make a reference to the component called `name`."""
    return {"$ref": f"#/components/schemas/{name}"}
