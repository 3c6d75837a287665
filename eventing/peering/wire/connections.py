"""Connections to other domains: HTTP/1.1, one exchange at a time on each, kept open between exchanges.

httptools parses answers; this module bounds them. Time is the caller's: an exchange that is cancelled closes its connection.
A general client took five times the processor time for a request (docs/decisions/0141).
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from typing import Any, NamedTuple, cast

import httptools

HEAD_BYTES_MAX = 64 * 1024  # bound: bytes of the header section of a domain's answer; the call fails
INFORMATIONAL_MAX = 4  # bound: answers 1xx of a domain before the final one; the call fails
CONNECTIONS_MAX = 4  # bound: connections to an address of a domain; further calls wait for one
KEPT_MAX = 2  # bound: connections to an address of a domain that are kept without a call; others are closed
CONNECT_S_MAX = 5.0  # for one address; a dead one must not use up the whole call
PLACES_MAX = 256  # addresses with open connections; of PEERS_MAX peers few are called at once
IDLE_S = 30.0  # a connection unused for longer is closed


class Place(NamedTuple):
    """Destination of connections: one address of a name. TLS checks the name, so two names at one address share no connection.

    Attributes:
        tls: whether the connections are encrypted.
        host: the name, for TLS.
        address: the IP address.
    """

    tls: bool
    host: str
    address: str
    port: int


class RawAnswer(NamedTuple):
    """An answer as it was received: status, fields in order, body."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes


class NotConnected(OSError):
    """The address accepts no connection, or does not prove its name; another one may."""


class AnswerBroken(OSError):
    """The connection ended before the answer did, or what arrived is no HTTP/1.1."""


class AnswerTooLong(Exception):
    """The body is longer than permitted."""


class Connections:
    """Open connections of one event loop, which calls all methods.

    Args:
        context: of TLS.
        answer_bytes_max: longest body of an answer, in bytes.
    """

    def __init__(self, context: ssl.SSLContext, answer_bytes_max: int) -> None:
        self._context = context
        self._answer_bytes_max = answer_bytes_max
        self._places: OrderedDict[Place, _Pool] = OrderedDict()

    async def exchange(self, place: Place, request: bytes) -> RawAnswer:
        """Send a request, on a connection that is open already if one is free, and return the answer.

        Raises NotConnected, AnswerBroken, AnswerTooLong.
        """
        pool = self._places.get(place)
        if pool is None:
            pool = self._places[place] = _Pool()
            if len(self._places) > PLACES_MAX:
                self._places.popitem(last=False)[1].end()
        self._places.move_to_end(place)
        async with pool.turns:
            connection = pool.take() or await self._connect(place)
            try:
                answer = await connection.exchange(request)
            except BaseException:
                connection.close()
                raise
            pool.keep(connection)
        return answer

    async def _connect(self, place: Place) -> _Connection:
        loop = asyncio.get_running_loop()
        tls: dict[str, Any] = {"ssl": self._context, "server_hostname": place.host} if place.tls else {}
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop, self._answer_bytes_max), place.address, place.port, **tls
                )
        except OSError as error:  # among them TimeoutError and ssl.SSLError
            raise NotConnected(type(error).__name__) from error
        return connection


class _Pool:
    """The connections of one place."""

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(CONNECTIONS_MAX)
        self._kept: list[_Connection] = []
        self._ended = False

    def take(self) -> _Connection | None:
        """Return a connection that is open, the one that was used last."""
        while self._kept:
            connection = self._kept.pop()
            if connection.resume():
                return connection
        return None

    def keep(self, connection: _Connection) -> None:
        """Keep a connection for the next exchange, for a while."""
        self._kept = [one for one in self._kept if one.is_open]
        if self._ended or len(self._kept) >= KEPT_MAX or not connection.is_open:
            connection.close()
        else:
            connection.rest()
            self._kept.append(connection)

    def end(self) -> None:
        """Close the connections that nobody uses; the others are closed after their exchanges."""
        self._ended = True
        for connection in self._kept:
            connection.close()


class _Connection(asyncio.Protocol):
    """One connection."""

    __slots__ = (
        "_answer_bytes_max", "_body", "_body_bytes", "_delimited", "_done", "_fields", "_head_bytes", "_informational",
        "_keep_alive", "_loop", "_parser", "_rest", "_status", "_transport", "_whole",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, answer_bytes_max: int) -> None:
        self._loop = loop
        self._answer_bytes_max = answer_bytes_max
        self._transport: asyncio.Transport | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._done: asyncio.Future[RawAnswer] | None = None
        self._begin()

    def _begin(self) -> None:
        self._parser: Any = httptools.HttpResponseParser(self)
        self._fields: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._status = self._head_bytes = self._body_bytes = self._informational = 0
        self._delimited = self._whole = self._keep_alive = False

    @property
    def is_open(self) -> bool:
        """True while another exchange can be begun."""
        return self._transport is not None and not self._transport.is_closing()

    def exchange(self, request: bytes) -> asyncio.Future[RawAnswer]:
        """Send a request. The future has the answer, AnswerBroken or AnswerTooLong.

        Raises AnswerBroken where the connection ended meanwhile, as one may that was only just made.
        """
        if not self.is_open:
            raise AnswerBroken("closed")
        self._begin()
        self._done = self._loop.create_future()
        cast(asyncio.Transport, self._transport).write(request)
        return self._done

    def rest(self) -> None:
        """Wait for another exchange, IDLE_S at most."""
        self._rest = self._loop.call_later(IDLE_S, self.close)

    def resume(self) -> bool:
        """End the rest; return whether another exchange can be begun."""
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        return self.is_open

    def close(self) -> None:
        """Close at once."""
        self.resume()
        self._done = None
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Parse a part of an answer."""
        if self._done is None:  # nothing was asked
            self.close()
            return
        if not self._status:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(AnswerBroken("malformed"))
            return
        if self._body_bytes > self._answer_bytes_max:
            self._fail(AnswerTooLong())
        elif self._whole:
            self._finish()
        elif (not self._status and self._head_bytes > HEAD_BYTES_MAX) or self._informational > INFORMATIONAL_MAX:
            self._fail(AnswerBroken("malformed"))

    def connection_lost(self, _exc: Exception | None) -> None:
        """End the exchange: with the answer if its end is that of the connection."""
        self._transport = None
        if self._done is None:
            return
        if self._status and not self._delimited:
            self._keep_alive = False
            self._finish()
        else:
            self._fail(AnswerBroken("closed"))

    # httptools

    def on_message_begin(self) -> None:
        """Forget the fields of an informational answer."""
        if not self._status:
            self._fields = []
        else:  # a second answer, which nothing asked for
            self._keep_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field; those after the body are not read."""
        if not self._status:
            self._fields.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Take the status."""
        status = self._parser.get_status_code()
        if self._status or status < 200:
            return
        self._status = status
        self._keep_alive = self._parser.should_keep_alive()
        self._delimited = any(name.lower() in ("content-length", "transfer-encoding") for name, _ in self._fields)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if self._whole:
            return
        self._body_bytes += len(body)
        if self._body_bytes <= self._answer_bytes_max:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """End the answer, unless it is an informational one."""
        if self._status:
            self._whole = True
        else:
            self._informational += 1

    def _finish(self) -> None:
        done, self._done = self._done, None
        if not self._keep_alive:
            self.close()
        if done is not None and not done.done():
            done.set_result(RawAnswer(self._status, self._fields, b"".join(self._body)))

    def _fail(self, error: Exception) -> None:
        done = self._done
        self.close()
        if done is not None and not done.done():
            done.set_exception(error)
