"""Rendezvous points, their names, who takes part in them, and what holds their newest events."""

from __future__ import annotations

from typing import Any

from eventing.rest.documents.forms import COUNT, PLACE, TEXT, TEXT_OR_NULL, TIME, object_of, page_of, ref

_PARTICIPANT = object_of(
    (),
    domain=TEXT,
    url={"type": "string", "description": "Where it is; empty: not known here."},
    role={"type": "string", "enum": ["home", "replica"]},
    vector={
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "description": "What it holds: the last sequence of each feed. This domain's is as it is, others' as they said last.",
    },
    link={
        "type": ["string", "null"],
        "enum": ["eager", "lazy", "stopped", None],
        "description": "How events go between it and this domain; null: not directly, or it is this domain.",
    },
    backlog={
        "type": ["integer", "null"],
        "description": "Events that it lacks of those held here; null without a link.",
    },
)


SCHEMAS: dict[str, Any] = {
    "RendezvousPoint": {
        **object_of(
            ("genesis", "replicas", "notice"),
            id=TEXT,
            name=TEXT_OR_NULL,
            title=TEXT,
            domain={"type": "string", "description": "Its home."},
            home={
                "type": "string",
                "description": "The domain whose it is; another than this one's: this is a replica.",
            },
            replicas={
                "type": "array",
                "items": _PARTICIPANT,
                "description": "Who participates: the home first, this domain among them. Not in lists.",
            },
            creator={"type": "string", "description": "Subject that administers it; empty for the domain's own."},
            version={"type": "integer", "minimum": 1, "description": "Grows with every change; the ETag."},
            epoch={"type": ["string", "null"], "description": "null: it has no log (yet); the first publish makes it."},
            offset=PLACE["offset"],
            history=ref("History"),
            lease={"oneOf": [ref("Lease"), {"type": "null"}], "description": "null: it lives with what it reports on."},
            renew_on_use={
                "type": "boolean",
                "description": "Whether publishing and reading renew the lease; false at a replica, whose domain renews it.",
            },
            notice={
                "type": ["string", "null"],
                "description": "What is deleted when the lease ends, and when, for people. Not in lists; null where nobody has to renew it.",
            },
            policy={"type": "array", "items": {"type": "object"}},
            ack=TEXT,
            paused={
                "oneOf": [object_of(at=TIME, by=TEXT, reason=TEXT), {"type": "null"}],
                "description": "Since when this domain takes no events here from its publishers; null: it does.",
            },
            audience={
                "type": "array",
                "items": {"type": "object"},
                "description": "Who must be reading in this domain while events are published; as given.",
            },
            watch={"type": "array", "items": {"type": "object"}, "description": "The watch rules; as given."},
            created_at={**TIME, "type": ["string", "null"]},
            changed_at={**TIME, "type": ["string", "null"]},
            links=object_of(events=TEXT, stream=TEXT, subscriptions=TEXT, admin=TEXT_OR_NULL),
            genesis={
                "type": ["object", "null"],
                "description": "What the id certifies: base32 of the SHA-256 of its canonical JSON. Not in lists.",
            },
        ),
    },
    "RendezvousPointPage": page_of("RendezvousPoint"),
    "BranchPage": object_of(
        items={
            "type": "array",
            "items": object_of(
                part={"type": "string", "description": "The next part of the name."},
                name={"type": "string", "description": "Up to and including it: the prefix of the next level."},
                rps={**COUNT, "description": "Rendezvous points there or below."},
                rp={**TEXT_OR_NULL, "description": "Id of the one that has exactly this name."},
            ),
        },
        next=TEXT_OR_NULL,
    ),
    "ParticipantList": object_of(items={"type": "array", "items": _PARTICIPANT}),
    "Spread": object_of(
        (),
        domains={
            "type": "array",
            "items": object_of(
                (),
                domain=TEXT,
                role={"type": "string", "enum": ["home", "replica"]},
                known={"type": "boolean", "description": "Whether it has said here what it holds."},
            ),
        },
        events={
            "type": "array",
            "items": object_of(
                (),
                offset=COUNT,
                cursor=TEXT,
                id=TEXT,
                source=TEXT,
                type=TEXT,
                time=TEXT_OR_NULL,
                origin={**TEXT_OR_NULL, "description": "Who published it; null where its seal has left the history."},
                sequence={"type": "integer", "minimum": 1, "description": "Its place in the origin's feed."},
                held={"type": "array", "items": TEXT, "description": "The domains that hold it."},
            ),
        },
    ),
    "Trimmed": object_of(
        removed={**COUNT, "description": "Events that went."},
        epoch=TEXT,
        first={**COUNT, "description": "Oldest offset still held; one more than `offset` when nothing is."},
        offset={**COUNT, "description": "Of the last event."},
    ),
}
