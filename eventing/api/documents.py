"""The OpenAPI description's parts that are data: parameters and the forms of answers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter

from eventing.core.cursors import OFFSET_MAX
from eventing.core.policy import OPERATIONS
from eventing.core.tokens import PATTERN_CHARS_MAX, PATTERNS_MAX
from eventing.selectors.pages import LIMIT_DEFAULT, LIMIT_MAX

ID_EXAMPLE = "xiqk5k5qzcxbyjkpq2mkvxv3ti"

CURSOR = OpenApiParameter("cursor", str, description="The `next` of the page before, with the same filters.")
LIMIT = OpenApiParameter(
    "limit",
    {"type": "integer", "minimum": 1, "default": LIMIT_DEFAULT},
    description=f"Most items looked at for the page; more than {LIMIT_MAX} is lowered to it.",
)
PREFIX = OpenApiParameter("prefix", str, description="Only names in this subtree, `/authority/a/`, ordered by name.")
SCOPE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "rps": {
            "type": "array",
            "description": "Patterns: an id, a name /authority/a/b/, all names under one /authority/a/*, or * for all.",
            "items": {"type": "string", "minLength": 1, "maxLength": PATTERN_CHARS_MAX},
            "minItems": 1,
            "maxItems": PATTERNS_MAX,
        },
        "ops": {
            "type": "array",
            "items": {"type": "string", "enum": list(OPERATIONS)},
            "minItems": 1,
            "maxItems": len(OPERATIONS),
        },
    },
    "required": ["rps", "ops"],
    "additionalProperties": False,
}
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
    description="Id, `ID.admin`, `domain.admin`, or a name with its slashes percent-encoded, the last one included: "
    "`%2Fauthority%2Fa%2Fb%2F`.",
)
REFERENCE_BEFORE_ACTION = OpenApiParameter(
    "reference", REFERENCE_BEFORE_ACTION_SCHEMA, OpenApiParameter.PATH, description=REFERENCE.description
)
CURSOR_PATTERN = "[a-z2-7]{1,26}:(0|[1-9][0-9]{0,14})"
SUBSCRIPTION_ID_SCHEMA = {"type": "string", "pattern": "^sub_[a-z2-7]{26}$"}
SUBSCRIPTION_ID = OpenApiParameter("subscription_id", SUBSCRIPTION_ID_SCHEMA, OpenApiParameter.PATH)
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description='The `ETag` of the version to change, `"3"`; else 412.'
)
ETAG = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    response=[200, 201],
    description='The version in quotes, `"3"`; for `If-Match`.',
)
LOCATION = OpenApiParameter(
    "Location", str, OpenApiParameter.HEADER, response=[201], description="Where it is managed, by id."
)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255},
    OpenApiParameter.HEADER,
    description="Repeating the request with the same key within a day gets the first one's answer.",
)


def ref(name: str) -> dict[str, str]:
    """A reference to a schema below."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(optional: tuple[str, ...] = (), **members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": [name for name in members if name not in optional],
    }


_TEXT: dict[str, Any] = {"type": "string"}
_TEXT_OR_NULL: dict[str, Any] = {"type": ["string", "null"]}
_TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": OFFSET_MAX}
_TRUTH: dict[str, Any] = {"type": "boolean"}
_PLACE: dict[str, dict[str, Any]] = {
    "epoch": {"type": "string", "description": "Life of the log's numbering; another epoch is another log."},
    "offset": {"type": "integer", "minimum": 0, "description": "Place of the last event; 0 before the first."},
    "cursor": {"type": "string", "description": "What a reader holds to continue; opaque."},
}


def _page_of(name: str) -> dict[str, Any]:
    return _object(
        items={"type": "array", "items": ref(name)}, next={**_TEXT_OR_NULL, "description": "null: the last."}
    )


_KEY = _object(
    kid={"type": "string", "description": "The RFC 7638 thumbprint."},
    state={"type": "string", "enum": ["published", "signing", "verifying", "retired"]},
    not_before={**_TIME, "description": "It signs from then on."},
    not_after={
        "type": ["string", "null"],
        "format": "date-time",
        "description": "It verifies until then; null: no end yet.",
    },
    created_at=_TIME,
)
SCHEMAS: dict[str, Any] = {
    "Problem": {
        **_object(
            type={"type": "string", "description": "urn:herald:problem:CODE; stable."},
            title=_TEXT,
            status={"type": "integer"},
            detail={"type": "string", "description": "What is wrong, and what to do next."},
        ),
        "description": "RFC 9457; some types add members (docs/protocol.md).",
    },
    "History": _object(
        max_events=_COUNT,
        max_bytes=_COUNT,
        max_age_s={"type": ["integer", "null"], "description": "null: no bound by age."},
    ),
    "Lease": _object(
        asked_s={"type": ["integer", "null"], "description": "null: nothing was stated."},
        granted_s=_COUNT,
        expires_at=_TIME,
    ),
    "Renewal": _object(lease=ref("Lease")),
    "RendezvousPoint": {
        **_object(
            ("genesis",),
            id=_TEXT,
            name=_TEXT_OR_NULL,
            title=_TEXT,
            domain={"type": "string", "description": "Its home."},
            creator={"type": "string", "description": "Subject that administers it; empty for the domain's own."},
            version={"type": "integer", "minimum": 1, "description": "Grows with every change; the ETag."},
            epoch={"type": ["string", "null"], "description": "null: it has no log (yet); the first publish makes it."},
            offset=_PLACE["offset"],
            history=ref("History"),
            lease={"oneOf": [ref("Lease"), {"type": "null"}], "description": "null: it lives with what it reports on."},
            policy={"type": "array", "items": {"type": "object"}},
            ack=_TEXT,
            created_at={**_TIME, "type": ["string", "null"]},
            changed_at={**_TIME, "type": ["string", "null"]},
            links=_object(events=_TEXT, stream=_TEXT, subscriptions=_TEXT, admin=_TEXT_OR_NULL),
            genesis={
                "type": ["object", "null"],
                "description": "What the id certifies: base32 of the SHA-256 of its canonical JSON. Not in lists.",
            },
        ),
    },
    "RendezvousPointPage": _page_of("RendezvousPoint"),
    "Subscription": _object(
        id=_TEXT,
        rp={"type": "string", "description": "Id of the rendezvous point read."},
        owner=_TEXT,
        version={"type": "integer", "minimum": 1},
        history=ref("History"),
        deliver=_object(mode=_TEXT),
        lease=ref("Lease"),
        cursor={"type": "string", "description": "What it has acknowledged."},
        created_at=_TIME,
        links=_object(events=_TEXT, ack=_TEXT, renew=_TEXT, rp=_TEXT),
    ),
    "SubscriptionPage": _page_of("Subscription"),
    "Token": _object(
        token={"type": "string", "description": "The JWT; shown once."},
        id={"type": "string", "description": "Its jti."},
        subject=_TEXT,
        admin=_TRUTH,
        ops={"type": ["array", "null"], "items": {"type": "string", "enum": list(OPERATIONS)}},
        scopes={"type": ["array", "null"], "items": SCOPE_SCHEMA},
        granted_s=_COUNT,
        expires_at=_TIME,
    ),
    "Key": _KEY,
    "KeyList": _object(items={"type": "array", "items": _KEY}),
    "Biscuit": _object(
        token={"type": "string", "description": "The Biscuit, biscuit:KEY:BASE64URL; shown once."},
        id={"type": "string", "description": "The jti of the token that it was made from, and is revoked with."},
        subject=_TEXT,
        admin=_TRUTH,
        expires_at=_TIME,
    ),
    "PolicyExplanation": _object(
        allowed=_TRUTH,
        decided_by={
            "type": "string",
            "description": "rule N, no rule, administrator, creator, scopes, restriction, expiry or token.",
        },
        reason={"type": "string", "description": "One sentence."},
        rules={
            "type": "array",
            "description": "The rules up to the one that decided; empty if the policy was not asked, or is not yours to see.",
            "items": _object(rule=_COUNT, issuer=_TEXT, matches=_TRUTH, why=_TEXT),
        },
    ),
    "Revocation": _object(
        id=_TEXT,
        kind={"type": "string", "enum": ["token", "subject", "key"]},
        issuer=_TEXT,
        value={"type": "string", "description": "The jti, the subject, or the kid."},
        reason=_TEXT,
        by={"type": "string", "description": "Who revoked."},
        before={
            "type": ["string", "null"],
            "format": "date-time",
            "description": "Of a subject: its tokens issued before this are revoked.",
        },
        created_at=_TIME,
        until={**_TIME, "description": "Nothing that it covers can be valid after this."},
    ),
    "RevocationPage": _page_of("Revocation"),
    "AuditEntry": _object(
        id={"type": "integer", "minimum": 1, "description": "Counts without holes, in the order of commits."},
        at=_TIME,
        who={"type": "string", "description": "Subject, ISSUER#SUBJECT, console user, a stranger's address, `domain`."},
        issuer=_TEXT_OR_NULL,
        token_id={**_TEXT_OR_NULL, "description": "The token's jti; never the token."},
        via={"type": "string", "description": "api, websocket, console or command."},
        address={**_TEXT_OR_NULL, "description": "The client's."},
        request_id={**_TEXT_OR_NULL, "description": "`X-Request-Id` of the answer."},
        action={"type": "string", "description": "OBJECT.VERB, or an operation; stable."},
        on={**_object(kind=_TEXT, id=_TEXT), "type": ["object", "null"]},
        outcome={"type": "string", "enum": ["ok", "refused", "failed"]},
        problem={**_TEXT_OR_NULL, "description": "The problem document's type."},
        reason=_TEXT_OR_NULL,
        count={"type": "integer", "minimum": 1, "description": "How many equal refusals of a minute it stands for."},
        details={"type": "object"},
        previous={"type": "string", "description": "The seal of the entry before."},
        seal={"type": "string", "description": "KEY.HMAC over this entry and `previous`."},
    ),
    "AuditEntryPage": _page_of("AuditEntry"),
    "CloudEvent": {
        **_object(
            ("datacontenttype", "dataschema", "subject", "time", "data", "data_base64"),
            specversion={"type": "string", "enum": ["1.0"]},
            id={"type": "string", "minLength": 1},
            source={"type": "string", "format": "uri-reference", "minLength": 1},
            type={"type": "string", "minLength": 1},
            datacontenttype=_TEXT,
            dataschema={"type": "string", "format": "uri"},
            subject={"type": "string", "minLength": 1},
            time=_TIME,
            data={"description": "Any JSON value, kept as it is."},
            data_base64={"type": "string", "contentEncoding": "base64"},
        ),
        "description": "CloudEvents 1.0.2, structured; extension attributes are further members.",
    },
    "Published": {
        **_object(
            ("id", "source", "duplicate", "results"),
            **_PLACE,
            id=_TEXT,
            source=_TEXT,
            duplicate={
                "type": "boolean",
                "description": "Known by (source, id) already; `offset` is that of the first.",
            },
            results={"type": "array", "items": _object(offset=_COUNT, duplicate=_TRUTH)},
        ),
        "description": "One event: with id, source, duplicate. A batch: with results, in its order.",
    },
    "Gap": {
        **_object((), **{"epoch": _TEXT, "from": _COUNT, "to": _COUNT}),
        "description": "Offsets that were asked for and are not held, both ends included.",
    },
    "Pulled": _object(
        ("gap",),
        events={"type": "array", "items": ref("CloudEvent")},
        cursor=_PLACE["cursor"],
        recovered={"type": "boolean", "description": "Whether everything after the cursor was there; else `gap`."},
        epoch=_PLACE["epoch"],
        offset=_PLACE["offset"],
        gap=ref("Gap"),
    ),
    "Acknowledged": _object(cursor=_PLACE["cursor"]),
    "Limit": _object(
        name={"type": "string", "description": "As in the `limit` member of a refusal, and in the RateLimit headers."},
        unit=_TEXT,
        limit={"type": ["number", "null"], "description": "Per second for a rate, else the most; null: none."},
        used={"type": "integer", "minimum": 0, "description": "For a rate: of what may come at once."},
        remaining={"type": ["integer", "null"], "minimum": 0, "description": "What would be admitted now."},
        window_s={"type": ["number", "null"], "description": "Seconds whose worth may come at once; null: no rate."},
        reset_s={"type": ["integer", "null"], "minimum": 0, "description": "Seconds until a rate is wholly there."},
        counted={"type": "string", "enum": ["gateway", "domain"]},
    ),
    "Limits": _object(
        principal={"type": "string", "description": "Whose these are."},
        counted_as={"type": "string", "enum": ["principal", "address"], "description": "address: no token was shown."},
        gateways={"type": "integer", "minimum": 1},
        limits={"type": "array", "items": ref("Limit")},
        rp={"type": ["array", "null"], "items": ref("Limit")},
        domain={"type": ["array", "null"], "items": ref("Limit")},
    ),
}
