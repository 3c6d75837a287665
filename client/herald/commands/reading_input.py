"""Reading of standard input or a file without blocking the connection: a pipe may be silent for hours."""

from __future__ import annotations

import asyncio
import io
import os
import stat
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from herald.commands.output import note
from herald.errors import InputError

CHUNK_BYTES = 64 * 1024
CHUNKS_AHEAD = 16  # chunks read ahead from a pipe
LINE_BYTES_MAX = 16 * 1024 * 1024  # most that a domain can be configured to accept for one event


async def whole(path: Path | None) -> bytes:
    """Return all of the file, or of standard input. Raises InputError beyond `LINE_BYTES_MAX`."""
    parts: list[bytes] = []
    size = 0
    async for chunk in _chunks(path):
        parts.append(chunk)
        size += len(chunk)
        if size > LINE_BYTES_MAX:
            raise InputError(
                f"The data of one event is at most {LINE_BYTES_MAX} bytes. Use --lines for several events."
            )
    return b"".join(parts)


async def lines(path: Path | None) -> AsyncIterator[bytes]:
    """Yield the lines of the file, or of standard input as they arrive, without line ends and empty lines."""
    rest = b""
    async for chunk in _chunks(path):
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            if line := line.rstrip(b"\r"):
                yield line
        if len(rest) > LINE_BYTES_MAX:
            raise InputError(f"A line has more than {LINE_BYTES_MAX} bytes.")
    if rest := rest.rstrip(b"\r"):
        yield rest


async def _chunks(path: Path | None) -> AsyncIterator[bytes]:
    if path is not None:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
        return
    stdin = sys.stdin.buffer
    if stdin.isatty():
        note("Reading from the terminal; end with Ctrl-D.")
    if not _may_block(stdin):
        while chunk := stdin.read(CHUNK_BYTES):
            yield chunk
        return
    async for chunk in _piped(stdin.fileno()):
        yield chunk


def _may_block(file: BinaryIO) -> bool:
    try:
        return not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, io.UnsupportedOperation):
        return False  # not a file of the system, but in memory


async def _piped(descriptor: int) -> AsyncIterator[bytes]:
    """Read on a daemon thread: a blocking read cannot be cancelled, and must not keep the program from ending."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    room = threading.Semaphore(CHUNKS_AHEAD)

    def read() -> None:
        chunk: bytes | OSError = b"-"
        while chunk and isinstance(chunk, bytes):
            room.acquire()
            try:
                chunk = os.read(descriptor, CHUNK_BYTES)
            except OSError as error:
                chunk = error
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            except RuntimeError:
                return  # the loop has ended: nothing is to be read any more

    threading.Thread(target=read, name="herald-stdin", daemon=True).start()
    while chunk := await chunks.get():
        if isinstance(chunk, OSError):
            raise InputError(f"Standard input cannot be read: {chunk.strerror}.")
        room.release()
        yield chunk
