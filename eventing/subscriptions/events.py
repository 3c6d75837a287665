"""Durable subscriptions: created, changed, deleted, and how far they lag behind their log."""

from __future__ import annotations

from typing import Any

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_BOTH, ON_RP, RP, Effect, Kind, count, items, moment, obj, or_null, text
from eventing.outbox.shapes import HISTORY, LEASE, SUBSCRIPTIONS_COUNT, SUBSCRIPTIONS_COUNTED

LAGS_MAX = 100
"""Subscriptions of one sample: those whose lag moved, the furthest behind first; the others follow in the next ones."""

NO_LAG: dict[str, Any] = {"events": None, "lost": None, "oldest_at": None, "acknowledged": None, "at": None}
"""The lag of a subscription that was not sampled yet."""

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
)
_SUBSCRIPTION = obj(
    {
        "id": text("id of the durable subscription"),
        "at": text("id of the RP that it reads"),
        "owner": text("identity that may read and acknowledge"),
        "version": count("from 1, with each change"),
        "history": HISTORY,
        "deliver": {"type": "object", "description": 'how it is delivered: {"mode": "pull"}'},
        "lease": LEASE,
    },
    "the durable subscription after the change",
)
_DATA = {"subscription": _SUBSCRIPTION}

# Those of domain.admin itself are reported there, and no state holds them.
KINDS: dict[str, Kind] = {
    events.SUBSCRIPTION_CREATED: Kind(
        "A durable subscription was created.",
        ON_BOTH,
        {**_DATA, **SUBSCRIPTIONS_COUNTED},
        effects=(*_PUT, SUBSCRIPTIONS_COUNT),
    ),
    events.SUBSCRIPTION_CHANGED: Kind("A durable subscription was changed.", ON_BOTH, _DATA, effects=_PUT),
    events.SUBSCRIPTION_DELETED: Kind(
        "A durable subscription is gone.",
        ON_BOTH,
        {**_DATA, **SUBSCRIPTIONS_COUNTED, "reason": text("why", of=("deleted", "lease-expired"))},
        effects=({"in": RP, "op": "remove", "at": ["subscriptions", "$subscription.id"]}, SUBSCRIPTIONS_COUNT),
    ),
    events.SUBSCRIPTION_LAGGED: Kind(
        "How far durable subscriptions are behind, sampled each second while somebody reads the administrative RP.",
        ON_RP,
        {
            "gateway": text("id of the gateway process that looked"),
            "lags": items(
                obj(
                    {
                        "subscription": text("id of the durable subscription"),
                        "events": count("events of the log that it has not acknowledged, lost ones among them"),
                        "lost": count("of these, events that left the history, or the subscription's own bounds"),
                        "oldest_at": or_null(
                            moment("when the oldest of them that is held was stored; null: none is held")
                        ),
                        "acknowledged": text("cursor that it has acknowledged"),
                    }
                ),
                "those whose lag moved since the last sample, the furthest behind first",
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
