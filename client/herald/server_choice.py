"""Measuring of alternatives, and the connection to a better one, for one connection: best_server.py decides, this carries it out.

The next connection is open before the present one is left (make before break); the session then continues there from its cursors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Protocol

from websockets.asyncio.client import ClientConnection

from herald.best_server import BestServer, ServerMove
from herald.dial import Address, Credentials, dial
from herald.errors import ConnectionLost, Problem
from herald.session import Alternatives, Redirected

MEASURE_S_MAX = 30.0  # of all measurements of one round; servers without a result by then count as away


class Surroundings(Protocol):
    """The client's knowledge of other servers."""

    def usable(self, urls: Sequence[object]) -> list[str]:
        """Return those URLs that a domain named that may be used, with the same rights."""

    def delay_ms(self, url: str) -> Awaitable[float | None]:
        """Return the round-trip time to a server; None without an answer."""


class ServerChoice:
    """The choice of one connection. All methods are for its event loop.

    Arguments:
        best: the decisions.
        barred: servers that refuse a target of this connection.
    """

    def __init__(
        self, best: BestServer, surroundings: Surroundings, credentials: Credentials, barred: frozenset[str]
    ) -> None:
        self._best = best
        self._surroundings = surroundings
        self._credentials = credentials
        self._barred = barred
        self._changed = asyncio.Event()

    @property
    def hops(self) -> int:
        """Return the number of redirects followed lately."""
        return self._best.hops(time.monotonic())

    def established(self, key: int) -> None:
        """Record that an interest is served here: until alternatives are named for it, it has none."""
        self._best.named(str(key), [], time.monotonic())

    def named(self, output: Alternatives) -> None:
        """Record what the gateway names, for an interest or for an RP that the program publishes to."""
        about = output.rp if output.key is None else str(output.key)
        self._best.named(about, self._usable(output.urls), time.monotonic())
        self._changed.set()

    def released(self, key: int) -> None:
        """Record that an interest has left the connection."""
        self._best.forget(str(key))

    def redirected(self, output: Redirected) -> None:
        """Record the gateway's advice to move, if it is one."""
        if output.hops is not None and isinstance(output.urls, list):
            self._best.redirected(self._usable(output.urls), output.hops, output.valid_s, time.monotonic())
            self._changed.set()

    def arrived(self, url: str) -> None:
        """Record where the connection is."""
        self._best.arrived(url, time.monotonic())

    async def prepared(self) -> tuple[ServerMove, ClientConnection]:
        """Return an open connection to a better server, and why it is better, once there is one."""
        while True:
            await self._measured()
            if (move := self._best.go) is None:
                continue
            try:
                return move, await dial(Address(move.url), self._credentials, self.hops + move.advised)
            except (ConnectionLost, Problem):
                self._best.failed(move.url, time.monotonic())

    async def _measured(self) -> None:
        """Wait until a measurement is due, and make it."""
        at = self._best.measure_at
        self._changed.clear()
        if at is None or at > time.monotonic():
            with suppress(TimeoutError):
                async with asyncio.timeout(None if at is None else at - time.monotonic()):
                    await self._changed.wait()
            return
        urls = self._best.measures(time.monotonic())
        found: dict[str, float | None] = dict.fromkeys(urls)

        async def measure() -> None:
            for url in urls:  # one after the other: together they would delay each other
                found[url] = await self._surroundings.delay_ms(url)

        with suppress(TimeoutError):
            async with asyncio.timeout(MEASURE_S_MAX):
                await measure()
        if urls:
            self._best.measured(found, time.monotonic())

    def _usable(self, urls: Sequence[object]) -> list[str]:
        return [url for url in self._surroundings.usable(urls) if url not in self._barred]
