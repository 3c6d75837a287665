"""Parts common to administrative events of several subjects: JSON Schemas of their data, and effects."""

from __future__ import annotations

from typing import Any

from eventing.outbox.kind import DOMAIN, Effect, count

NO_PROGRESS: dict[str, Any] = {"vector": None, "behind": None, "at": None}
"""Progress of a replica that has not been sampled yet."""

SUBSCRIPTIONS_COUNTED = {"subscriptions_in_domain": count("durable subscriptions of the domain after the change")}
SUBSCRIPTIONS_COUNT: Effect = {
    "in": DOMAIN,
    "op": "merge",
    "at": ["counts"],
    "value": {"subscriptions": "$subscriptions_in_domain"},
}
