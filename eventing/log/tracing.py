"""The appender's lane where spans are made: one for each flight, linked to what brought its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventing.log.appender import Outcome, _Append, _Lane
from eventing.telemetry import tracing

if TYPE_CHECKING:
    from opentelemetry.trace import Link


class TracedLane(_Lane):
    """As the ordinary one. An append is linked to the request that it came by, else to what its events say themselves."""

    _links: dict[int, list[Link]]

    def put(self, append: _Append) -> None:
        """Remember what is being done now, which is what the append is for."""
        self.__dict__.setdefault("_links", {})[id(append)] = self._of(append)
        super().put(append)

    def _of(self, append: _Append) -> list[Link]:
        here = tracing.link_here()
        return [here] if here is not None else tracing.of_events(event.body for event in append.events)[1]

    async def _fly(self, flight: list[_Append]) -> list[Outcome]:
        links = [link for append in flight for link in self._links.pop(id(append), ())]
        attributes: tracing.Attributes = {
            "messaging.system": "herald",
            "messaging.operation.type": "send",
            "messaging.batch.message_count": sum(len(append.events) for append in flight),
            "herald.append.publishes": len(flight),
        }
        if not links:
            return await super()._fly(flight)
        with tracing.span(
            "append", "producer", parent=tracing.parent_of(links[0]), links=links[1:], attributes=attributes
        ):
            return await super()._fly(flight)
