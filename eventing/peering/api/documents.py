"""Peers, and how sending events to them goes."""

from __future__ import annotations

from typing import Any

from eventing.peering.rules.deliveries import Failure, Standstill
from eventing.rest.documents.forms import COUNT, TEXT, TEXT_OR_NULL, TIME, TIME_OR_NULL, TRUTH, object_of, page_of

_FINGERPRINTS: dict[str, dict[str, Any]] = {
    "fingerprint": {"type": "string", "description": "The kid of its first key."},
    "fingerprint_shown": {"type": "string", "description": "The same in groups, to be read aloud."},
    "own_fingerprint": {"type": "string", "description": "Of this domain: what the other administrator sees."},
    "own_fingerprint_shown": TEXT,
    "safety_number": {"type": "string", "description": "Of both: the same number is shown at the other domain."},
}

_PEER_STATE: dict[str, Any] = {"type": "string", "enum": ["proposed", "asked", "active", "suspended"]}

_PEER = object_of(
    (),
    name=TEXT,
    url=TEXT,
    state={**_PEER_STATE, "description": "How this domain stands to it."},
    theirs={
        "type": ["string", "null"],
        "enum": ["proposes", "approves", "suspends", "waits", "leaves", None],
        "description": "How it said last that it stands to this domain; null: nothing was heard.",
    },
    **_FINGERPRINTS,
    push=TRUTH,
    host=TRUTH,
    gossip=TRUTH,
    events_per_s=COUNT,
    bytes_per_s=COUNT,
    requests_per_s=COUNT,
    note=TEXT,
    lease=object_of(granted_s=COUNT, expires_at={**TIME, "description": "Contact renews it."}),
    heard_at={**TIME_OR_NULL, "description": "The last contact: a request of it, or an answer of it; null: none."},
    contact={
        **object_of(request_at=TIME_OR_NULL, answer_at=TIME_OR_NULL),
        "description": "Its last request, and its last answer to a request of this domain, to a second; null: none is known.",
    },
    problem={
        "oneOf": [
            object_of(
                kind={"type": "string", "enum": [*Failure, *Standstill]},
                since=TIME_OR_NULL,
                until={**TIME_OR_NULL, "description": "When it is tried next, or its pause ends."},
                detail=TEXT,
                advice={**TEXT, "description": "What an administrator does about it."},
            ),
            {"type": "null"},
        ],
        "description": "Why nothing arrives at it; null: all is well, or it is not active.",
    },
    hello=object_of(
        failures=COUNT,
        problem={**TEXT_OR_NULL, "description": "Why it could not be told how we stand to it; null: it could."},
        next_at={**TIME_OR_NULL, "description": "When it is told again; null: it is not."},
    ),
    delivery={
        "oneOf": [
            object_of(
                failures=COUNT,
                failure=TEXT_OR_NULL,
                detail=TEXT_OR_NULL,
                first_failure_at=TIME_OR_NULL,
                next_try_at=TIME_OR_NULL,
                stopped_at=TIME_OR_NULL,
                backlog=COUNT,
                oldest_at=TIME_OR_NULL,
            ),
            {"type": "null"},
        ],
        "description": "How sending events to it goes; null: nothing was ever wrong.",
    },
    created_at=TIME,
    changed_at=TIME,
)


SCHEMAS: dict[str, Any] = {
    "Peer": _PEER,
    "PeerList": object_of(items={"type": "array", "items": _PEER}),
    "PeerLook": object_of(
        (),
        domain=TEXT,
        url=TEXT,
        **_FINGERPRINTS,
        issued_at={"type": "integer", "description": "Unix seconds, by its clock."},
        versions={"type": "array", "items": {"type": "integer"}, "description": "Of the wire that it speaks."},
        state={**_PEER_STATE, "type": ["string", "null"], "enum": [*_PEER_STATE["enum"], None]},
    ),
    "PeerDelivery": object_of(
        (),
        peer=TEXT,
        failures={"type": "integer", "minimum": 0, "description": "In a row; 0 while all is well."},
        failure={"type": "string", "enum": ["", "unreachable", "busy", "refused", "invalid"]},
        detail=TEXT,
        first_failure_at=TIME_OR_NULL,
        next_try_at=TIME_OR_NULL,
        stopped_at=TIME_OR_NULL,
        backlog={
            "type": "integer",
            "minimum": 0,
            "description": "Events that wait for the peer, as of some seconds ago.",
        },
        oldest_at=TIME_OR_NULL,
        traffic={
            **object_of((), requests=COUNT, runs=COUNT, events=COUNT, copies=COUNT, sent=COUNT),
            "description": "What was taken of the peer: its requests, the runs in them, their events that were new here, "
            "and copies of events that were here already; and events that it was sent, in requests that it took.",
        },
        links={
            "type": "array",
            "items": object_of(
                (),
                rp=TEXT,
                vector={"type": "object", "additionalProperties": {"type": "integer"}},
                lazy={"type": "array", "items": TEXT},
                pruned={"type": "array", "items": TEXT},
            ),
            "description": "Per rendezvous point what the peer holds, and the feeds that it, or we, pruned.",
        },
    ),
    "PeerLink": object_of(
        (),
        rp=TEXT,
        name=TEXT_OR_NULL,
        title=TEXT,
        home={"type": "string", "description": "The domain whose rendezvous point it is."},
        link={"type": "string", "enum": ["eager", "lazy", "stopped"]},
        detail={"type": "string", "description": "Why it stopped, or is held off; may be empty."},
        vector={
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "description": "What the peer said to hold.",
        },
        own={"type": "object", "additionalProperties": {"type": "integer"}, "description": "What is held here."},
        backlog={"type": "integer", "minimum": 0, "description": "Events that are here and the peer lacks."},
        ahead={"type": "integer", "minimum": 0, "description": "Events that the peer says to hold and are not here."},
        heard_at={**TIME_OR_NULL, "description": "When it spoke of the rendezvous point last; null: never."},
        held_until={**TIME_OR_NULL, "description": "Nothing of it is sent before; null: nothing is held off."},
    ),
    "PeerLinkPage": page_of("PeerLink"),
    "PeerReplay": object_of(peer=TEXT, rp=TEXT, after=TEXT),
}
