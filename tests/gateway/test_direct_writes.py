"""Frames written by file descriptor, past the transport: whole, in order, and never to whoever gets the number next."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvloop

from eventing.gateway.delivery.channel import _Sinks
from eventing.gateway.delivery.sinks import TransportSink
from tests.gateway.client import Client
from tests.gateway.raw import Raw
from tests.gateway.server import LiveGateway, event

BUFFER_BYTES = 64 * 1024


class Protocol(asyncio.Protocol):
    """What gateway/server/websocket_protocol.py does for a sink, and nothing else."""

    sink: TransportSink | None = None

    def pause_writing(self) -> None:
        if self.sink is not None:
            self.sink.clogged()

    def resume_writing(self) -> None:
        if self.sink is not None:
            self.sink.drained()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.sink is not None:
            self.sink.discard()


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[tuple[TransportSink, socket.socket, Any]]:
    """A sink, the other end of its connection, and its transport."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
    transport, protocol = await asyncio.get_running_loop().create_connection(Protocol, sock=ours)
    protocol.sink = TransportSink(transport, BUFFER_BYTES)
    try:
        yield protocol.sink, theirs, transport
    finally:
        transport.abort()
        theirs.close()


async def receive(theirs: socket.socket, size: int) -> bytes:
    data = b""
    async with asyncio.timeout(10):
        while len(data) < size:
            data += await asyncio.get_running_loop().sock_recv(theirs, 65536)
    return data


def on_both_loops(work: Any) -> None:
    """Run the coroutine function on asyncio's loop and on uvloop."""
    asyncio.run(work())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())


def test_all_bytes_come_in_order_through_a_reader_that_stalls_and_goes_on() -> None:
    async def work() -> None:
        async with connected() as (sink, theirs, _):
            stalls: list[bool] = []
            sink.on_pause = lambda: stalls.append(True)
            sink.on_resume = lambda: stalls.append(False)
            assert sink.fd >= 0
            parts = [bytes([number % 256]) * 5000 for number in range(40)]
            for part in parts[:20]:
                _Sinks([sink]).write(part)
            assert sink.fd == -1  # clogged: the kernel took no more
            assert stalls == [True]
            expected = b"".join(parts[:20])
            free = asyncio.Event()
            sink.on_fd = free.set
            assert await receive(theirs, len(expected)) == expected
            async with asyncio.timeout(10):
                await free.wait()
            assert stalls == [True, False]
            for part in parts[20:22]:
                _Sinks([sink]).write(part)
            assert await receive(theirs, 10_000) == b"".join(parts[20:22])

    on_both_loops(work)


def test_a_write_through_the_transport_and_one_past_it_keep_their_order() -> None:
    async def work() -> None:
        async with connected() as (sink, theirs, _):
            for number in range(50):
                sink.write(b"%03d" % number)
                _Sinks([sink]).write(b"%03d" % (number + 500))
            expected = b"".join(b"%03d%03d" % (number, number + 500) for number in range(50))
            assert await receive(theirs, len(expected)) == expected

    on_both_loops(work)


def test_a_discarded_sink_has_no_descriptor_and_says_so() -> None:
    async def work() -> None:
        async with connected() as (sink, theirs, _):
            told: list[int] = []
            sink.on_fd = lambda: told.append(sink.fd)
            sink.discard()
            assert told == [-1]
            _Sinks([sink]).write(b"never")
            sink.clogged()
            sink.drained()
            assert sink.fd == -1
            with pytest.raises(BlockingIOError):
                theirs.recv(1)

    on_both_loops(work)


def test_a_lost_connection_is_discarded_before_its_descriptor_can_be_another_ones() -> None:
    async def work() -> None:
        async with connected() as (sink, theirs, transport):
            fd = sink.fd
            seen: list[bool] = []
            told = asyncio.Event()

            def on_fd() -> None:
                with contextlib.suppress(OSError):
                    seen.append(socket.socket(fileno=socket.dup(fd)).close() is None)  # still open, still ours
                told.set()

            sink.on_fd = on_fd
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            theirs.close()
            async with asyncio.timeout(10):
                await told.wait()
            assert seen == [True]
            assert sink.fd == -1
            assert transport.is_closing()

    on_both_loops(work)


def reader(live_gateway: LiveGateway, rp: str) -> Raw:
    """A connection that reads `rp`."""
    raw = Raw(live_gateway).open()
    assert raw.ask({"op": "subscribe", "id": 1, "rp": rp, "from": "now"})["op"] == "ok"
    return raw


def tear(raw: Raw) -> None:
    """End the connection by a reset."""
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.socket.close()


@pytest.mark.processes
async def test_no_event_reaches_a_connection_that_took_the_place_of_a_reader(
    live_gateway: LiveGateway, rp: str
) -> None:
    """Readers that are torn away under load, while connections without a subscription come in their descriptors' place."""
    rounds, readers, bystanders = 8, 12, 12

    async def publish_on(client: Client, until: asyncio.Event) -> int:
        published = 0
        while not until.is_set():
            await asyncio.gather(*[client.ok("publish", rp=rp, event=event(f"{published + n}")) for n in range(16)])
            published += 16
        return published

    async with Client(live_gateway) as publisher:
        done = asyncio.Event()
        publishing = asyncio.create_task(publish_on(publisher, done))
        try:
            for _ in range(rounds):
                torn = await asyncio.gather(*[asyncio.to_thread(reader, live_gateway, rp) for _ in range(readers)])
                for raw in torn:
                    tear(raw)
                async with contextlib.AsyncExitStack() as stack:
                    others = [await stack.enter_async_context(Client(live_gateway)) for _ in range(bystanders)]
                    await asyncio.gather(*[other.ok("ping") for other in others])
                    assert all(not other.texts for other in others)
        finally:
            done.set()
            assert await publishing
