"""Connections to other domains against servers that answer as they like: what an answer is, what ends an exchange, what is kept."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from eventing.peering.wire import connections
from eventing.peering.wire.connections import AnswerBroken, AnswerTooLong, Connections, NotConnected, Place, RawAnswer
from tests.subscriptions.push.certificates import certificate_made

REQUEST = b"POST /federation/v1/exchange HTTP/1.1\r\nhost: b.test\r\ncontent-length: 0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"
BYTES_MAX = 1000
Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """A server of this test."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.made = 0
        self.open = 0
        self.open_max = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.made += 1
        self.open += 1
        self.open_max = max(self.open_max, self.open)
        try:
            await self.behaviour(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.transport.abort()


@asynccontextmanager
async def serving(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[Server, Place]]:
    server = Server(behaviour)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield server, Place(tls is not None, "localhost", "127.0.0.1", port)
    finally:
        listening.close()


def answering(*parts: bytes, then_closes: bool = False) -> Behaviour:
    """Sends these parts one after the other as the answer to each request."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
            if then_closes:
                writer.close()
                await writer.wait_closed()
                return

    return behave


def client(context: ssl.SSLContext | None = None) -> Connections:
    return Connections(context or ssl.create_default_context(), BYTES_MAX)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10.0):
        while not condition():  # noqa: ASYNC110 - servers have no event
            await asyncio.sleep(0.005)


async def asked(behaviour: Behaviour) -> RawAnswer:
    async with serving(behaviour) as (_, place):
        return await client().exchange(place, REQUEST)


@pytest.mark.parametrize(
    "parts",
    [
        (OK,),
        (OK[:9], OK[9:30], OK[30:]),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\ny\r\n", b"2\r\nes\r\n0\r\nTrailer: late\r\n\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK),
    ],
    ids=["at once", "in parts", "chunked", "after informational ones"],
)
async def test_an_answer_is_read_to_its_end_and_the_connection_kept(parts: tuple[bytes, ...]) -> None:
    async with serving(answering(*parts)) as (server, place):
        ours = client()
        for _ in range(3):
            answer = await ours.exchange(place, REQUEST)
            assert (answer.status, answer.body) == (200, b"yes")
            assert {name.lower() for name, _ in answer.fields} <= {"content-length", "transfer-encoding"}
        assert server.made == 1


async def test_an_answer_that_its_connection_ends_is_whole() -> None:
    answer = await asked(answering(b"HTTP/1.1 200 OK\r\nServer: old\r\n\r\nyes", then_closes=True))
    assert (answer.status, answer.fields, answer.body) == (200, [("Server", "old")], b"yes")


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (OK[:20],),
        (OK[:-1],),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nyes",),
        (b"SSH-2.0-OpenSSH\r\n\r\n",),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" * (connections.INFORMATIONAL_MAX + 1),),
        (b"HTTP/1.1 200 OK\r\n", *[b"X: %b\r\n" % (b"y" * 8192)] * 12),
    ],
    ids=[
        "no answer",
        "half a head",
        "a byte too few",
        "half a chunk",
        "no HTTP",
        "upgrade",
        "informational",
        "endless head",
    ],
)
async def test_what_is_no_whole_answer_fails_and_ends_the_connection(parts: tuple[bytes, ...]) -> None:
    async with serving(answering(*parts, then_closes=len(parts) < 2)) as (server, place):
        with pytest.raises(AnswerBroken):
            await client().exchange(place, REQUEST)
        await until(lambda: server.open == 0)


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: 5000", b"Transfer-Encoding: chunked", b"Connection: close"],
    ids=["stated", "chunked", "open"],
)
async def test_a_longer_answer_than_permitted_is_not_read_to_its_end(head: bytes) -> None:
    chunk = b"200\r\n" + b"z" * 512 + b"\r\n" if head.startswith(b"Transfer") else b"z" * 512
    async with serving(answering(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n", chunk, chunk)) as (server, place):
        with pytest.raises(AnswerTooLong):
            await client().exchange(place, REQUEST)
        await until(lambda: server.open == 0)


@pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", b"\x00\x01"])
async def test_what_follows_an_answer_is_the_answer_to_nothing(more: bytes) -> None:
    async with serving(answering(OK + more)) as (server, place):
        ours = client()
        for number in (1, 2):
            try:
                assert (await ours.exchange(place, REQUEST)).body == b"yes"
            except AnswerBroken:
                assert more.startswith(b"\x00")
            await until(lambda: server.open == 0)
            assert server.made == number


async def test_a_kept_connection_that_its_server_closed_is_replaced() -> None:
    async with serving(answering(OK, then_closes=True)) as (server, place):
        ours = client()
        for number in (1, 2, 3):
            assert (await ours.exchange(place, REQUEST)).body == b"yes"
            await until(lambda: not any(one.is_open for one in ours._places[place]._kept))
            assert server.made == number


async def test_a_connection_without_exchanges_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_S", 0.05)
    async with serving(answering(OK)) as (server, place):
        await client().exchange(place, REQUEST)
        assert server.open == 1
        await until(lambda: server.open == 0)


async def test_further_exchanges_wait_for_a_connection_and_few_are_kept() -> None:
    goes_on = asyncio.Event()

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await goes_on.wait()
            writer.write(OK)

    async with serving(behave) as (server, place):
        ours = client()
        tasks = [asyncio.ensure_future(ours.exchange(place, REQUEST)) for _ in range(9)]
        await until(lambda: server.open == connections.CONNECTIONS_MAX)
        goes_on.set()
        assert [answer.body for answer in await asyncio.gather(*tasks)] == [b"yes"] * 9
        assert server.open_max == connections.CONNECTIONS_MAX
        await until(lambda: server.open == connections.KEPT_MAX)


async def test_an_exchange_that_is_cancelled_closes_its_connection_and_gives_up_its_turn() -> None:
    async def behave(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(behave) as (server, place):
        ours = client()
        for number in range(1, connections.CONNECTIONS_MAX + 3):
            asking = asyncio.ensure_future(ours.exchange(place, REQUEST))
            await until(lambda number=number: server.made == number)  # type: ignore[misc]
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        await until(lambda: server.open == 0)


async def test_the_place_that_was_not_used_for_longest_loses_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PLACES_MAX", 1)
    async with serving(answering(OK)) as (first, there), serving(answering(OK)) as (second, elsewhere):
        ours = client()
        await ours.exchange(there, REQUEST)
        await ours.exchange(elsewhere, REQUEST)
        await until(lambda: first.open == 0)
        assert second.open == 1


async def test_an_address_that_nothing_listens_at_is_not_connected() -> None:
    async with serving(answering(OK)) as (_, place):
        pass
    with pytest.raises(NotConnected, match="ConnectionRefusedError"):
        await client().exchange(place, REQUEST)


async def test_tls_is_spoken_to_a_server_that_proves_its_name_only(tmp_path: Path) -> None:
    certificate, key = certificate_made()
    both = tmp_path / "both.pem"
    both.write_text(key + certificate)
    offered = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    offered.load_cert_chain(both)
    trusting = ssl.create_default_context(cadata=certificate)
    async with serving(answering(OK), offered) as (_, place):
        ours = client(trusting)
        assert [(await ours.exchange(place, REQUEST)).body for _ in range(2)] == [b"yes"] * 2
        for stranger, context in ((place, None), (place._replace(host="c.test"), trusting)):
            with pytest.raises(NotConnected, match="SSLCertVerificationError"):
                await client(context).exchange(stranger, REQUEST)
