"""Events, and what is answered to publishing, pulling and acknowledging."""

from __future__ import annotations

from typing import Any

from eventing.rest.documents.forms import COUNT, PLACE, TEXT, TIME, TRUTH, object_of, ref

_LOST: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2},
    "description": "Where the RP has replicas, exactly what is lost: per feed the first and the last sequence.",
}


SCHEMAS: dict[str, Any] = {
    "CloudEvent": {
        **object_of(
            ("datacontenttype", "dataschema", "subject", "time", "data", "data_base64"),
            specversion={"type": "string", "enum": ["1.0"]},
            id={"type": "string", "minLength": 1},
            source={"type": "string", "format": "uri-reference", "minLength": 1},
            type={"type": "string", "minLength": 1},
            datacontenttype=TEXT,
            dataschema={"type": "string", "format": "uri"},
            subject={"type": "string", "minLength": 1},
            time=TIME,
            data={"description": "Any JSON value, kept as it is."},
            data_base64={"type": "string", "contentEncoding": "base64"},
        ),
        "description": "CloudEvents 1.0.2, structured; extension attributes are further members.",
    },
    "Published": {
        **object_of(
            ("id", "source", "duplicate", "results"),
            **PLACE,
            id=TEXT,
            source=TEXT,
            duplicate={
                "type": "boolean",
                "description": "Known by (source, id) already; `offset` is that of the first.",
            },
            results={"type": "array", "items": object_of(offset=COUNT, duplicate=TRUTH)},
        ),
        "description": "One event: with id, source, duplicate. A batch: with results, in its order.",
    },
    "Gap": {
        **object_of(
            ("feeds", "cursor"),
            **{"epoch": TEXT, "from": COUNT, "to": COUNT, "feeds": _LOST, "cursor": PLACE["cursor"]},
        ),
        "description": "Offsets that were asked for and are not held, both ends included.",
    },
    "Pulled": object_of(
        ("gap", "offsets"),
        events={"type": "array", "items": ref("CloudEvent")},
        cursor=PLACE["cursor"],
        recovered={"type": "boolean", "description": "Whether everything after the cursor was there; else `gap`."},
        epoch=PLACE["epoch"],
        offset=PLACE["offset"],
        offsets={
            "type": "array",
            "items": COUNT,
            "description": "Of the events, where others between them are the reader's already.",
        },
        gap=ref("Gap"),
    ),
    "Acknowledged": object_of(cursor=PLACE["cursor"]),
}
