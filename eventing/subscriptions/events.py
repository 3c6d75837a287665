"""Administrative events of durable subscriptions: created, changed, deleted, and their lag."""

from __future__ import annotations

from typing import Any

from eventing.core.shapes import closed_schema
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_BOTH, ON_RP, RP, Effect, EventKind, count, items, moment, obj, or_null, text
from eventing.outbox.shapes import SUBSCRIPTIONS_COUNT, SUBSCRIPTIONS_COUNTED
from eventing.subscriptions.shapes import SubscriptionData

LAGS_MAX = 100  # bound: subscriptions in one sample of lags; the others are in the next sample
"""Subscriptions in one sample: those whose lag changed, the greatest lag first; the others follow in the next samples.
"""

NO_LAG: dict[str, Any] = {"events": None, "lost": None, "oldest_at": None, "acknowledged": None, "at": None}
"""The lag of a subscription that was not sampled yet."""

NO_ENDPOINT: dict[str, Any] = {"state": None, "since": None}
"""The endpoint of a subscription whose events are pulled."""

_PUT: tuple[Effect, ...] = (
    {
        "in": RP,
        "op": "merge",
        "at": ["subscriptions", "$subscription.id"],
        "value": "$subscription",
        "without": ["lease"],
        "newer": "version",
    },
    {
        "in": RP,
        "op": "put",
        "at": ["subscriptions", "$subscription.id", "lease"],
        "value": "$subscription.lease",
        "newer": "expires_at",
    },
    {"in": RP, "op": "put", "at": ["subscriptions", "$subscription.id", "lag"], "value": NO_LAG, "if": "absent"},
    {
        "in": RP,
        "op": "put",
        "at": ["subscriptions", "$subscription.id", "endpoint"],
        "value": NO_ENDPOINT,
        "if": "absent",
    },
)
_PULLED: Effect = {
    "in": RP,
    "op": "put",
    "at": ["subscriptions", "$subscription.id", "endpoint"],
    "value": NO_ENDPOINT,
    "when": {"subscription.deliver.mode": "pull"},
}
_DATA = {"subscription": closed_schema(SubscriptionData, "the durable subscription after the change")}

# Subscriptions to domain.admin are reported there and are part of no state.
KINDS: dict[str, EventKind] = {
    events.SUBSCRIPTION_CREATED: EventKind(
        "A durable subscription was created.",
        ON_BOTH,
        {**_DATA, **SUBSCRIPTIONS_COUNTED},
        effects=(*_PUT, SUBSCRIPTIONS_COUNT),
    ),
    events.SUBSCRIPTION_CHANGED: EventKind(
        "A durable subscription was changed.", ON_BOTH, _DATA, effects=(*_PUT, _PULLED)
    ),
    events.SUBSCRIPTION_DELETED: EventKind(
        "A durable subscription was deleted or has expired.",
        ON_BOTH,
        {
            **_DATA,
            **SUBSCRIPTIONS_COUNTED,
            "reason": text("why", of=("deleted", "domain-closes", "endpoint-gone", "lease-expired")),
        },
        effects=({"in": RP, "op": "remove", "at": ["subscriptions", "$subscription.id"]}, SUBSCRIPTIONS_COUNT),
    ),
    events.SUBSCRIPTION_LAGGED: EventKind(
        "Lag of durable subscriptions, sampled each second while the administrative RP has readers.",
        ON_RP,
        {
            "gateway": text("id of the gateway process that sampled"),
            "lags": items(
                obj(
                    {
                        "subscription": text("id of the durable subscription"),
                        "events": count("events of the log that are not acknowledged, lost ones included"),
                        "lost": count("of these, events trimmed from the history or outside the subscription's bounds"),
                        "oldest_at": or_null(
                            moment("when the oldest of them that is still held was stored; null: none is held")
                        ),
                        "acknowledged": text("acknowledged cursor"),
                    }
                ),
                "subscriptions whose lag changed since the last sample, the greatest lag first",
                most=LAGS_MAX,
            ),
        },
        effects=(
            {
                "in": RP,
                "op": "put",
                "each": "$lags",
                "at": ["subscriptions", "$each.subscription", "lag"],
                "value": {
                    "events": "$each.events",
                    "lost": "$each.lost",
                    "oldest_at": "$each.oldest_at",
                    "acknowledged": "$each.acknowledged",
                    "at": "@time",
                },
                "newer": "at",
                "if": "present",
            },
        ),
    ),
}
