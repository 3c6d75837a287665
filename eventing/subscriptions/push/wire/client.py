"""The HTTP client of push: bounded connections to each endpoint's host, kept for the next request.

    send -> an idle connection of the host, or: resolve, check, connect, TLS -> exchange -> kept, or closed

An idle connection that its server closed meanwhile is replaced once without counting as an attempt. The client follows no
redirects and reads no proxy from its environment.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import deque
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from eventing.subscriptions.push.modes import PushRequest
from eventing.subscriptions.push.rules.addresses import EndpointUrl
from eventing.subscriptions.push.rules.client_identities import ClientIdentity
from eventing.subscriptions.push.rules.verdicts import NoAnswer, PushAnswer
from eventing.subscriptions.push.wire.connection import EndpointConnection
from eventing.subscriptions.push.wire.resolution import Unreached, checked_addresses
from eventing.subscriptions.push.wire.tls import TlsContexts

CONNECT_S = 5.0  # bound: seconds until a connection is accepted, divided by the addresses; the attempt fails
TLS_S = 5.0  # bound: seconds of a TLS handshake; the attempt fails
PROXY_S = 10.0  # bound: seconds until the proxy has made a tunnel; the attempt fails
IDLE_S = 30.0  # bound: seconds for which an idle connection is kept; the connection is closed
AGE_S = 300.0  # bound: seconds for which a connection is used, whatever its server allows; the connection is closed
IDLE_PER_HOST_MAX = 32  # bound: idle connections of one host; the oldest is closed
IDLE_MAX = 1024  # bound: idle connections of the process; the connection is closed after its use
_PROXY_ANSWER_BYTES_MAX = 4096
USER_AGENT = "Herald-Push/1"


@dataclass(frozen=True, slots=True)
class PushNetwork:
    """Settings of connections to endpoints.

    Attributes:
        private: whether endpoints of private networks and of this machine may be called.
        own_port: port of this domain's gateway.
        proxy: `http://HOST:PORT` of a proxy that makes tunnels; empty for none. It decides about the addresses of names.
        tls: the TLS settings of each client certificate.
    """

    private: bool
    own_port: int
    proxy: str
    tls: TlsContexts


_Host = tuple[str, str, int, str]
"""Scheme, host, port, and the client certificate's digest: connections are kept for requests that have all in common."""


class PushClient:
    """The connections of one event loop."""

    def __init__(self, network: PushNetwork) -> None:
        self._network = network
        self._idle: dict[_Host, deque[tuple[float, EndpointConnection]]] = {}
        self._idle_count = 0

    async def send(self, url: EndpointUrl, request: PushRequest, identity: ClientIdentity | None = None) -> PushAnswer:
        """Send a request; an answer without a status states why there is none. Never raises for what an endpoint does.

        Args:
            identity: client certificate for servers that ask for one; None for none.
        """
        began = time.perf_counter()
        try:
            answer = await self._exchanged(url, identity, _head(url, request) + request.body, request.reads)
        except Unreached as error:
            answer = PushAnswer(0, str(error.reason), address=error.address)
        return replace(answer, took_ms=round((time.perf_counter() - began) * 1000))

    def close(self) -> None:
        """Close all idle connections."""
        for kept in self._idle.values():
            for _, connection in kept:
                connection.close()
        self._idle.clear()
        self._idle_count = 0

    def tidy(self) -> None:
        """Close connections that have been idle for too long."""
        now = asyncio.get_running_loop().time()
        for host, kept in list(self._idle.items()):
            while kept and (kept[0][0] < now - IDLE_S or not kept[0][1].is_open):
                kept.popleft()[1].close()
                self._idle_count -= 1
            if not kept:
                del self._idle[host]

    async def _exchanged(
        self, url: EndpointUrl, identity: ClientIdentity | None, data: bytes, reads: tuple[str, ...]
    ) -> PushAnswer:
        host = (url.scheme, url.host, url.port, identity.digest if identity else "")
        connection = self._idle_one(host)
        if connection is not None:
            try:
                answer = await connection.exchange(data, reads)
            except Unreached as error:
                if error.reason is not NoAnswer.CLOSED:
                    raise
            else:
                self._keep(host, connection)
                return answer
        connection = await self._connected(url, identity)
        answer = await connection.exchange(data, reads)
        self._keep(host, connection)
        return answer

    def _idle_one(self, host: _Host) -> EndpointConnection | None:
        kept = self._idle.get(host)
        now = asyncio.get_running_loop().time()
        while kept:
            since, connection = kept.pop()
            self._idle_count -= 1
            if connection.is_open and since > now - IDLE_S and connection.made_at > now - AGE_S:
                return connection
            connection.close()
        return None

    def _keep(self, host: _Host, connection: EndpointConnection) -> None:
        if not connection.is_open:
            return
        kept = self._idle.setdefault(host, deque())
        if self._idle_count >= IDLE_MAX:
            connection.close()
            return
        if len(kept) >= IDLE_PER_HOST_MAX:
            kept.popleft()[1].close()
            self._idle_count -= 1
        kept.append((asyncio.get_running_loop().time(), connection))
        self._idle_count += 1

    async def _connected(self, url: EndpointUrl, identity: ClientIdentity | None) -> EndpointConnection:
        network = self._network
        tls = await network.tls.of(identity) if url.is_tls else None
        if network.proxy:
            proxy = urlsplit(network.proxy)
            sock = await _socket_to(proxy.hostname or "", proxy.port or 3128, CONNECT_S)
            try:
                await _tunnel(sock, url)
            except BaseException:
                sock.close()
                raise
            return await self._over(sock, url, network.proxy, tls)
        addresses = await checked_addresses(url, private=network.private, own_port=network.own_port)
        for address in addresses[:-1]:
            try:
                sock = await _socket_to(address, url.port, CONNECT_S / len(addresses))
            except Unreached:
                continue
            return await self._over(sock, url, address, tls)
        sock = await _socket_to(addresses[-1], url.port, CONNECT_S / len(addresses))
        return await self._over(sock, url, addresses[-1], tls)

    async def _over(
        self, sock: socket.socket, url: EndpointUrl, address: str, tls: ssl.SSLContext | None
    ) -> EndpointConnection:
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(
                lambda: EndpointConnection(loop, address),
                sock=sock,
                ssl=tls,
                server_hostname=url.host if tls else None,
                ssl_handshake_timeout=TLS_S if tls else None,
            )
        except (OSError, TimeoutError) as error:
            sock.close()
            failed = NoAnswer.TLS if tls or isinstance(error, ssl.SSLError) else NoAnswer.CONNECT
            raise Unreached(failed, address) from None
        except BaseException:
            sock.close()
            raise
        return connection


async def _socket_to(host: str, port: int, within_s: float) -> socket.socket:
    """Connect to an address that was checked, or to the proxy. Raises Unreached."""
    loop = asyncio.get_running_loop()
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(within_s):
            await loop.sock_connect(sock, (host, port))
    except TimeoutError:
        sock.close()
        raise Unreached(NoAnswer.CONNECT_TIMEOUT, host) from None
    except OSError:
        sock.close()
        raise Unreached(NoAnswer.CONNECT, host) from None
    except BaseException:
        sock.close()
        raise
    return sock


async def _tunnel(sock: socket.socket, url: EndpointUrl) -> None:
    """Have the proxy make a tunnel (RFC 9110, section 9.3.6). Raises Unreached."""
    loop = asyncio.get_running_loop()
    name = f"[{url.host}]" if ":" in url.host else url.host
    answer = b""
    try:
        async with asyncio.timeout(PROXY_S):
            await loop.sock_sendall(
                sock, f"CONNECT {name}:{url.port} HTTP/1.1\r\nHost: {name}:{url.port}\r\n\r\n".encode()
            )
            while b"\r\n\r\n" not in answer and len(answer) < _PROXY_ANSWER_BYTES_MAX:
                part = await loop.sock_recv(sock, 1)  # no byte of the tunnel's may be read
                if not part:
                    break
                answer += part
    except (TimeoutError, OSError):
        raise Unreached(NoAnswer.CONNECT) from None
    status = answer.split(b" ", 2)[1:2]
    if b"\r\n\r\n" not in answer or not status or not status[0].startswith(b"2"):
        raise Unreached(NoAnswer.CONNECT)


def _head(url: EndpointUrl, request: PushRequest) -> bytes:
    lines = [f"{request.method} {url.target} HTTP/1.1", f"Host: {url.host_field}", f"User-Agent: {USER_AGENT}"]
    lines += [f"{name}: {value}" for name, value in request.headers]
    lines.append(f"Content-Length: {len(request.body)}\r\n\r\n")
    return "\r\n".join(lines).encode("latin-1")
