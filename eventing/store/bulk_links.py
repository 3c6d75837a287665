"""Bulk connections to several primaries, one for each, for the hot path: `ask` as of BulkConnection.

A server that holds its connections but does not answer, as a stalled one does, is left as soon as another one is
promoted in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import redis.asyncio
from redis.exceptions import ConnectionError, RedisError, TimeoutError

from eventing.core.data_plane import ServerAddress
from eventing.store.bulk_connection import BulkConnection, Command
from eventing.store.plane import Plane, is_of_topology
from eventing.store.routed_async import SILENT_S, RoutedAsyncRedis, known, look_again
from eventing.store.spreading import Batch, Spreading

WAITS = ("WAIT", "WAITAOF")


class BulkLinks:
    """The connections. Their opener closes them; one `ask` at a time.

    Args:
        client: of the data plane.
        repeats_lost: repeat what was sent over a connection that broke; else its error is the commands' answer.
    """

    def __init__(self, client: RoutedAsyncRedis, *, repeats_lost: bool) -> None:
        self._client = client
        self._plane: Plane = client.plane
        self._repeats_lost = repeats_lost
        # Those for ASKING apart: a round may need both.
        self._links: dict[tuple[ServerAddress, bool], BulkConnection] = {}
        self._checks: dict[BulkConnection, asyncio.TimerHandle] = {}

    @property
    def is_open(self) -> bool:
        """True if there is a connection."""
        return any(link.is_open for link in self._links.values())

    def close(self) -> None:
        """Close all connections at once."""
        for link in self._links.values():
            link.close()

    async def ask(self, commands: Sequence[Command], timeout_s: float) -> list[Any]:
        """Send each command to the home of its keys, and return the answers in order, errors among them as values.

        WAIT and WAITAOF at the end are sent to every server of the others; the least answer is returned.
        Raises redis.RedisError where no topology is known.
        """
        count = len(commands)
        while count and commands[count - 1][0] in WAITS:
            count -= 1
        waits = commands[count:]
        waited: list[Any] = [None] * len(waits)
        await known(self._plane)
        work = Spreading(self._plane, commands[:count], repeats_lost=self._repeats_lost)
        while True:
            batches = work.batches()
            sent = [self._sent(batch, commands, waits, timeout_s) for batch in batches]
            for batch, outcome in zip(
                batches, [await sent[0]] if len(sent) == 1 else await asyncio.gather(*sent), strict=True
            ):
                if not isinstance(outcome, Exception) and waits:
                    outcome, ends = outcome[: -len(waits)], outcome[-len(waits) :]
                    if not all(map(is_of_topology, outcome)):
                        waited = list(map(_least, waited, ends))
                work.take(batch, outcome)
            pause_s = work.pause_s()
            if pause_s is None:
                break
            await asyncio.sleep(pause_s)
            await look_again(self._plane, work.began)
        if None in waited:  # nothing was carried out
            failed = next((one for one in work.answers if isinstance(one, Exception)), ConnectionError("no answer"))
            waited = [failed if one is None else one for one in waited]
        if not self._repeats_lost and any(isinstance(one, ConnectionError | TimeoutError) for one in work.answers):
            await look_again(self._plane, work.began)  # the caller repeats
        return [*work.answers, *waited]

    async def _sent(
        self, batch: Batch, commands: Sequence[Command], waits: Sequence[Command], timeout_s: float
    ) -> list[Any] | Exception:
        link = self._links.get((batch.place, batch.asking))
        if link is None:
            link = self._links[batch.place, batch.asking] = BulkConnection(self._client.node(batch.place))
        some: list[Command] = [commands[at] for at in batch.indexes]
        if batch.asking:
            some = [part for command in some for part in (("ASKING",), command)]
        self._check_later(batch.place, link)
        try:
            answers = await link.ask([*some, *waits], timeout_s)
        except RedisError as error:
            return error
        except OSError as error:  # among them TimeoutError
            return TimeoutError(f"{batch.place.name} does not answer ({error})")
        finally:
            self._checks.pop(link).cancel()
        if batch.asking:
            end = 2 * len(batch.indexes)
            return [*answers[1:end:2], *answers[end:]]
        return answers

    def _check_later(self, place: ServerAddress, link: BulkConnection) -> None:
        self._checks[link] = asyncio.get_running_loop().call_later(SILENT_S, self._leave_if_replaced, place, link)

    def _leave_if_replaced(self, place: ServerAddress, link: BulkConnection) -> None:
        """Break the connection of a server that has not answered and is no primary any more."""
        self._plane.refresh(SILENT_S)
        self._check_later(place, link)
        if all(primary.place != place for primary in self._plane.primaries()):
            link.close()


def _least(before: Any, answer: Any) -> Any:
    """Return the lesser of two answers to WAIT or WAITAOF; an error counts as less than any."""
    if before is None or isinstance(answer, Exception):
        return answer
    if isinstance(before, Exception):
        return before
    return list(map(min, before, answer)) if isinstance(answer, list) else min(before, answer)


def bulk_of(client: redis.asyncio.Redis, *, repeats_lost: bool = True) -> BulkConnection | BulkLinks:
    """Make a client's bulk connection, or connections where it has several servers; arguments as of BulkLinks."""
    if isinstance(client, RoutedAsyncRedis):
        return BulkLinks(client, repeats_lost=repeats_lost)
    return BulkConnection(client)
