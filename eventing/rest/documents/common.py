"""What answers of many resources have in common: problems, leases, history, limits."""

from __future__ import annotations

from typing import Any

from eventing.rest.documents.forms import COUNT, TEXT, TEXT_OR_NULL, TIME, TRUTH, object_of, ref

SCHEMAS: dict[str, Any] = {
    "Problem": {
        **object_of(
            type={"type": "string", "description": "urn:herald:problem:CODE; stable."},
            title=TEXT,
            status={"type": "integer"},
            detail={"type": "string", "description": "What is wrong, and what to do next."},
        ),
        "description": "RFC 9457; some types add members (docs/protocol.md).",
    },
    "History": object_of(
        max_events=COUNT,
        max_bytes=COUNT,
        max_age_s={"type": ["integer", "null"], "description": "null: no bound by age."},
    ),
    "Lease": object_of(
        asked_s={"type": ["integer", "null"], "description": "null: nothing was stated."},
        granted_s=COUNT,
        expires_at=TIME,
    ),
    "Renewal": object_of(lease=ref("Lease")),
    "LeasePage": object_of(
        items={
            "type": "array",
            "items": object_of(
                kind={"type": "string", "enum": ["peer", "replica", "rp", "subscription"]},
                id={"type": "string", "description": "Of the RP or subscription; the peer's name."},
                rp=TEXT_OR_NULL,
                name=TEXT_OR_NULL,
                owner={**TEXT_OR_NULL, "description": "Who made it; of a replica its home; null of a peer."},
                granted_s=COUNT,
                expires_at=TIME,
                warned=TRUTH,
            ),
        },
        next=TEXT_OR_NULL,
    ),
    "Limit": object_of(
        name={"type": "string", "description": "As in the `limit` member of a refusal, and in the RateLimit headers."},
        unit=TEXT,
        limit={"type": ["number", "null"], "description": "Per second for a rate, else the most; null: none."},
        used={"type": "integer", "minimum": 0, "description": "For a rate: of what may come at once."},
        remaining={"type": ["integer", "null"], "minimum": 0, "description": "What would be admitted now."},
        window_s={"type": ["number", "null"], "description": "Seconds whose worth may come at once; null: no rate."},
        reset_s={"type": ["integer", "null"], "minimum": 0, "description": "Seconds until a rate is wholly there."},
        counted={"type": "string", "enum": ["gateway", "domain"]},
    ),
    "Limits": object_of(
        principal={"type": "string", "description": "Whose these are."},
        counted_as={"type": "string", "enum": ["principal", "address"], "description": "address: no token was shown."},
        gateways={"type": "integer", "minimum": 1},
        limits={"type": "array", "items": ref("Limit")},
        rp={"type": ["array", "null"], "items": ref("Limit")},
        domain={"type": ["array", "null"], "items": ref("Limit")},
    ),
}
