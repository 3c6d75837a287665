"""What the log's tests share: events, a log as plain calls of the scripts, an appender as the gateway has it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import redis
import redis.asyncio

from eventing.access.rules.policy import OPEN_TO_DOMAIN, compile_policy
from eventing.core.errors import NotFound
from eventing.core.events.ack_level import Ack
from eventing.core.events.cloudevents import Event
from eventing.core.events.cursors import Cursor
from eventing.core.events.history import HistoryBounds
from eventing.core.events.lineage import Lineage
from eventing.core.events.positions import LogState
from eventing.log import control, scripts
from eventing.log.appender import Appender, Outcome
from eventing.log.reader import LogReader
from eventing.log.scripts import Appended, LogRun, NoLog
from eventing.rps.rules.descriptor import Descriptor
from eventing.store.client import Script, form_for
from eventing.store.connection import Durability

# One source of ids for all tests that fill logs by hand: those of a process share a Redis, which is not emptied between them.
NEW_RP = (f"{number:a>26}".translate(str.maketrans("0123456789", "bcdefghijk")) for number in itertools.count(1))


def make_event(event_id: str, size: int = 0, source: str = "/tests") -> Event:
    """An event whose body has `size` bytes, or just its id when `size` is 0. The log takes any bytes."""
    return Event(source, event_id, "test", event_id.encode().ljust(size, b"."))


class Log:
    """The scripts, called on one RP. Everything is asked of the server; nothing is remembered here."""

    def __init__(
        self, client: redis.Redis, rp: str, *, window_s: int = 600, ids_max: int = 100_000, fenced: bool = False
    ) -> None:
        self.client = client
        self.rp = rp
        self._window_s = window_s
        self._ids_max = ids_max
        self.fenced = fenced

    def call(self, script: Script, args: list[Any]) -> Any:
        """Run a script. Raises NoLog."""
        try:
            return self.client.eval(form_for(self.client, script).text, *args)
        except redis.ResponseError as error:
            if str(error).startswith("NOLOG"):
                raise NoLog from None
            raise

    def create(self, max_events: int = 1000, max_bytes: int = 1 << 20, max_age_s: int | None = None) -> LogState:
        bounds = HistoryBounds(max_events, max_bytes, max_age_s)
        return scripts.log_state(self.call(scripts.CREATE, scripts.create_args(self.rp, bounds)))

    def append(self, *events: Event, replicas: int = 0) -> Appended:
        args = scripts.append_args(self.rp, events, self._window_s, self._ids_max, replicas)
        return scripts.appended(self.call(scripts.append_script(self.fenced), args), len(events))

    def lineage(self) -> Lineage:
        return scripts.lineage(self.call(scripts.LINEAGE, scripts.lineage_args(self.rp, self.fenced)))

    def reveal(self, epoch: str, after: int) -> int:
        return int(self.call(scripts.REVEAL, scripts.reveal_args(self.rp, epoch, after)))

    def read(self, first: int = 1, events_max: int = 1000, bytes_max: int = 1 << 20) -> LogRun:
        return scripts.run(self.call(scripts.READ, scripts.read_args(self.rp, first, events_max, bytes_max)))

    def trim(self) -> control.Trimmed:
        return control.Trimmed(*self.call(scripts.TRIM, scripts.trim_args(self.rp)))

    def oldest_granted(self, max_events: int = 1000, max_bytes: int = 1 << 20, max_age_s: int | None = None) -> int:
        bounds = HistoryBounds(max_events, max_bytes, max_age_s)
        return int(self.call(scripts.OLDEST_GRANTED, scripts.oldest_granted_args(self.rp, bounds)))

    def acknowledge(self, cursor: Cursor, subscription: str = "sub_a") -> Cursor:
        args = control.acknowledge_args(self.rp, subscription, cursor, fenced=self.fenced)
        answer = self.call(scripts.ACKNOWLEDGE, args)
        verdict, value = control.verdict(answer)
        if verdict == "ok":
            return Cursor(answer[2].decode(), int(value))
        epoch, last = (value, 0) if verdict == "epoch" else (cursor.epoch, int(value))
        refused = control.refused_cursor(cursor, epoch, last)
        assert refused is not None
        raise refused


BOUNDS = HistoryBounds(1_000_000, 1 << 28)
ALWAYS = Durability((6, 2), always=True, waitaof=False, replicas=0)


def descriptor(rp: str | None = None, ack: str = "stored") -> Descriptor:
    """An RP open to everyone."""
    policy = compile_policy(OPEN_TO_DOMAIN)
    return Descriptor(rp or next(NEW_RP), "ann", 1, policy, Ack.parse(ack), BOUNDS, float("inf"))


class Harness:
    """An appender on a Redis, with logs made on demand, as the gateway has it."""

    def __init__(
        self,
        client: redis.asyncio.Redis,
        durability: Durability | None = ALWAYS,
        *,
        fenced: bool = False,
        replicas_known: int = 0,
    ) -> None:
        self.client = client
        self.reader = LogReader(client, fenced=fenced, replicas_known=replicas_known)
        self.remade: list[str] = []
        self.gone: set[str] = set()
        self._durability = durability
        self.appender = Appender(client, self.durability, self.remake, window_s=600, ids_max=10_000_000, fenced=fenced)

    async def durability(self) -> Durability:
        return self._durability or await self.reader.durability()

    async def remake(self, rp: str) -> None:
        if rp in self.gone:
            raise NotFound("gone")
        self.remade.append(rp)
        await self.reader.create(rp, BOUNDS)

    async def stored(self, rp: str) -> list[bytes]:
        """All events of a log."""
        found: list[bytes] = []
        while run := (await self.reader.read(rp, len(found) + 1)).events:
            found += run
        return found


class Outcomes:
    """Counts the outcomes of appends; each append must have exactly one."""

    def __init__(self) -> None:
        self.by_append: dict[int, list[Outcome]] = {}
        self._open = 0
        self._all_done = asyncio.Event()

    def expect(self) -> Callable[[Outcome], None]:
        """A `done` for the next append."""
        outcomes = self.by_append[len(self.by_append)] = []
        self._open += 1
        self._all_done.clear()

        def done(outcome: Outcome) -> None:
            outcomes.append(outcome)
            self._open -= 1
            if not self._open:
                self._all_done.set()

        return done

    async def settled(self, within_s: float = 30.0) -> list[Outcome]:
        """The outcomes in the order of the appends, one each."""
        await asyncio.wait_for(self._all_done.wait(), within_s)
        await asyncio.sleep(0.05)  # a second outcome of an append would come right behind
        assert all(len(outcomes) == 1 for outcomes in self.by_append.values())
        return [outcomes[0] for outcomes in self.by_append.values()]


async def calls_of(client: redis.asyncio.Redis, *commands: str) -> int:
    """How often the server has run `commands`."""
    stats = await client.info("commandstats")
    return sum(int(stats.get(f"cmdstat_{command}", {}).get("calls", 0)) for command in commands)
