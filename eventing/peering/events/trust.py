"""Administrative events of misbehaviour and quarantine."""

from __future__ import annotations

from eventing.core.shapes import closed_schema
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, ON_DOMAIN, EventKind, text
from eventing.peering.shapes import MisbehaviourData

MISBEHAVIOUR_MAX = 100
"""Rows of misbehaviour in the domain's state: the latest. All of them are at /api/v1/misbehaviour."""

KINDS: dict[str, EventKind] = {
    events.MISBEHAVIOUR_NOTED: EventKind(
        "Another domain misbehaved. Reported at the first occurrence, then once a minute while the misbehaviour continues.",
        ON_DOMAIN,
        closed_schema(MisbehaviourData)["properties"],
        effects=(
            {
                "in": DOMAIN,
                "op": "put",
                "at": ["misbehaviour", ["$kind", "$carrier", "$origin"]],
                "value": "$",
                "newer": "count",
                "most": MISBEHAVIOUR_MAX,
                "by": "last_at",
            },
        ),
    ),
    events.ORIGIN_QUARANTINED: EventKind(
        "Events of a domain are refused here from now on.",
        ON_DOMAIN,
        {"origin": text("the domain"), "why": text("one sentence")},
        effects=(
            {
                "in": DOMAIN,
                "op": "put",
                "at": ["quarantines", "$origin"],
                "value": {"origin": "$origin", "why": "$why", "since": "@time"},
            },
        ),
    ),
    events.ORIGIN_RELEASED: EventKind(
        "An administrator lifted a quarantine.",
        ON_DOMAIN,
        {"origin": text("the domain")},
        effects=({"in": DOMAIN, "op": "remove", "at": ["quarantines", "$origin"]},),
    ),
}
