"""The appender's batch queue with spans: one for each pipeline, linked to the requests of its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventing.log.appender import Outcome, _Append, _BatchQueue
from eventing.telemetry import tracing

if TYPE_CHECKING:
    from opentelemetry.trace import Link


class TracedBatchQueue(_BatchQueue):
    """As _Lane. An append is linked to its request, else to the trace context of its events."""

    _links: dict[int, list[Link]]

    def put(self, append: _Append) -> None:
        """Remember the current span, for which the append is made."""
        self.__dict__.setdefault("_links", {})[id(append)] = self._of(append)
        super().put(append)

    def _of(self, append: _Append) -> list[Link]:
        here = tracing.link_here()
        return [here] if here is not None else tracing.of_events(event.body for event in append.events)[1]

    async def _run(self, pipeline: list[_Append]) -> list[Outcome]:
        links = [link for append in pipeline for link in self._links.pop(id(append), ())]
        attributes: tracing.Attributes = {
            "messaging.system": "herald",
            "messaging.operation.type": "send",
            "messaging.batch.message_count": sum(len(append.events) for append in pipeline),
            "herald.append.publishes": len(pipeline),
        }
        if not links:
            return await super()._run(pipeline)
        with tracing.span(
            "append", "producer", parent=tracing.parent_of(links[0]), links=links[1:], attributes=attributes
        ):
            return await super()._run(pipeline)
