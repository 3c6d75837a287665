"""Samples on their way into administrative logs: a turn's worth in one round trip, once, and never again.

Changes go through the outbox, because none may be lost; a sample is worth nothing later, so what Redis does not take now is
dropped.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from redis.exceptions import NoScriptError, RedisError

from eventing.core.config import Config
from eventing.core.events.cloudevents import Event
from eventing.core.timestamps import timestamp
from eventing.log import scripts
from eventing.log.reader import LogReader
from eventing.outbox import administrative_events as events

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
        reader: its connection to the logs; the hot path's are left alone.
        make_logs: makes the missing logs of administrative RPs; returns those whose RPs are there.
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
                "time": timestamp(moment),
                "data": one.data,
            }
        )

    async def _append(self, logs: list[tuple[str, list[Event]]]) -> list[tuple[str, list[Event]]]:
        """One round trip; returns those to try again."""
        answers = await self._reader.ask(
            [
                ("EVALSHA", scripts.APPEND.sha, *scripts.append_args(at, made, self._window_s, self._ids_max))
                for at, made in logs
            ]
        )
        again: list[tuple[str, list[Event]]] = []
        unmade: dict[str, list[Event]] = {}
        for one, answer in zip(logs, answers, strict=True):
            if isinstance(answer, NoScriptError):
                again.append(one)
            elif isinstance(answer, RedisError) and str(answer).startswith("NOLOG"):
                unmade[one[0]] = one[1]
            elif isinstance(answer, Exception):
                raise answer
        if unmade:  # the samples of an RP that is gone go with it
            again += [(at, unmade[at]) for at in await self._make_logs(list(unmade))]
        if any(isinstance(answer, NoScriptError) for answer in answers):
            await self._reader.ask([("SCRIPT", "LOAD", scripts.APPEND.text)])
        return again
