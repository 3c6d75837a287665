"""The proxy between domains does what a test asks of it: the tests of federation rest on that."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from demo.harness.background import Background
from demo.harness.proxy import REQUEST, Proxy


@pytest.fixture(scope="module")
def background() -> Iterator[Background]:
    made = Background()
    yield made
    made.stop()


@pytest.fixture
def proxy(background: Background) -> Iterator[Proxy]:
    """In front of a server that sends back what it gets."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            writer.write(piece)
        writer.close()

    async def listen() -> asyncio.Server:
        return await asyncio.start_server(echo, "127.0.0.1", 0)

    server = background.run(listen())
    made = Proxy(background, lambda: int(server.sockets[0].getsockname()[1]))
    yield made
    made.close()
    background.loop.call_soon_threadsafe(server.close)


def connected(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=30)


def echoed(connection: socket.socket, sent: bytes) -> bytes:
    """What comes back; b"" when the connection is broken."""
    try:
        connection.sendall(sent)
        got = b""
        while len(got) < len(sent) and (piece := connection.recv(65536)):
            got += piece
    except ConnectionError:
        return b""
    return got


def test_bytes_go_through_unchanged_and_are_counted_also_across_pieces(proxy: Proxy) -> None:
    proxy.count(b"marker")
    with connected(proxy) as connection:
        assert echoed(connection, b"x" * 300 + b"mar") == b"x" * 300 + b"mar"
        assert echoed(connection, b"ker" + REQUEST) == b"ker" + REQUEST
        assert echoed(connection, b"marker") == b"marker"
    assert (proxy.copies(b"marker"), proxy.requests) == (2, 1)
    assert proxy.bytes_sent == proxy.bytes_answered == 312 + len(REQUEST)


def test_a_cut_breaks_what_is_connected_and_refuses_what_comes_until_it_is_healed(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        assert echoed(connection, b"before") == b"before"
        proxy.cut()
        assert echoed(connection, b"after") == b""
    with connected(proxy) as connection:
        assert echoed(connection, b"still") == b""
    proxy.heal()
    with connected(proxy) as connection:
        assert echoed(connection, b"healed") == b"healed"


def test_a_black_hole_takes_connections_and_answers_nothing(proxy: Proxy) -> None:
    proxy.cut(blackhole=True)
    with connected(proxy) as connection:
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            echoed(connection, b"nobody")
        threading.Timer(0.05, proxy.heal).start()
        connection.settimeout(30)
        assert echoed(connection, b"lost") == b""


def test_a_delay_is_kept_both_ways(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        proxy.delay_s = 0.1
        begun = time.monotonic()
        assert echoed(connection, b"slow") == b"slow"
        assert time.monotonic() - begun >= 0.2


def test_a_connection_drops_after_the_stated_bytes_once(proxy: Proxy) -> None:
    proxy.drop_after(10)
    with connected(proxy) as connection:
        assert len(echoed(connection, b"y" * 1000)) <= 10
    assert proxy.bytes_sent == 10
    with connected(proxy) as connection:
        assert echoed(connection, b"z" * 1000) == b"z" * 1000


def test_a_domain_that_is_down_is_as_if_nobody_listened(background: Background) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        proxy = Proxy(background, lambda: int(nobody.getsockname()[1]))
        with connected(proxy) as connection:
            assert echoed(connection, b"hello") == b""
        proxy.close()
