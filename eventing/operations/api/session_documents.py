"""Sessions: who is connected to the gateways."""

from __future__ import annotations

from typing import Any

from eventing.rest.documents.forms import COUNT, TEXT, TEXT_OR_NULL, TIME, TRUTH, object_of

_GATEWAYS = object_of(
    asked={**COUNT, "description": "Gateways that heard the question."},
    answered={**COUNT, "description": "Those that answered within a second; of the others nothing is known."},
)

_SESSION = object_of(
    ("address",),
    id=TEXT,
    gateway=TEXT,
    principal={**TEXT_OR_NULL, "description": "Identity; null: a stranger."},
    issuer=TEXT_OR_NULL,
    kind={"type": "string", "enum": ["herald.v1", "cloudevents", "sse"]},
    rps={"type": "array", "items": TEXT, "description": "Ids of what it reads, at most 10."},
    readings={**COUNT, "description": "How many it reads in all."},
    since=TIME,
    state={
        "type": "string",
        "enum": ["idle", "live", "replaying", "stalled"],
        "description": "stalled: it does not take what is sent; replaying: it is fed from the log.",
    },
    lag={**COUNT, "description": "Events that the reading furthest behind is behind its log's end."},
    waiting_bytes={**COUNT, "description": "Written, and not taken by the network yet."},
    address={**TEXT_OR_NULL, "description": "Where it comes from; for administrators only."},
)


SCHEMAS: dict[str, Any] = {
    "SessionPage": object_of(
        items={"type": "array", "items": _SESSION},
        next=TEXT_OR_NULL,
        matching={**COUNT, "description": "Sessions that match, on all pages."},
        gateways=_GATEWAYS,
    ),
    "Disconnected": object_of(
        disconnected={**COUNT, "description": "Sessions that are being closed."}, retry=TRUTH, gateways=_GATEWAYS
    ),
}
