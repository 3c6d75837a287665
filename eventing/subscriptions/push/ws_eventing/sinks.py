"""The sink of a subscription as it is stored: the form of its messages, and where they are sent. Pure.

Addresses and reference parameters are secrets: they may have tokens in them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import msgspec

from eventing.core.container import memoized
from eventing.core.decoding import json_reader
from eventing.core.errors import InvalidRequest
from eventing.subscriptions.push.rules.addresses import EndpointUrl, endpoint_url
from eventing.subscriptions.push.ws_eventing.dialects import (
    ADDRESSING_2004,
    ADDRESSING_2005,
    EVENTING_2004,
    EVENTING_2011,
    SOAP_11,
    SOAP_12,
    MessageForm,
)
from eventing.subscriptions.push.ws_eventing.envelopes import EndpointReference
from eventing.subscriptions.push.ws_eventing.requests import Subscribe

MODE = "ws-eventing"
SINKS_REMEMBERED = 1024  # bound: parsed sinks in memory; the sink is parsed again


class StoredReference(msgspec.Struct, array_like=True, frozen=True):
    """An endpoint reference."""

    address: str
    parameters: tuple[bytes, ...] = ()

    @property
    def reference(self) -> EndpointReference:
        """The reference as messages need it."""
        return EndpointReference(self.address, self.parameters)


class EventSink(msgspec.Struct, array_like=True, frozen=True):
    """The sink of a subscription.

    Attributes:
        soap_11, addressing_2004, eventing_2004: the form of its messages.
        end_to: where SubscriptionEnd is sent; None for nowhere.
        requester: address from which Subscribe was sent; empty if not known.
    """

    soap_11: bool
    addressing_2004: bool
    eventing_2004: bool
    wrapped: bool
    notify_to: StoredReference
    end_to: StoredReference | None = None
    requester: str = ""

    @property
    def form(self) -> MessageForm:
        """The form of its messages."""
        return MessageForm(
            SOAP_11 if self.soap_11 else SOAP_12,
            ADDRESSING_2004 if self.addressing_2004 else ADDRESSING_2005,
            EVENTING_2004 if self.eventing_2004 else EVENTING_2011,
        )

    @property
    def format(self) -> str:
        """The form of notifications as answers show it."""
        return "2004" if self.eventing_2004 else "2011-wrapped" if self.wrapped else "2011"


_encode = msgspec.json.Encoder().encode
_decode = json_reader(EventSink)


def sink_of(form: MessageForm, wish: Subscribe, requester: str) -> EventSink:
    """Make the sink that a Subscribe of this form states."""
    notify, end = wish.notify_to, wish.end_to
    return EventSink(
        soap_11=form.soap is SOAP_11,
        addressing_2004=form.addressing is ADDRESSING_2004,
        eventing_2004=form.eventing is EVENTING_2004,
        wrapped=wish.wrapped,
        notify_to=StoredReference(notify.address, notify.parameters),
        end_to=None if end is None else StoredReference(end.address, end.parameters),
        requester=requester,
    )


def sink_text(sink: EventSink) -> str:
    """Return the text that is sealed."""
    return _encode(sink).decode()


@memoized(maxsize=SINKS_REMEMBERED)
def sink_parse(text: str) -> EventSink:
    """Parse what `sink_text` made. Raises Undecodable."""
    return _decode(text.encode())


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Validated options of an endpoint with the mode `ws-eventing`.

    Attributes:
        url: NotifyTo's address.
        mode_data: the sink, as it is sealed.
    """

    url: str
    parts: EndpointUrl
    sink: EventSink
    mode_data: str
    headers: tuple[tuple[str, str], ...] = ()
    secret: str = ""

    @property
    def shown(self) -> dict[str, Any]:
        """The options as answers and administrative events show them: without secrets."""
        return {
            "mode": MODE,
            "url": self.parts.shown,
            "format": self.sink.format,
            "ordered": True,
            "in_flight": 1,
            "batch": 1,
            "max_attempts": None,
        }


def sink_options(text: str, *, ports: Collection[int], private: bool) -> SinkOptions:
    """Validate a sink, as `sink_text` made it. Raises InvalidRequest.

    EndTo is at NotifyTo's scheme, host and port, so that the consent of one is that of the other.
    """
    sink = sink_parse(text)
    parts = endpoint_url(sink.notify_to.address, ports=ports, private=private)
    if sink.end_to is not None:
        end = endpoint_url(sink.end_to.address, ports=ports, private=private)
        if (end.scheme, end.host, end.port) != (parts.scheme, parts.host, parts.port):
            raise InvalidRequest("EndTo is at the scheme, host and port of NotifyTo.")
    return SinkOptions(sink.notify_to.address, parts, sink, text)
