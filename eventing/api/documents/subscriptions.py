"""Durable subscriptions."""

from __future__ import annotations

from typing import Any

from eventing.api.documents.forms import COUNT, TEXT, TEXT_OR_NULL, TIME, TRUTH, object_of, page_of, ref

SCHEMAS: dict[str, Any] = {
    "Subscription": object_of(
        id=TEXT,
        rp={"type": "string", "description": "Id of the rendezvous point read."},
        owner=TEXT,
        version={"type": "integer", "minimum": 1},
        history=ref("History"),
        deliver=object_of(mode=TEXT),
        lease=ref("Lease"),
        cursor={"type": "string", "description": "What it has acknowledged."},
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
            "items": {
                "allOf": [
                    ref("Subscription"),
                    object_of(lag={**COUNT, "description": "Events of the log after what it has acknowledged."}),
                ]
            },
        },
        next=TEXT_OR_NULL,
        complete={**TRUTH, "description": "Whether all that match were looked at for the order."},
    ),
}
