"""Durable subscriptions."""

from __future__ import annotations

from typing import Any

from eventing.rest.documents.forms import COUNT, TEXT, TEXT_OR_NULL, TIME, TRUTH, object_of, page_of, ref

SCHEMAS: dict[str, Any] = {
    "Subscription": object_of(
        ("notice",),
        id=TEXT,
        rp={"type": "string", "description": "Id of the rendezvous point read."},
        owner=TEXT,
        version={"type": "integer", "minimum": 1},
        history=ref("History"),
        deliver=object_of(mode=TEXT),
        lease=ref("Lease"),
        notice={"type": "string", "description": "What is deleted when, for people. Not in lists."},
        cursor={"type": "string", "description": "What it has acknowledged."},
        lag={**COUNT, "description": "Events of the log after what it has acknowledged, lost ones among them."},
        lost={
            **COUNT,
            "description": "Of these, events that left the history, or its own bounds: the gap that the next read reports.",
        },
        shared={
            "type": ["object", "null"],
            "description": "Of one that several domains hold: `keeper` (where it was created), `holders` in the order of "
            "succession, who `delivers` now (null while nobody is known to), the `term`, and what is `acked` of each feed.",
        },
        created_at=TIME,
        links=object_of(events=TEXT, ack=TEXT, renew=TEXT, rp=TEXT),
    ),
    "SubscriptionPage": page_of("Subscription"),
    "SubscriptionListing": object_of(
        items={
            "type": "array",
            "items": ref("Subscription"),
        },
        next=TEXT_OR_NULL,
        complete={**TRUTH, "description": "Whether all that match were looked at for the order."},
    ),
}
