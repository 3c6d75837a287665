"""A tiny WebSocket server for the tests of the load generator: it sends what is published to everyone, with faults on demand."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


def frame(payload: bytes, opcode: int = 1) -> bytes:
    """A server's frame."""
    size = len(payload)
    head = bytes([0x80 | opcode, size]) if size < 126 else bytes([0x80 | opcode, 126]) + size.to_bytes(2, "big")
    return head + payload


@dataclass
class FrameServer:
    """What the server does to the events it is given (numbered from 1), to the first session only.

    Attributes:
        drop, repeat: that event is not sent, sent twice.
        split: bytes per write, so that frames arrive in pieces; 0 for whole.
        refuse: that publish request is answered with a refusal.
        ignore: that publish request is not answered, and its event not sent.
        ping: pings every session before the first event, and counts the pongs.
        offset_jump: added to the offset from the third event on.
    """

    drop: int = 0
    repeat: int = 0
    split: int = 0
    refuse: int = 0
    ignore: int = 0
    ping: bool = False
    offset_jump: int = 0
    pongs: int = 0
    port: int = 0
    sessions: list[asyncio.StreamWriter] = field(default_factory=list)
    published: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(UPGRADED)
            while True:
                head = await reader.readexactly(2)
                size = head[1] & 127
                if size == 126:
                    size = int.from_bytes(await reader.readexactly(2), "big")
                payload = (await reader.readexactly(4 + size))[4:]
                self._take(head[0] & 15, payload, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _take(self, opcode: int, payload: bytes, writer: asyncio.StreamWriter) -> None:
        if opcode == 10:
            self.pongs += 1
        elif payload == b"subscribe":
            self.sessions.append(writer)
            writer.write(frame(b'{"op":"ok"}'))
        else:
            self._publish(payload)
            if self.published == self.ignore:
                return
            refused = self.published == self.refuse
            writer.write(frame(b'{"op":"error"}' if refused else b'{"op":"ok"}'))

    def _publish(self, payload: bytes) -> None:
        self.published += 1
        if self.ping and self.published == 1:
            for session in self.sessions:
                session.write(frame(b"alive?", 9))
        offset = self.published + (self.offset_jump if self.published > 2 else 0)
        data = frame(b'{"offset":%d,"event":%s}' % (offset, payload))
        for number, session in enumerate(self.sessions):
            copies = 0 if self.published == self.ignore else 1
            if number == 0 and copies:
                copies = 0 if self.published == self.drop else 2 if self.published == self.repeat else 1
            step = self.split or len(data)
            for _ in range(copies):
                for at in range(0, len(data), step):
                    session.write(data[at : at + step])


@contextmanager
def running(server: FrameServer) -> Iterator[FrameServer]:
    """`server` on a free port, in a thread of its own."""
    loop = asyncio.new_event_loop()
    listening = threading.Event()
    listener: list[asyncio.Server] = []

    async def listen() -> None:
        listener.append(await asyncio.start_server(server.serve, "127.0.0.1", 0))
        server.port = listener[0].sockets[0].getsockname()[1]
        listening.set()

    task = loop.create_task(listen())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    assert listening.wait(10), task
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(listener[0].close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
