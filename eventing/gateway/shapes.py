"""Shapes of events, and of answers to publishing, reading and acknowledging. The hot path writes the same by hand."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, field

from eventing.core.shapes import Base64, Count, Moment, Shape, doc, one_of
from eventing.rest.shapes import Continuation, Epoch, Offset

Filled = Annotated[str, Meta(min_length=1)]


class CloudEventAnswer(Shape):
    """CloudEvents 1.0.2, structured; extension attributes are further members."""

    specversion: Annotated[str, one_of("1.0")]
    id: Filled
    source: Annotated[Filled, Meta(extra_json_schema={"format": "uri-reference"})]
    type: Filled
    datacontenttype: str | UnsetType = UNSET
    dataschema: Annotated[str, Meta(extra_json_schema={"format": "uri"})] | UnsetType = UNSET
    subject: Filled | UnsetType = UNSET
    time: Moment | UnsetType = UNSET
    data: Annotated[Any, doc("Any JSON value, stored unchanged.")] = UNSET
    data_base64: Base64 | UnsetType = UNSET


class PublishedResult(Shape):
    """Position of one event of a batch."""

    offset: Count
    duplicate: bool


class PublishedAnswer(Shape):
    """One event: with id, source, duplicate. A batch: with results, in its order."""

    epoch: Epoch
    offset: Offset
    cursor: Continuation
    id: str | UnsetType = UNSET
    source: str | UnsetType = UNSET
    duplicate: Annotated[bool | UnsetType, doc("Already known by (source, id); `offset` is that of the first.")] = UNSET
    results: list[PublishedResult] | UnsetType = UNSET


class RewoundAnswer(Shape):
    """Events that the reader was given and that the domain has lost since: offsets of an epoch that ended, both included."""

    epoch: str
    first: Count = field(name="from")
    last: Count = field(name="to")


class GapAnswer(Shape):
    """Requested offsets that are not held, both ends included."""

    epoch: str
    first: Count = field(name="from")
    last: Count = field(name="to")
    feeds: Annotated[
        dict[str, Annotated[list[Count], Meta(min_length=2, max_length=2)]] | UnsetType,
        doc(
            "Where the rendezvous point has replicas, exactly the lost events: per feed the first and the last sequence."
        ),
    ] = UNSET
    cursor: Continuation | UnsetType = UNSET
    rewound: RewoundAnswer | UnsetType = UNSET


class PulledAnswer(Shape):
    """Events after a cursor, and the cursor to continue from."""

    events: list[CloudEventAnswer]
    cursor: Continuation
    recovered: Annotated[bool, doc("Whether everything after the cursor was held; else see `gap`.")]
    epoch: Epoch
    offset: Offset
    offsets: Annotated[
        list[Count] | UnsetType, doc("Offsets of the events, if the reader already has others between them.")
    ] = UNSET
    gap: GapAnswer | UnsetType = UNSET


class AcknowledgedAnswer(Shape):
    """Acknowledged position of a subscription."""

    cursor: Continuation
