"""What other domains did that they must not, and who is refused for it."""

from __future__ import annotations

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, ON_DOMAIN, Kind, count, moment, text
from eventing.peering.rules.misbehaviour import KINDS as MISBEHAVIOUR_KINDS

MISBEHAVIOUR_MAX = 100
"""Rows of misbehaviour in the domain's state: the latest. All of them are at /api/v1/misbehaviour."""

KINDS: dict[str, Kind] = {
    events.MISBEHAVIOUR_NOTED: Kind(
        "A domain did what it must not; told at the first time, then once a minute while it goes on.",
        ON_DOMAIN,
        {
            "kind": text("what it was", of=tuple(MISBEHAVIOUR_KINDS)),
            "carrier": text("the peer it came from; empty if nobody is sure who it was"),
            "origin": text("the domain it was about, if another"),
            "count": count("how often so far"),
            "rp": text("of the last time: where; may be empty"),
            "detail": text("of the last time: what, one sentence"),
            "last_at": moment("of the last time: when"),
        },
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
    events.ORIGIN_QUARANTINED: Kind(
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
    events.ORIGIN_RELEASED: Kind(
        "An administrator lifted a quarantine.",
        ON_DOMAIN,
        {"origin": text("the domain")},
        effects=({"in": DOMAIN, "op": "remove", "at": ["quarantines", "$origin"]},),
    ),
}
