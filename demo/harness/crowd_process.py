"""`python -m demo.harness.crowd_process`: many readers of one RP, or of some, in one process, each with a WebSocket of its own; crowd.py starts it.

A reader is a connection of the client library (`herald.connection`) without the rest of a Client: session, choice of the best server, return
after failures and cursors are the library's. Two things differ, because thousands of readers run on one machine: no HTTP
client for each, and the delay to a domain, which is the same for all of them, is measured once for all within DELAY_KEPT_S.

It reads lines of JSON from its input, {"readers": N, "over_s": S}: have N readers, beginning or ending one after the other within S seconds. It
writes a CrowdReport as a line of JSON every REPORT_S. The end of the input ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Sequence

import httpx
import msgspec
import uvloop
from herald import HeraldError, Problem
from herald.best_server import BestServer
from herald.connection import Connection
from herald.dial import Credentials
from herald.events import Gap, Item
from herald.rollover import Move, Rollover, learnable
from herald.server_choice import ServerChoice
from herald.session import Interest, SessionMachine, Target
from herald.statistics import Counters, Disconnected, Reconnected

REPORT_S = 0.5
DELAY_KEPT_S = 5.0
PROBES = 3
ERRORS_SHOWN = 5
WAITING_MAX = 64  # bound: readers that wait for their first answer; the others begin later


class CrowdReport(msgspec.Struct, kw_only=True):
    """The state of one process of readers.

    Attributes:
        open: readers that their domain has accepted.
        at: of these, by URL.
        least: number of the newest event that every open reader has; None: some have none yet.
        received: events so far, of all readers, past ones included.
        missing: numbers that a reader jumped over.
        doubled: numbers that a reader received again.
        moves: of readers between domains.
        delays_ms: URL of the domain, seconds of the monotonic clock at the publish, delay: since the report before, if wanted.
        returns: seconds of the monotonic clock when a reader was back whose connection was lost, and how long it was away;
            since the report before, if wanted.
        errors: why readers ended that should not have, the last few.
    """

    open: int = 0
    at: dict[str, int] = {}
    least: int | None = None
    received: int = 0
    missing: int = 0
    doubled: int = 0
    moves: int = 0
    delays_ms: list[tuple[str, float, float]] = []
    returns: list[tuple[float, float]] = []
    errors: list[str] = []


class CrowdOrder(msgspec.Struct):
    """An order to have so many readers within some seconds."""

    readers: int
    over_s: float = 0.0


class CrowdReader:
    """One reader: what a connection delivers to (`connection.ConnectionReader`)."""

    full = False
    key = 1  # each has a connection of its own

    def __init__(self, crowd: CrowdOfReaders, target: Target) -> None:
        self.target = target
        self.last = 0  # number of the newest event
        self.is_open = False
        self._crowd = crowd
        self.connection = crowd.connection()
        self.connection.subscribe(self, "now")

    @property
    def url(self) -> str:
        """Return the URL of its domain."""
        return self.connection.rollover.current

    def established(self, cursor: str | None) -> None:
        """Count it."""
        self.is_open = True

    def put(self, item: Item, chars: int) -> None:
        """Check number and order of an event; a gap shows as numbers that are missing."""
        if isinstance(item, Gap):
            return
        number, published_at = item.data["n"], item.data["at"]
        crowd = self._crowd
        crowd.received += 1
        if self.last and number > self.last + 1:
            crowd.missing += number - self.last - 1
        if number <= self.last:
            crowd.doubled += 1
        self.last = max(self.last, number)
        if crowd.measures:
            crowd.delays_ms.append((self.url, published_at, round(1000 * (time.monotonic() - published_at), 2)))

    def end(self, error: HeraldError | None) -> None:
        """Note an end that nobody ordered."""
        self.is_open = False
        if error is not None:
            self._crowd.ended(self, error)

    def move(self, connection: Connection) -> None:
        """Continue on another connection of the library."""
        self.connection = connection


class CrowdOfReaders:
    """All readers of the process; their connections' owner (`connection.Owner`).

    Args:
        rps: which the readers read in turn, one each.
        measures: whether the delay of each event, and of each return, is reported.
    """

    def __init__(self, urls: Sequence[str], rps: Sequence[str], *, measures: bool) -> None:
        self.received = self.missing = self.doubled = self.moves = 0
        self.measures = measures
        self.delays_ms: list[tuple[str, float, float]] = []
        self.returns: list[tuple[float, float]] = []
        self.counters = Counters()
        self._urls = urls
        self._targets: list[Target] = [("rp", rp) for rp in rps]
        self._readers: list[CrowdReader] = []
        self._numbers = itertools.count()
        self._errors: list[str] = []
        self._random = random.Random()
        self._credentials = Credentials(None)
        self._http = httpx.AsyncClient(timeout=5.0, trust_env=False)
        self._delays: dict[str, tuple[float, asyncio.Task[float | None]]] = {}
        self._wanted = asyncio.Event()
        self._order: CrowdOrder | None = None

    # ---- readers ----

    def connection(self) -> Connection:
        """Make the connection of one reader. Readers begin at the given URLs in turn."""
        rollover = Rollover([self._urls[next(self._numbers) % len(self._urls)]], self._random)
        choice = ServerChoice(BestServer(self._random, rollover.current), self, self._credentials, rollover.barred)
        session = SessionMachine(self._random)
        return Connection(
            rollover, self._credentials, session, self, choice=choice, first_patience_s=None, patience_s=None
        )

    def order(self, order: CrowdOrder) -> None:
        """Replace the order that is being carried out."""
        self._order = order
        self._wanted.set()

    async def obey(self) -> None:
        """Carry out orders, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if self._order is not None:
                await self._obey(self._order)

    async def _obey(self, order: CrowdOrder) -> None:
        began, had = time.monotonic(), len(self._readers)
        steps = abs(order.readers - had)
        for step in range(steps):
            due = began + order.over_s * (step + 1) / steps
            while (left_s := due - time.monotonic()) > 0 or self._waiting() > WAITING_MAX:
                await asyncio.sleep(max(left_s, 0.01))
                if self._wanted.is_set():
                    return
            if order.readers > had:
                self._readers.append(CrowdReader(self, self._targets[len(self._readers) % len(self._targets)]))
            else:
                await self._readers.pop(self._random.randrange(len(self._readers))).connection.close()

    def _waiting(self) -> int:
        return sum(not one.is_open for one in self._readers[-2 * WAITING_MAX :])

    def ended(self, reader: CrowdReader, error: HeraldError) -> None:
        """Note a reader that ended by an error."""
        self._errors = [*self._errors, f"{reader.url}: {error}"][-ERRORS_SHOWN:]

    def report(self) -> CrowdReport:
        """Return the present state; delays and returns are those since the report before."""
        delays, self.delays_ms = self.delays_ms, []
        returns, self.returns = self.returns, []
        there = [one for one in self._readers if one.is_open]
        return CrowdReport(
            open=len(there),
            at=dict(Counter(one.url for one in there)),
            least=min((one.last for one in there), default=0) or None,
            received=self.received,
            missing=self.missing,
            doubled=self.doubled,
            moves=self.moves,
            delays_ms=delays,
            returns=returns,
            errors=self._errors,
        )

    # ---- for the connections ----

    def collided(self, interest: Interest, reader: object) -> None:
        """Fail: a connection here has one reader."""
        raise AssertionError("a connection with one reader has two")

    def elsewhere(self, connection: Connection, target: Target, problem: Problem) -> Connection | HeraldError:
        """End a reader whose domain refuses the RP."""
        return problem

    def replicated(self, connection: Connection, rp: str) -> None:
        """Look nothing up: domains name alternatives."""

    def redirected(self, connection: Connection, urls: object) -> None:
        """Note addresses that a domain named."""
        connection.learn(learnable(urls, self._urls[0]))

    def lost(self, loss: Disconnected) -> None:
        """Ignore it: what a loss costs shows in numbers and delays."""

    def replaced(self, return_: Reconnected) -> None:
        """Note it, if it is wanted."""
        if self.measures:
            self.returns.append((time.monotonic(), return_.away_s))

    def moved(self, move: Move) -> None:
        """Count."""
        self.moves += 1

    async def ready(self, url: str) -> bool:
        """Return whether the domain is ready."""
        try:
            return (await self._http.get(f"{url}/readyz")).is_success
        except httpx.HTTPError:
            return False

    def usable(self, urls: Sequence[object]) -> list[str]:
        """Return those URLs that may be used: no reader has a token."""
        return learnable(list(urls), self._urls[0])

    def delay_ms(self, url: str) -> Awaitable[float | None]:
        """Return the round-trip time to a domain, measured within DELAY_KEPT_S by any reader."""
        at, measuring = self._delays.get(url, (0.0, None))
        if measuring is None or time.monotonic() - at > DELAY_KEPT_S:
            measuring = asyncio.get_running_loop().create_task(self._measured(url))
            self._delays[url] = (time.monotonic(), measuring)
        return asyncio.shield(measuring)

    async def _measured(self, url: str) -> float | None:
        delays_s = []
        try:
            for _ in range(PROBES + 1):
                began = time.monotonic()
                (await self._http.get(f"{url}/livez")).raise_for_status()
                delays_s.append(time.monotonic() - began)
        except httpx.HTTPError:
            return None
        return 1000 * min(delays_s[1:])


async def _main(crowd: CrowdOfReaders) -> None:
    obeying = asyncio.create_task(crowd.obey())
    ended = asyncio.Event()
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)

    async def listen() -> None:
        while line := await lines.readline():
            crowd.order(msgspec.json.decode(line, type=CrowdOrder))
        ended.set()

    listening = asyncio.create_task(listen())
    while not ended.is_set() and not obeying.done():
        sys.stdout.buffer.write(msgspec.json.encode(crowd.report()) + b"\n")
        sys.stdout.buffer.flush()
        try:
            async with asyncio.timeout(REPORT_S):
                await ended.wait()
        except TimeoutError:
            pass
    listening.cancel()
    if obeying.done():
        obeying.result()


def main() -> None:
    """Run until the end of the input."""
    parser = argparse.ArgumentParser(prog="crowd_process")
    parser.add_argument("rps", help="separated by commas")
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--measures", action="store_true")
    parser.add_argument("--nice", type=int, default=0)
    chosen = parser.parse_args()
    os.nice(chosen.nice)

    async def run() -> None:
        await _main(CrowdOfReaders(chosen.urls, chosen.rps.split(","), measures=chosen.measures))

    uvloop.run(run())


if __name__ == "__main__":
    main()
