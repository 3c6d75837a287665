"""Samples on their way into administrative logs: a turn's worth in one round trip, once, and never again.

Changes go through the outbox, because none may be lost; a sample is worth nothing later, so what Redis does not take now is
dropped.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import redis.asyncio
from redis.exceptions import NoScriptError, RedisError

from eventing.core.config import Config
from eventing.core.errors import HeraldError
from eventing.core.events.cloudevents import Event
from eventing.log import scripts
from eventing.services import administrative_events as events

log = logging.getLogger(__name__)


class Told(NamedTuple):
    """One event to be: the administrative RP that it goes to, its type and data."""

    at: str
    kind: str
    data: Mapping[str, Any]


class Publisher:
    """Of one gateway.

    Args:
        gateway: its id; part of the events' ids.
        make_log: makes the missing log of an administrative RP; raises HeraldError when its RP is gone.
    """

    def __init__(
        self, gateway: str, client: redis.asyncio.Redis, config: Config, make_log: Callable[[str], Awaitable[None]]
    ) -> None:
        self._gateway = gateway
        self._client = client
        self._window_s, self._ids_max = config.dedup_window_s, config.dedup_ids_max
        self._make_log = make_log
        self._numbers = itertools.count(1)

    async def publish(self, told: Sequence[Told], now: float) -> None:
        """Append them, those for one log together. Raises redis' errors; what was not appended is dropped.

        Args:
            now: Unix seconds, the events' time.
        """
        moment = datetime.fromtimestamp(now, UTC)
        by_log: dict[str, list[Event]] = {}
        for one in told:
            by_log.setdefault(one.at, []).append(self._event(one, moment))
        left = list(by_log.items())
        for _ in range(3):  # the script unknown, a log missing, both; never more
            if not left:
                return
            left = await self._append(left)
        log.warning("Samples of %d administrative logs were dropped: the logs could not be made.", len(left))

    def _event(self, one: Told, moment: datetime) -> Event:
        return events.event_of(
            {
                "id": f"{self._gateway}-{next(self._numbers)}",
                "source": events.source_of(one.at),
                "type": one.kind,
                "time": events.timestamp(moment),
                "data": one.data,
            }
        )

    async def _append(self, logs: list[tuple[str, list[Event]]]) -> list[tuple[str, list[Event]]]:
        """One round trip; returns those to try again."""
        pipeline = self._client.pipeline(transaction=False)
        for at, made in logs:
            pipeline.evalsha(scripts.APPEND.sha, *scripts.append_args(at, made, self._window_s, self._ids_max))
        answers: list[Any] = await pipeline.execute(raise_on_error=False)
        again: list[tuple[str, list[Event]]] = []
        for one, answer in zip(logs, answers, strict=True):
            if isinstance(answer, NoScriptError):
                again.append(one)
            elif isinstance(answer, RedisError) and str(answer).startswith("NOLOG"):
                try:
                    await self._make_log(one[0])
                except HeraldError:
                    continue  # the RP is gone, and its samples with it
                again.append(one)
            elif isinstance(answer, Exception):
                raise answer
        if any(isinstance(answer, NoScriptError) for answer in answers):
            await self._client.script_load(scripts.APPEND.text)
        return again
