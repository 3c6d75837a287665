"""What is sent and received: CloudEvents as plain dicts, where they stand, and what could not be had."""

from __future__ import annotations

import base64
import json
import socket
import uuid
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from herald.errors import InputError

TYPE_DEFAULT = "io.herald.message"
JsonEvent = dict[str, Any]


class Acknowledging(Protocol):
    """The subscription that handed an item out."""

    def acknowledge(self, cursor: str, number: int) -> Awaitable[None]:
        """Everything up to `cursor`, of the `number`-th item that was handed out, has been dealt with."""


class HandedOut:
    """An item that knows the subscription which handed it out. That is no part of its value: copies do not know it."""

    __slots__ = ("_handed_out",)
    _handed_out: tuple[Acknowledging, int]
    cursor: str

    def ack(self) -> Awaitable[None]:
        """Declare everything up to this item done: its place is stored, or acknowledged to the domain.

        `await item.ack()` returns once that is done; in a program without asyncio `item.ack()` does it at once. Without
        it an item counts as done when the next one is asked for, or its loop is left by `break` or `return`.

        Raises:
            InputError: the item was not received from a subscription.
            HeraldError: the domain did not take the acknowledgement, or the state cannot be stored.
        """
        found: tuple[Acknowledging, int] | None = getattr(self, "_handed_out", None)
        if found is None:
            raise InputError("The item was not received from a subscription: there is nobody to acknowledge it to.")
        reader, number = found
        return reader.acknowledge(self.cursor, number)


def hand_out(item: Item, reader: Acknowledging, number: int) -> None:
    """Let `item` know the subscription that hands it out, as its `number`-th."""
    object.__setattr__(item, "_handed_out", (reader, number))


@dataclass(frozen=True, slots=True)
class Received(HandedOut):
    """An event and its place.

    Attributes:
        event: the CloudEvent in its JSON form.
        rp: id of the rendezvous point.
        epoch, offset: place in the domain's log; offsets of one epoch are contiguous.
        cursor: what to hold to continue after this event. Opaque.
    """

    event: JsonEvent
    rp: str
    epoch: str
    offset: int
    cursor: str

    @property
    def data(self) -> Any:
        """The event's data: a JSON value, or bytes if it came as `data_base64`; None if it has none."""
        return event_data(self.event)

    @property
    def id(self) -> str:
        """The event's id, unique within its source."""
        return str(self.event.get("id", ""))

    @property
    def type(self) -> str:
        """The event's type."""
        return str(self.event.get("type", ""))

    @property
    def source(self) -> str:
        """The event's source."""
        return str(self.event.get("source", ""))


@dataclass(frozen=True, slots=True)
class Gap(HandedOut):
    """Events that a reader asked for and cannot have: trimmed from the history, or of a numbering that has ended.

    Attributes:
        rp: id of the rendezvous point.
        epoch: the epoch that reading goes on in.
        start, end: first and last missing offset of `epoch`, both inclusive; `end < start` if none of it is missing.
        previous_epoch: the epoch the reader was in, if it ended; how much of it was missed is unknown. Else None.
        cursor: what to hold to continue behind the gap. Opaque.
        feeds: where the RP has replicas, the first and last sequence lost of each feed, both inclusive: exactly what is
            missing, whichever replica one reads at. Empty elsewhere.
    """

    rp: str
    epoch: str
    start: int
    end: int
    previous_epoch: str | None
    cursor: str
    feeds: Mapping[str, tuple[int, int]] = field(default_factory=dict, hash=False)

    @property
    def missing(self) -> int:
        """How many events of `epoch` are known to be missing."""
        return max(0, self.end - self.start + 1)

    def __str__(self) -> str:
        what = f"offsets {self.start} to {self.end} are missing" if self.missing else "earlier events are missing"
        if self.previous_epoch is not None:
            return f"the log of {self.rp} has begun anew (epoch {self.epoch}, before {self.previous_epoch}): {what}"
        return f"the history of {self.rp} no longer holds everything: {what}"


Item = Received | Gap


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A domain's promise for one published event, given once it is as durable as the RP's ack level asks.

    Attributes:
        id, source: of the event; publishing the same pair again within the domain's window changes nothing.
        epoch, offset: where the event stands.
        duplicate: the event was there already; `offset` is where it stands or, if unknown to the domain, the log's end.
    """

    id: str
    source: str
    epoch: str
    offset: int
    duplicate: bool


def source_default() -> str:
    """The source of events that state none: this host."""
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
) -> JsonEvent:
    """Make a CloudEvent.

    Arguments:
        data: bytes become `data_base64`, text stays text, everything else must be JSON; None for no data.
        type: the kind of event, of the form `org.example.thing.happened`.
        source: URI reference of what the event comes from; None for this host.
        id: unique within the source; None for a random one.
        time: when it happened, with a time zone; None for now.
        datacontenttype: media type of `data`; None to tell it from the kind of `data`.
        attributes: `subject`, `dataschema` and extension attributes.
    """
    moment = time or datetime.now(UTC)
    made: JsonEvent = {
        "specversion": "1.0",
        "id": id or str(uuid.uuid4()),
        "source": source or source_default(),
        "type": type,
        "time": moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **attributes,
    }
    if isinstance(data, bytes | bytearray | memoryview):
        made["datacontenttype"] = datacontenttype or "application/octet-stream"
        made["data_base64"] = base64.b64encode(data).decode()
    elif data is not None:
        made["datacontenttype"] = datacontenttype or ("text/plain" if isinstance(data, str) else "application/json")
        made["data"] = data
    return made


def as_event(value: Any, **attributes: Any) -> JsonEvent:
    """`value` itself if it is a CloudEvent (a mapping with `specversion`), else an event with `value` as its data.

    Raises ValueError if attributes are stated for what is an event already, or an event lacks its id or source.
    """
    if not (isinstance(value, Mapping) and "specversion" in value):
        return event(value, **attributes)
    if attributes:
        raise ValueError(f"the event has its own attributes; {', '.join(attributes)} cannot be stated beside it")
    for name in ("id", "source"):
        if not isinstance(value.get(name), str) or not value[name]:
            raise ValueError(f"the event has no {name}: without it a repeated publish could not be recognised")
    return dict(value)


def event_data(event: Mapping[str, Any]) -> Any:
    """The data of a CloudEvent in JSON form; bytes if it is `data_base64`. Malformed base64 is given back as text."""
    encoded = event.get("data_base64")
    if not isinstance(encoded, str):
        return event.get("data")
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        return encoded


def encode(value: Any) -> str:
    """The JSON text that is sent. Raises ValueError for what JSON cannot say (NaN, infinity, lone surrogates)."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text.encode()
    return text
