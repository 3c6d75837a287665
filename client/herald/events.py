"""Sent and received items: CloudEvents as plain dicts, their places, and gaps."""

from __future__ import annotations

import base64
import json
import socket
import uuid
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from herald.cloud_event import Event, is_sdk_event
from herald.errors import InputError

TYPE_DEFAULT = "io.herald.message"
JsonEvent = dict[str, Any]


class Acknowledging(Protocol):
    """The subscription that handed an item out."""

    def acknowledge(self, cursor: str, number: int) -> Awaitable[None]:
        """Record that everything up to `cursor`, of the `number`-th item handed out, has been processed."""


class HandedOut:
    """An item with a reference to the subscription that handed it out. The reference is not part of its value: copies
    have none.
    """

    __slots__ = ("_handed_out",)
    _handed_out: tuple[Acknowledging, int]
    cursor: str

    def ack(self) -> Awaitable[None]:
        """Declare everything up to this item processed: its position is stored, or acknowledged to the domain.

        `await item.ack()` returns once that is done; in a program without asyncio `item.ack()` does it at once. Without
        it an item counts as processed when the next one is requested, or its loop is left by `break` or `return`.

        Raises:
            InputError: the item was not received from a subscription.
            HeraldError: the domain refused the acknowledgement, or the state cannot be stored.
        """
        found: tuple[Acknowledging, int] | None = getattr(self, "_handed_out", None)
        if found is None:
            raise InputError("The item was not received from a subscription and cannot be acknowledged.")
        reader, number = found
        return reader.acknowledge(self.cursor, number)


def hand_out(item: Item, reader: Acknowledging, number: int) -> None:
    """Set the subscription that hands `item` out, as its `number`-th."""
    object.__setattr__(item, "_handed_out", (reader, number))


@dataclass(frozen=True, slots=True)
class Received(HandedOut):
    """An event and its place.

    Attributes:
        event: the CloudEvent: a dict, whose attributes can be read by name as well.
        rp: id of the rendezvous point.
        epoch, offset: place in the domain's log; offsets of one epoch are contiguous.
        cursor: opaque; to be stored to continue after this event.
    """

    event: Event
    rp: str
    epoch: str
    offset: int
    cursor: str

    def __post_init__(self) -> None:
        """Accept a plain dict for the event, as programs that make items of their own gave before there was a type."""
        given: JsonEvent = self.event
        if not isinstance(given, Event):
            object.__setattr__(self, "event", Event(given))

    @property
    def data(self) -> Any:
        """Return the event's data: a JSON value, or bytes if it is `data_base64`; None if it has none."""
        return self.event.data

    @property
    def id(self) -> str:
        """Return the event's id, unique within its source."""
        return self.event.id

    @property
    def type(self) -> str:
        """Return the event's type."""
        return self.event.type

    @property
    def source(self) -> str:
        """Return the event's source."""
        return self.event.source


@dataclass(frozen=True, slots=True)
class Gap(HandedOut):
    """Events that a reader requested and cannot get: trimmed from the history, or of an ended epoch.

    Attributes:
        rp: id of the rendezvous point.
        epoch: the epoch in which reading continues.
        start, end: first and last missing offset of `epoch`, both inclusive; `end < start` if none of it is missing.
        previous_epoch: the reader's former epoch, if it ended; how many of its events were missed is unknown. Else
            None.
        cursor: opaque; to be stored to continue behind the gap.
        feeds: at an RP with replicas, the first and last lost sequence of each feed, both inclusive: exactly what is
            missing, at whichever replica one reads. Empty elsewhere.
        rewound: events that the reader was given and that the domain has lost since, because a server was replaced by one
            that did not have them, or was restored: epoch, first and last offset. Other events have these offsets in
            `epoch`. None: nothing was withdrawn.
    """

    rp: str
    epoch: str
    start: int
    end: int
    previous_epoch: str | None
    cursor: str
    feeds: Mapping[str, tuple[int, int]] = field(default_factory=dict, hash=False)
    rewound: tuple[str, int, int] | None = None

    @property
    def missing(self) -> int:
        """Return how many events of `epoch` are known to be missing."""
        return max(0, self.end - self.start + 1)

    def __str__(self) -> str:
        if self.rewound is not None:
            epoch, first, last = self.rewound
            more = f", and offsets {self.start} to {self.end} are missing" if self.missing else ""
            return f"the events {epoch}:{first} to {last} of {self.rp} were withdrawn{more}: reading goes on after {self.cursor}"
        what = f"offsets {self.start} to {self.end} are missing" if self.missing else "earlier events are missing"
        if self.previous_epoch is not None:
            return f"the log of {self.rp} began a new epoch ({self.epoch}, before {self.previous_epoch}): {what}"
        return f"the history of {self.rp} was trimmed: {what}"


Item = Received | Gap


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A domain's confirmation of one published event, sent once it is as durable as the RP's acknowledgement level
    requires.

    Attributes:
        id, source: of the event; publishing the same pair again within the domain's window has no effect.
        epoch, offset: the event's place.
        duplicate: the event was stored already; `offset` is its place or, if unknown to the domain, the log's end.
    """

    id: str
    source: str
    epoch: str
    offset: int
    duplicate: bool


def source_default() -> str:
    """Return the source of events without one: this host."""
    return f"urn:herald:host:{socket.gethostname()}"


def event(
    data: Any = None,
    *,
    type: str = TYPE_DEFAULT,
    source: str | None = None,
    id: str | None = None,
    time: datetime | None = None,
    datacontenttype: str | None = None,
    **attributes: Any,
) -> Event:
    """Make a CloudEvent.

    Arguments:
        data: bytes become `data_base64`, text stays text, everything else must be JSON; None for no data.
        type: the kind of event, of the form `org.example.thing.happened`.
        source: URI reference of the event's origin; None for this host.
        id: unique within the source; None for a random one.
        time: when it happened, with a time zone; None for now.
        datacontenttype: media type of `data`; None to derive it from the kind of `data`.
        attributes: `subject`, `dataschema` and extension attributes.
    """
    moment = time or datetime.now(UTC)
    made = Event(
        specversion="1.0",
        id=id or str(uuid.uuid4()),
        source=source or source_default(),
        type=type,
        time=moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **attributes,
    )
    if isinstance(data, bytes | bytearray | memoryview):
        made["datacontenttype"] = datacontenttype or "application/octet-stream"
        made["data_base64"] = base64.b64encode(data).decode()
    elif data is not None:
        made["datacontenttype"] = datacontenttype or ("text/plain" if isinstance(data, str) else "application/json")
        made["data"] = data
    return made


def is_event(value: Any) -> bool:
    """Return whether `value` is a whole CloudEvent: a mapping with `specversion`, or one of the CloudEvents SDK."""
    return (isinstance(value, Mapping) and "specversion" in value) or is_sdk_event(value)


def as_event(value: Any, **attributes: Any) -> Event:
    """Return `value` itself if it is a CloudEvent, else an event with `value` as its data.

    Raises ValueError if attributes are given for a complete event, or an event lacks its id or source.
    """
    if not is_event(value):
        return event(value, **attributes)
    if attributes:
        raise ValueError(f"the event has its own attributes; {', '.join(attributes)} cannot be given in addition")
    whole = Event(value) if isinstance(value, Mapping) else Event.from_sdk(value)
    for name in ("id", "source"):
        if not isinstance(whole.get(name), str) or not whole[name]:
            raise ValueError(f"the event has no {name}: without it a repeated publish could not be recognised")
    return whole


def event_data(event: Mapping[str, Any]) -> Any:
    """Return the data of a CloudEvent in JSON form; see Event.data."""
    return Event(event).data


def encode(value: Any) -> str:
    """Return the JSON text to send. Raises ValueError for values outside JSON (NaN, infinity, lone surrogates)."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text.encode()
    return text
