"""Spans of the appender: one for each pipeline, linked to the requests of its events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from eventing.core.events.cloudevents import Event
from eventing.telemetry import tracing

if TYPE_CHECKING:
    from opentelemetry.trace import Link


class TracedAppend(Protocol):
    """An append (appender.py), as its spans use it."""

    @property
    def events(self) -> Sequence[Event]:
        """The events."""


class AppendSpans:
    """Spans of one batch queue. An append is linked to its request, else to the trace context of its events."""

    def __init__(self) -> None:
        self._links: dict[int, list[Link]] = {}

    def queued(self, append: TracedAppend) -> None:
        """Remember the current span, for which the append is made."""
        here = tracing.link_here()
        links = [here] if here is not None else tracing.of_events(event.body for event in append.events)[1]
        self._links[id(append)] = links

    @contextmanager
    def of(self, pipeline: Sequence[TracedAppend]) -> Iterator[None]:
        """Make a span of the block, which sends this pipeline, if any of its appends has a trace."""
        links = [link for append in pipeline for link in self._links.pop(id(append), ())]
        if not links:
            yield
            return
        attributes: tracing.Attributes = {
            "messaging.system": "herald",
            "messaging.operation.type": "send",
            "messaging.batch.message_count": sum(len(append.events) for append in pipeline),
            "herald.append.publishes": len(pipeline),
        }
        parent = tracing.parent_of(links[0])
        with tracing.span("append", "producer", parent=parent, links=links[1:], attributes=attributes):
            yield
