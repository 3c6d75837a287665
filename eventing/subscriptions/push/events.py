"""Administrative events of push: the state of an endpoint, and events that delivery gave up."""

from __future__ import annotations

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_BOTH, ON_RP, RP, EventKind, count, moment, or_null, text
from eventing.subscriptions.push.rules.endpoint_states import EndpointState

KINDS: dict[str, EventKind] = {
    events.ENDPOINT_CHANGED: EventKind(
        "The endpoint of a push subscription is in another state.",
        ON_BOTH,
        {
            "subscription": text("id of the durable subscription"),
            "owner": text("identity of its owner"),
            "endpoint": text("address of the endpoint, without its query"),
            "state": text("state of the endpoint", of=tuple(one.value for one in EndpointState)),
            "reason": text("last failure, or the reason of the pause, as a code"),
            "failures": count("failed attempts in a row"),
            "failing_since": or_null(moment("first of these attempts")),
            "next_at": or_null(moment("next attempt")),
            "state_at": moment("since when the endpoint is in this state"),
        },
        effects=(
            {
                "in": RP,
                "op": "merge",
                "at": ["subscriptions", "$subscription"],
                "value": {"endpoint": {"state": "$state", "since": "$state_at"}},
                "newer": "endpoint.since",
                "if": "present",
            },
        ),
    ),
    events.DELIVERY_GIVEN_UP: EventKind(
        "Events were not delivered to the endpoint of a push subscription: a dead letter.",
        ON_RP,
        {
            "subscription": text("id of the durable subscription"),
            "epoch": text("epoch of the log"),
            "first": count("first offset"),
            "last": count("last offset"),
            "reason": text("last failure as a code; `history-trimmed`: the log no longer has the events"),
            "attempts": count("attempts made"),
        },
    ),
}
