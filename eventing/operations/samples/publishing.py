"""Publishing of samples on administrative logs: one turn's samples in one round trip, without retry.

Changes are published through the outbox, because none may be lost; an old sample is worthless, so samples that Redis
does not accept now are dropped.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from eventing.core.config import Config
from eventing.core.events.cloudevents import Event
from eventing.core.timestamps import timestamp
from eventing.log.reader import LogReader
from eventing.outbox import administrative_events as events

log = logging.getLogger(__name__)


class Sampled(NamedTuple):
    """A sample to publish: its administrative RP, type and data."""

    at: str
    kind: str
    data: Mapping[str, Any]


class SamplePublisher:
    """The publisher of one gateway.

    Args:
        gateway: its id; part of the events' ids.
        reader: its connection to the logs; the hot path's are left alone.
        make_logs: makes the missing logs of administrative RPs; returns those whose RPs exist.
    """

    def __init__(
        self,
        gateway: str,
        reader: LogReader,
        config: Config,
        make_logs: Callable[[Sequence[str]], Awaitable[Collection[str]]],
    ) -> None:
        self._gateway = gateway
        self._reader = reader
        self._window_s, self._ids_max = config.dedup_window_s, config.dedup_ids_max
        self._make_logs = make_logs
        self._numbers = itertools.count(1)

    async def publish(self, sampled: Sequence[Sampled], now: float) -> None:
        """Append the samples, those for one log together. Raises redis.RedisError; what was not appended is dropped.

        Args:
            now: Unix seconds, the events' time.
        """
        moment = datetime.fromtimestamp(now, UTC)
        by_log: dict[str, list[Event]] = {}
        for one in sampled:
            by_log.setdefault(one.at, []).append(self._event(one, moment))
        lacking = await self._append(by_log)
        if lacking:  # samples of a removed RP are dropped
            lacking = await self._append({at: by_log[at] for at in await self._make_logs(lacking)})
        if lacking:
            log.warning("Samples of %d administrative logs were dropped: the logs could not be made.", len(lacking))

    async def _append(self, logs: Mapping[str, Sequence[Event]]) -> list[str]:
        """Append in one round trip. Return the administrative RPs that have no log."""
        return await self._reader.append_all(list(logs.items()), self._window_s, self._ids_max)

    def _event(self, one: Sampled, moment: datetime) -> Event:
        return events.event_of(
            {
                "id": f"{self._gateway}-{next(self._numbers)}",
                "source": events.source_of(one.at),
                "type": one.kind,
                "time": timestamp(moment),
                "data": one.data,
            }
        )
