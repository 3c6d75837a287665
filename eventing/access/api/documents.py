"""Tokens, keys, revocations, the explanation of a policy, and the audit."""

from __future__ import annotations

from typing import Any

from eventing.access.api.fields import SCOPE_SCHEMA
from eventing.core.principals import OPERATIONS
from eventing.rest.documents.forms import COUNT, TEXT, TEXT_OR_NULL, TIME, TRUTH, object_of, page_of

_KEY = object_of(
    kid={"type": "string", "description": "The RFC 7638 thumbprint."},
    state={"type": "string", "enum": ["published", "signing", "verifying", "retired"]},
    not_before={**TIME, "description": "It signs from then on."},
    not_after={
        "type": ["string", "null"],
        "format": "date-time",
        "description": "It verifies until then; null: no end yet.",
    },
    created_at=TIME,
)


SCHEMAS: dict[str, Any] = {
    "Token": object_of(
        token={"type": "string", "description": "The JWT; shown once."},
        id={"type": "string", "description": "Its jti."},
        subject=TEXT,
        admin=TRUTH,
        ops={"type": ["array", "null"], "items": {"type": "string", "enum": list(OPERATIONS)}},
        scopes={"type": ["array", "null"], "items": SCOPE_SCHEMA},
        granted_s=COUNT,
        expires_at=TIME,
    ),
    "Biscuit": object_of(
        token={"type": "string", "description": "The Biscuit, biscuit:KEY:BASE64URL; shown once."},
        id={"type": "string", "description": "The jti of the token that it was made from, and is revoked with."},
        subject=TEXT,
        admin=TRUTH,
        expires_at=TIME,
    ),
    "Key": _KEY,
    "KeyList": object_of(items={"type": "array", "items": _KEY}),
    "Revocation": object_of(
        id=TEXT,
        kind={"type": "string", "enum": ["token", "subject", "key"]},
        issuer=TEXT,
        value={"type": "string", "description": "The jti, the subject, or the kid."},
        reason=TEXT,
        by={"type": "string", "description": "Who revoked."},
        before={
            "type": ["string", "null"],
            "format": "date-time",
            "description": "Of a subject: its tokens issued before this are revoked.",
        },
        created_at=TIME,
        until={**TIME, "description": "Nothing that it covers can be valid after this."},
    ),
    "RevocationPage": page_of("Revocation"),
    "PolicyExplanation": object_of(
        allowed=TRUTH,
        decided_by={
            "type": "string",
            "description": "rule N, no rule, administrator, creator, scopes, restriction, expiry or token.",
        },
        reason={"type": "string", "description": "One sentence."},
        rules={
            "type": "array",
            "description": "The rules up to the one that decided; empty if the policy was not asked, or is not yours to see.",
            "items": object_of(rule=COUNT, issuer=TEXT, matches=TRUTH, why=TEXT),
        },
    ),
    "AuditEntry": object_of(
        id={"type": "integer", "minimum": 1, "description": "Counts without holes, in the order of commits."},
        at=TIME,
        who={"type": "string", "description": "Subject, ISSUER#SUBJECT, console user, a stranger's address, `domain`."},
        issuer=TEXT_OR_NULL,
        token_id={**TEXT_OR_NULL, "description": "The token's jti; never the token."},
        via={"type": "string", "description": "api, websocket, console or command."},
        address={**TEXT_OR_NULL, "description": "The client's."},
        request_id={**TEXT_OR_NULL, "description": "`X-Request-Id` of the answer."},
        action={"type": "string", "description": "OBJECT.VERB, or an operation; stable."},
        on={**object_of(kind=TEXT, id=TEXT), "type": ["object", "null"]},
        outcome={"type": "string", "enum": ["ok", "refused", "failed"]},
        problem={**TEXT_OR_NULL, "description": "The problem document's type."},
        reason=TEXT_OR_NULL,
        count={"type": "integer", "minimum": 1, "description": "How many equal refusals of a minute it stands for."},
        details={"type": "object"},
        previous={"type": "string", "description": "The seal of the entry before."},
        seal={"type": "string", "description": "KEY.HMAC over this entry and `previous`."},
    ),
    "AuditEntryPage": page_of("AuditEntry"),
}
