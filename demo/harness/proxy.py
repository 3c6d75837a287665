"""A TCP proxy of loopback between two domains, one for each direction, that simulates network faults.

    proxy = Proxy(background, to_port)
    proxy.cut()               # nothing passes: connections break, new ones are refused ("blackhole": swallowed)
    proxy.delay_s = 0.2       # every piece is delayed, of requests and of answers
    proxy.drop_after(10_000)  # the present connections, and the next, break after so many bytes of requests
    proxy.drop_large(8_000, 2)  # of requests with pieces of so many bytes, every second one breaks; small ones pass
    proxy.requests, proxy.bytes_sent, proxy.copies(b"marker")

What it counts it counts on the way there: the requests of the domain that it belongs to.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from demo.harness.background import Background

PIECE_BYTES = 64 * 1024
REQUEST = b"POST /federation/v1/"
_BREAKS = (ConnectionError, asyncio.IncompleteReadError, OSError)


class _Marker:
    """Counts occurrences of some bytes in a stream of pieces."""

    def __init__(self, wanted: bytes) -> None:
        self.wanted = wanted
        self.seen = 0

    def fed(self, tail: bytes, piece: bytes) -> None:
        """Count in `piece`, which follows `tail`, whose occurrences are counted already."""
        keep = len(self.wanted) - 1
        self.seen += (tail[-keep:] + piece if keep else piece).count(self.wanted)


class Proxy:
    """Listens on a port of its own (`port`) and passes connections on to `target()`, a port of loopback."""

    def __init__(self, background: Background, target: Callable[[], int]) -> None:
        self.delay_s = 0.0
        self.bytes_sent = 0
        self.bytes_answered = 0
        self.connections = 0
        self._background = background
        self._target = target
        self._mode = "open"
        self._left: int | None = None
        self._large: tuple[int, int] | None = None
        self.large = 0
        self._requests = _Marker(REQUEST)
        self._markers: dict[bytes, _Marker] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = background.run(self._listen())
        self.port: int = self._server.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> int:
        """Return the number of protocol requests that passed, or began to."""
        return self._requests.seen

    @property
    def is_open(self) -> bool:
        return self._mode == "open"

    def count(self, wanted: bytes) -> None:
        """Count occurrences of `wanted` from now on; `copies` returns the count."""
        self._markers[wanted] = _Marker(wanted)

    def copies(self, wanted: bytes) -> int:
        """Return how often `wanted` has passed since `count`."""
        return self._markers[wanted].seen

    def cut(self, *, blackhole: bool = False) -> None:
        """Break all connections. New ones are refused or, as in a black hole, accepted and never answered."""
        self._mode = "blackhole" if blackhole else "cut"
        self._background.run(self._break())

    def heal(self) -> None:
        """Restore the connection at once and without bounds."""
        self.delay_s = 0.0
        self._left = self._large = None
        reopened, self._mode = self._mode != "open", "open"
        if reopened:
            self._background.run(self._break())  # bytes in the black hole stay lost

    def drop_after(self, size: int) -> None:
        """Break the connection, once, after this many more bytes of requests."""
        self._left = size

    def drop_large(self, size: int, every: int) -> None:
        """Break connections at every such piece of this size or more, as a link does that drops data and passes probes; `large`
        counts these pieces."""
        self._large = (size, every)

    def close(self) -> None:
        """Stop listening and break what is connected."""

        async def closed() -> None:
            self._server.close()
            await self._break()

        self._background.run(closed())

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accepted, "127.0.0.1", 0)

    async def _break(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accepted(self, near: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._carry(near, answers)
        except asyncio.CancelledError:
            pass  # cut; the server's own callback would report it as an error
        finally:
            self._tasks.discard(task)
            answers.transport.abort()

    async def _carry(self, near: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        if self._mode == "cut":
            return
        if self._mode == "blackhole":
            with contextlib.suppress(*_BREAKS):
                while await near.read(PIECE_BYTES):
                    pass
            return
        self.connections += 1
        try:
            far, requests = await asyncio.open_connection("127.0.0.1", self._target())
        except OSError:
            return  # the domain is down: as if this port were closed
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._there(near, requests))
                ways.create_task(self._back(far, answers))
        except* _BREAKS:
            pass
        finally:
            requests.transport.abort()

    async def _there(self, near: asyncio.StreamReader, requests: asyncio.StreamWriter) -> None:
        tail = b""
        while piece := await near.read(PIECE_BYTES):
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            breaks = self._left is not None and len(piece) >= self._left
            if self._left is not None:
                piece, self._left = piece[: self._left], None if breaks else self._left - len(piece)
            if self._is_dropped(piece):
                raise ConnectionResetError
            self.bytes_sent += len(piece)
            for marker in (self._requests, *self._markers.values()):
                marker.fed(tail, piece)
            tail = (tail + piece)[-256:]
            requests.write(piece)
            await requests.drain()
            if breaks:
                raise ConnectionResetError
        requests.write_eof()

    def _is_dropped(self, piece: bytes) -> bool:
        """Return whether `drop_large` breaks the connection at this piece."""
        if self._large is None or len(piece) < self._large[0]:
            return False
        self.large += 1
        return self.large % self._large[1] == 0

    async def _back(self, far: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        while piece := await far.read(PIECE_BYTES):
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            self.bytes_answered += len(piece)
            answers.write(piece)
            await answers.drain()
        answers.write_eof()
