"""The JSON Schemas of what administrative events show of peers, of the delivery to them and of the traffic with them."""

from __future__ import annotations

from typing import Any

from eventing.outbox.kind import count, moment, obj, or_null, text, truth
from eventing.peering.rules.deliveries import Failure, Standstill
from eventing.peering.rules.peers import Stance, State

PEER = obj(
    {
        "name": text("the domain's name"),
        "url": text("where it is reached"),
        "state": text("how this domain stands to it", of=tuple(State)),
        "theirs": or_null(text("how it stands to this domain; null if it has said nothing", of=tuple(Stance))),
        "fingerprint": text("of its first key"),
        "push": truth("whether it may send events"),
        "host": truth("whether it may have replicas hosted here"),
        "gossip": truth("whether it takes part in gossip"),
        "lease": obj(
            {"granted_s": count("seconds without contact until it lapses"), "expires_at": moment("when it lapses")},
            "renewed by contact",
        ),
    },
    "the peer after the change",
)
DELIVERY_MEMBERS: dict[str, Any] = {
    "backlog": count("events that wait for the peer"),
    "oldest_at": or_null(moment("when the oldest of them was stored here; null for none")),
    "failures": count("failures in a row; 0 while all is well"),
    "class": or_null(text("what went wrong last; null while all is well", of=(*Failure, *Standstill))),
    "detail": text("the same in a sentence; empty while all is well"),
    "first_failure_at": or_null(
        moment(
            "first of the failures in a row, or since when nothing arrives although none fails (`paused`, `not-taking`)"
        )
    ),
    "next_try_at": or_null(
        moment("when it is tried next, or its pause ends; null while all is well, and when it is stopped")
    ),
    "stopped_at": or_null(moment("since when nothing is sent until somebody changes something")),
}
NO_DELIVERY: dict[str, Any] = {
    "backlog": 0,
    "oldest_at": None,
    "failures": 0,
    "class": None,
    "detail": "",
    "first_failure_at": None,
    "next_try_at": None,
    "stopped_at": None,
}
"""The delivery to a peer that nothing was ever wrong with."""

TRAFFIC_MEMBERS: dict[str, Any] = {
    "sent": count("events that the peer was sent, in requests that it took"),
    "taken": count("events that it brought and that were new here"),
    "copies": count("events that it brought and that were here already"),
    "requests": count("requests of it"),
}
NO_TRAFFIC: dict[str, Any] = {"sent": 0, "taken": 0, "copies": 0, "requests": 0, "interval_s": 0, "at": None}
"""The traffic with a peer that was not sampled yet, or not lately."""
