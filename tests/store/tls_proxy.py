"""TLS before servers of the tests, whose own builds have none: each connection is decrypted and passed on."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def tls_before(ports: Sequence[int], certificate: Path, key: Path) -> Iterator[list[int]]:
    """Take TLS at one port of loopback for each of `ports`; yields these ports."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    begun = [asyncio.run_coroutine_threadsafe(_listen(port, context), loop).result(30) for port in ports]
    try:
        yield [server.sockets[0].getsockname()[1] for server in begun]
    finally:
        asyncio.run_coroutine_threadsafe(_end(begun), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


async def _end(begun: Sequence[asyncio.Server]) -> None:
    for server in begun:
        server.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _listen(port: int, context: ssl.SSLContext) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pass(reader, back), _pass(there, writer))

    return await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
