"""The hot path's operations for the OpenAPI description, written by hand because they are bare ASGI (eventing/gateway)."""

from __future__ import annotations

from typing import Any

from eventing.rest.documents import (
    BEGIN_PATTERN,
    CURSOR_PATTERN,
    REFERENCE_BEFORE_ACTION_SCHEMA,
    SUBSCRIPTION_ID_SCHEMA,
    ref,
)

_REFERENCE = {
    "name": "reference",
    "in": "path",
    "required": True,
    "schema": REFERENCE_BEFORE_ACTION_SCHEMA,
    "description": "Id, `ID.admin`, `domain.admin`, `overlay.admin`, or a name with its slashes percent-encoded, the last one included.",
}
_SUBSCRIPTION_ID = {
    "name": "subscription_id",
    "in": "path",
    "required": True,
    "schema": SUBSCRIPTION_ID_SCHEMA,
}


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": description}


_BEGIN = {"type": "string", "pattern": BEGIN_PATTERN}
_TIME = (
    "`time:2026-11-24T02:50:00Z` begins at the first event stored then or later, by this domain's clock. If the history "
    "begins later, reading begins at `earliest`, and `gap` covers the events before it; a time in the future is `now`."
)
_AFTER = _query("after", _BEGIN, f"A cursor, or earliest, last, now, or a time: {_TIME}")
_LIMIT = _query(
    "limit",
    {"type": "integer", "minimum": 1, "default": 100},
    "Maximum number of events; more than 1000 is lowered to it.",
)
_WAIT_S = _query(
    "wait_s", {"type": "number", "minimum": 0, "default": 0}, "Seconds to wait for an event if there is none."
)

_EVENT_EXAMPLE = {
    "specversion": "1.0",
    "id": "42",
    "source": "/sensors/roof",
    "type": "org.example.temperature",
    "datacontenttype": "application/json",
    "data": {"celsius": 21.5},
}


def _json(schema: dict[str, Any], description: str, example: Any = None) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": schema}
    if example is not None:
        content["example"] = example
    return {"description": description, "content": {"application/json": content}}


def _operation(operation_id: str, summary: str, description: str, **rest: Any) -> dict[str, Any]:
    tag = operation_id.split("_", 1)[0]
    security: list[dict[str, list[str]]] = [{"token": []}]
    return {
        "operationId": operation_id,
        "summary": summary,
        "description": description,
        "tags": [tag],
        "security": security,
        **rest,
    }


# openapi-python-client writes a module that cannot be imported for an operation of several bodies that it understands, and
# tells them apart by isinstance, which neither Any nor list[CloudEvent] allows. It shall understand one, the structured event:
# application/json states no schema (which allows what an empty one does), and the batch's elements are described by
# unevaluatedItems (which says of an array without `items` what `items` does). tests/rest/test_generated_clients.py looks.
_PUBLISH_BODY = {
    "required": True,
    "description": (
        "A structured event, a batch, a binary-mode event (its attributes in `ce-` headers, the body is its "
        "data), or any other body, which is wrapped into an event with a generated id and time. A body whose "
        "content type is one of JSON must be JSON; any other content type may be sent as well."
    ),
    "content": {
        "application/cloudevents+json": {"schema": ref("CloudEvent"), "example": _EVENT_EXAMPLE},
        "application/cloudevents-batch+json": {
            "schema": {"type": "array", "minItems": 1, "unevaluatedItems": ref("CloudEvent")},
            "example": [_EVENT_EXAMPLE],
        },
        "application/json": {"example": {"celsius": 21.5}},
        "text/plain": {"schema": {"type": "string"}, "example": "It rains."},
    },
}
_PLACE_EXAMPLE = {"epoch": "k3j5h2ab", "offset": 7, "cursor": "k3j5h2ab:7"}

PATHS: dict[str, Any] = {
    "/api/v1/rps/{reference}/events": {
        "get": _operation(
            "rps_pull",
            "Read a rendezvous point's history",
            "Events after the cursor in log order, and the cursor to continue from. Without `after`: from `earliest`.",
            parameters=[_REFERENCE, _AFTER, _LIMIT, _WAIT_S],
            responses={
                "200": _json(
                    ref("Pulled"), "Events.", {"events": [_EVENT_EXAMPLE], "recovered": True, **_PLACE_EXAMPLE}
                )
            },
        ),
        "post": _operation(
            "rps_publish",
            "Publish",
            "The answer is sent once the events are as durable as the rendezvous point's `ack` requires.",
            parameters=[_REFERENCE],
            requestBody=_PUBLISH_BODY,
            responses={
                "201": _json(
                    ref("Published"),
                    "Published.",
                    {**_PLACE_EXAMPLE, "id": "42", "source": "/sensors/roof", "duplicate": False},
                )
            },
        ),
    },
    "/api/v1/rps/{reference}/stream": {
        "get": _operation(
            "rps_stream",
            "Stream events (Server-Sent Events)",
            "`id:` is the cursor, `data:` the event; `Last-Event-ID` resumes. A `gap` event reports lost events.",
            parameters=[
                _REFERENCE,
                _query("after", _BEGIN, f"A cursor, or earliest, last, now (the default), or a time: {_TIME}"),
                {
                    "name": "Last-Event-ID",
                    "in": "header",
                    "schema": _BEGIN,
                    "description": "As `after`, and takes precedence over it.",
                },
            ],
            responses={
                "200": {
                    "description": "The stream, until the client disconnects or the token expires.",
                    "content": {"text/event-stream": {"schema": {"type": "string"}}},
                }
            },
        )
    },
    "/api/v1/subscriptions/{subscription_id}/events": {
        "get": _operation(
            "subscriptions_pull",
            "Read on",
            "Events after the acknowledged position, or after `after`. Reading acknowledges nothing.",
            parameters=[_SUBSCRIPTION_ID, _AFTER, _LIMIT, _WAIT_S],
            responses={
                "200": _json(
                    ref("Pulled"), "Events.", {"events": [_EVENT_EXAMPLE], "recovered": True, **_PLACE_EXAMPLE}
                )
            },
        )
    },
    "/api/v1/subscriptions/{subscription_id}/ack": {
        "post": _operation(
            "subscriptions_ack",
            "Acknowledge",
            "Acknowledges everything up to and including the cursor; the answer is the acknowledged position, which never moves back.",
            parameters=[_SUBSCRIPTION_ID],
            requestBody={
                "required": True,
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "properties": {"cursor": {"type": "string", "pattern": f"^{CURSOR_PATTERN}$"}},
                            "required": ["cursor"],
                            "additionalProperties": False,
                        },
                        "example": {"cursor": "k3j5h2ab:7"},
                    }
                },
            },
            responses={"200": _json(ref("Acknowledged"), "Acknowledged.", {"cursor": "k3j5h2ab:7"})},
        )
    },
}
