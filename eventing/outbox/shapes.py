"""What the administrative events of several subjects have in common: JSON Schemas of their data, and effects."""

from __future__ import annotations

from typing import Any

from eventing.outbox.kind import DOMAIN, Effect, count, moment, obj, or_null

LEASE_MEMBERS: dict[str, Any] = {
    "asked_s": or_null(count("seconds asked for; null if nothing was stated")),
    "granted_s": count("seconds granted"),
    "expires_at": moment("end of the lease"),
}
LEASE = obj(LEASE_MEMBERS, "the lease")
HISTORY = obj(
    {
        "max_events": count("events kept"),
        "max_bytes": count("bytes kept"),
        "max_age_s": or_null(count("seconds kept; null for no bound by age")),
    },
    "bounds of the history",
)
NO_PROGRESS: dict[str, Any] = {"vector": None, "behind": None, "at": None}
"""The progress of a replica that was not sampled yet."""

SUBSCRIPTIONS_COUNTED = {"subscriptions_in_domain": count("durable subscriptions of the domain after the change")}
SUBSCRIPTIONS_COUNT: Effect = {
    "in": DOMAIN,
    "op": "merge",
    "at": ["counts"],
    "value": {"subscriptions": "$subscriptions_in_domain"},
}
