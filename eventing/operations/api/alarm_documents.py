"""Watch rules and alarms."""

from __future__ import annotations

from typing import Any

from eventing.rest.documents.forms import TEXT, TEXT_OR_NULL, TIME, TIME_OR_NULL, TRUTH, object_of, page_of
from eventing.rps.rules.watches import AUDIENCE, SEVERITIES
from eventing.rps.rules.watches import KINDS as WATCH_KINDS

SCHEMAS: dict[str, Any] = {
    "Alarm": object_of(
        id=TEXT,
        rule={"type": "string", "description": "Id of the rule that it breaks."},
        kind={"type": "string", "enum": [*WATCH_KINDS, AUDIENCE]},
        rp={**TEXT_OR_NULL, "description": "Id of the rendezvous point; null: the domain."},
        about={"type": "string", "description": "A subscription, a peer, a gateway, an audience; may be empty."},
        severity={"type": "string", "enum": list(SEVERITIES)},
        detail={"type": "string", "description": "One sentence: what is wrong."},
        values={
            "type": "array",
            "items": object_of(name=TEXT, value={"type": "number"}, limit={"type": "number"}, unit=TEXT),
        },
        link={"type": "string", "description": "Path of the console's page where more is to be seen."},
        since={**TIME, "description": "Since when it is so."},
        raised_at=TIME,
        changed_at=TIME,
        acknowledged={"oneOf": [object_of(at=TIME, by=TEXT, note=TEXT), {"type": "null"}]},
        lasting={**TRUTH, "description": "It is about what has ended, and stays open until it is acknowledged."},
        cleared={"oneOf": [object_of(at=TIME, why=TEXT), {"type": "null"}], "description": "null: it is open."},
    ),
    "AlarmPage": page_of("Alarm"),
    "DomainWatches": object_of(
        watch={"type": "array", "items": {"type": "object"}},
        version={"type": "integer", "minimum": 0, "description": "The ETag; 0: there never were any."},
        changed_at=TIME_OR_NULL,
    ),
}
