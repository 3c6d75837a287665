"""What domains are held to: proofs of events, misbehaviour, evidence, quarantines."""

from __future__ import annotations

from typing import Any

from eventing.peering.rules.misbehaviour import KINDS
from eventing.rest.documents.forms import BASE64, COUNT, TEXT, TEXT_OR_NULL, TIME, object_of, page_of

_SIGNATURE: dict[str, Any] = {
    **BASE64,
    "description": "Ed25519 over `herald seal v1`, a zero byte and the payload; a longer one is of a batch of seals "
    "(docs/federation/seals.md).",
}
_EVIDENCE: dict[str, Any] = {
    "digest": TEXT,
    "origin": {"type": "string", "description": "The domain that told two stories."},
    "rp": TEXT,
    "epoch": {"type": "string", "description": "Of the origin's feed."},
    "carrier": {**TEXT_OR_NULL, "description": "Who brought it; null: it was found here."},
    "found_at": TIME,
}


SCHEMAS: dict[str, Any] = {
    "EventProof": object_of(
        rp=TEXT,
        origin={"type": "string", "description": "The domain that published the event."},
        epoch={"type": "string", "description": "Of the origin's feed."},
        sequence={"type": "integer", "minimum": 1, "description": "The event's place in that feed."},
        event={**BASE64, "description": "The event's exact bytes."},
        leaf_index=COUNT,
        tree_size={"type": "integer", "minimum": 1},
        path={"type": "array", "items": BASE64, "description": "RFC 9162 inclusion proof, from the leaf upwards."},
        seal=object_of(
            payload={
                **BASE64,
                "description": "MessagePack: version, rp, origin, epoch, first, last, root, previous, ms.",
            },
            kid=TEXT,
            signature=_SIGNATURE,
        ),
        document={"type": "object", "description": "The origin's domain document, as at /.well-known/herald."},
        carriers={
            "type": "array",
            "items": TEXT,
            "description": "The domains that the event came through, the origin first, as they said: no part of what is proved. "
            "Empty for an event of the domain that answers.",
        },
    ),
    "Misbehaviour": object_of(
        id=TEXT,
        kind={"type": "string", "enum": list(KINDS)},
        about={"type": "string", "description": "What this kind is."},
        carrier={"type": "string", "description": "The peer that it came from; empty if nobody is sure."},
        origin={"type": "string", "description": "The domain that it is about."},
        count={"type": "integer", "minimum": 1},
        rp={**TEXT_OR_NULL, "description": "Where it happened last."},
        detail={"type": "string", "description": "What happened last."},
        first_at=TIME,
        last_at=TIME,
    ),
    "MisbehaviourPage": page_of("Misbehaviour"),
    "EvidencePage": object_of(items={"type": "array", "items": object_of(**_EVIDENCE)}, next=TEXT_OR_NULL),
    "EvidenceExport": object_of(
        **_EVIDENCE,
        seals={
            "type": "array",
            "items": object_of(
                payload={**BASE64, "description": "MessagePack: version, rp, origin, epoch, first, last, root, ..."},
                kid=TEXT,
                signature=_SIGNATURE,
            ),
            "minItems": 2,
            "maxItems": 2,
        },
        document={
            "type": ["object", "null"],
            "description": "The origin's domain document, as at /.well-known/herald.",
        },
    ),
    "QuarantineList": object_of(
        items={
            "type": "array",
            "items": object_of(
                origin=TEXT,
                why=TEXT,
                since=TIME,
                evidence={
                    **object_of(digest=TEXT, rp=TEXT, carrier={"type": "string", "description": "Who brought it."}),
                    "type": ["object", "null"],
                    "description": "Two seals for one place, which are kept.",
                },
            ),
        }
    ),
}
