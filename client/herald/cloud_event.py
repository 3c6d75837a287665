"""An event as a program sees it: the CloudEvent in its JSON form, a dict, whose attributes can be read by name as well.

    item.event["type"] == item.event.type
    item.event.time                       # a datetime, or None
    item.event.extensions["priority"]

The bridge to the CloudEvents SDK (the package `cloudevents`) needs that package only when it is used:

    sdk_event = item.event.to_sdk()
    await client.publish("weather", sdk_event)
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from cloudevents.core.v1.event import CloudEvent

CONTEXT = frozenset({"specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time"})
"""Attributes that CloudEvents defines; all others are extensions."""
_DATA = frozenset({"data", "data_base64"})


class Event(dict[str, Any]):
    """A CloudEvent 1.0 in its JSON form; equal to a dict with the same members. What a domain delivers is complete; of an
    event of another origin, an attribute that is missing is an empty text or None.
    """

    __slots__ = ()

    @property
    def id(self) -> str:
        """Return the id, unique within the source."""
        return str(self.get("id", ""))

    @property
    def source(self) -> str:
        """Return the URI reference of the origin."""
        return str(self.get("source", ""))

    @property
    def type(self) -> str:
        """Return the kind of event."""
        return str(self.get("type", ""))

    @property
    def specversion(self) -> str:
        """Return the version of CloudEvents."""
        return str(self.get("specversion", ""))

    @property
    def subject(self) -> str | None:
        """Return what the event is about within its source."""
        return self._text("subject")

    @property
    def datacontenttype(self) -> str | None:
        """Return the media type of the data."""
        return self._text("datacontenttype")

    @property
    def dataschema(self) -> str | None:
        """Return the URI of the data's schema."""
        return self._text("dataschema")

    @property
    def time(self) -> datetime | None:
        """Return when it happened; None if it does not state it, or not as RFC 3339 has it."""
        text = self.get("time")
        try:
            return datetime.fromisoformat(text) if isinstance(text, str) else None
        except ValueError:
            return None

    @property
    def data(self) -> Any:
        """Return the data: a JSON value, or bytes if it is `data_base64`; None if there is none. Malformed base64 is
        returned as text.
        """
        encoded = self.get("data_base64")
        if not isinstance(encoded, str):
            return self.get("data")
        try:
            return base64.b64decode(encoded, validate=True)
        except ValueError:
            return encoded

    @property
    def extensions(self) -> dict[str, Any]:
        """Return the extension attributes."""
        return {name: value for name, value in self.items() if name not in CONTEXT and name not in _DATA}

    def to_sdk(self) -> CloudEvent:
        """Return the event as one of the CloudEvents SDK.

        Raises ImportError without the package `cloudevents`, and the SDK's error for an event that it finds invalid.
        """
        from cloudevents.core.v1.event import CloudEvent

        attributes = {name: value for name, value in self.items() if name not in _DATA}
        if (time := self.time) is not None:
            attributes["time"] = time
        return CloudEvent(attributes, self.data)

    @classmethod
    def from_sdk(cls, event: Any) -> Self:
        """Return an event of the CloudEvents SDK in its JSON form. Raises TypeError for anything else."""
        if not is_sdk_event(event):
            raise TypeError(f"a CloudEvent of the package cloudevents is needed, not {type(event).__name__}")
        made = cls()
        for name, value in event.get_attributes().items():
            made[name] = _rfc3339(value) if isinstance(value, datetime) else value
        data = event.get_data()
        if isinstance(data, bytes | bytearray):
            made.update(_of_bytes(bytes(data), made.datacontenttype))
        elif data is not None:
            made["data"] = data
        return made

    def _text(self, name: str) -> str | None:
        value = self.get(name)
        return None if value is None else str(value)


def is_sdk_event(value: object) -> bool:
    """Return whether `value` is an event of the CloudEvents SDK, without importing that."""
    return not isinstance(value, Mapping) and hasattr(value, "get_attributes") and hasattr(value, "get_data")


def _rfc3339(moment: datetime) -> str:
    precision = "auto" if moment.microsecond % 1000 else "milliseconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def _of_bytes(data: bytes, media_type: str | None) -> dict[str, Any]:
    """Return the member for bytes, which the SDK reads for data of every media type from binary requests: JSON as JSON."""
    if media_type is not None and media_type.partition(";")[0].strip().endswith("json"):
        try:
            return {"data": json.loads(data)}
        except ValueError:
            pass
    return {"data_base64": base64.b64encode(data).decode()}
