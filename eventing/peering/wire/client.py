"""Calling another domain: a signed POST, and its answer, which must be signed by that domain and answer this very request.

The other side is bounded in everything: time for the whole call, bytes of the answer, no redirects, no compression, no
addresses of private networks. Proxies of the environment are not used. Connections are kept: one event loop on a thread
of its own per process carries all calls, because only so a bound on the whole time holds against who sends slowly.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import secrets
import socket
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Executor, Future, wait
from contextlib import suppress
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import httpx

from eventing.access.rules.policy_issuers import is_address
from eventing.access.selectors.keys import signing_key
from eventing.access.verification.fetching import (
    ADDRESSES_TRIED_MAX,
    FETCH_S,
    Address,
    host_field,
    host_of,
    is_private,
    is_public,
)
from eventing.conf import config
from eventing.core import strict_json
from eventing.peering.peer_documents import document_refetch
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.peering.selectors.recent_keys import Keys, domain_keys_recent
from eventing.peering.wire import signatures
from eventing.peering.wire.contacts import contacted
from eventing.peering.wire.messages import BODY_BYTES_MAX
from eventing.peering.wire.signatures import BadSignature
from eventing.telemetry import tracing

ANSWER_BYTES_MAX = BODY_BYTES_MAX
CONNECT_S_MAX = 5.0  # for one address; a dead one must not take the whole call
CLIENTS_MAX = 256  # places that connections are kept to; PEERS_MAX peers, of which few are called at once
IDLE_S = 30.0  # a connection unused for longer is closed
REFETCH_S_MAX = FETCH_S + 1  # for a document with a key that is new to us; at most every 30 s for each domain
RETRY_AFTER_S_MAX = 3600
RETRY_AFTER_UNSIGNED_S_MAX = 60  # as forwarding's longest back-off: who is between us must not be obeyed for longer
DETAIL_CHARS_MAX = 300  # of what the other side says of itself, for logs and screens
NO_ANSWER = "no-answer"
"""PeerError.code of a call that brought no answer at all: the way may be cut (replication/forwarding/probing.py)."""

Kind = Literal["unreachable", "refused", "busy", "invalid"]
_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_INVALID = frozenset({400, 401, 405, 413, 415, 422, 431})
_PASSING = frozenset({"unknown-key", "key-window", "clock", "replay"})
"""Reasons of a 401 or 409 that are over when documents have been exchanged, clocks are set, or a request is signed anew."""


class PeerError(Exception):
    """A call that did not succeed.

    Attributes:
        kind: `unreachable`: no answer that is the other domain's, whoever is to blame for that (try again). `busy`: it
            says to come later. `refused`: it understood and does not want to. `invalid`: one of us does not understand
            the other or takes it for somebody else; repeating it is pointless until something changes.
        detail: one sentence.
        retry_after_s: seconds that the other side asks to wait, at most RETRY_AFTER_S_MAX; None if it does not say.
        code: of the problem that it answered with (core/errors.py), or what was wrong with the answer (BadSignature).
        status: of its answer; 0 if there was none.
        document: the problem document that it signed; empty if there was none.
    """

    def __init__(
        self,
        kind: Kind,
        detail: str,
        retry_after_s: int | None = None,
        *,
        code: str = "",
        status: int = 0,
        document: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind: Kind = kind
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.code = code
        self.status = status
        self.document = document or {}


class _Raw(NamedTuple):
    status: int
    fields: list[tuple[str, str]]
    body: bytes


def call(peer_url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
    """Send `body` to `path` of the domain at `peer_url`, signed, and return the body of its answer.

    Blocks for at most about `timeout_s`, and the time of the resolver, and REFETCH_S_MAX where the other side's keys have
    changed; never call it on an event loop.

    Args:
        domain: whose keys must have signed the answer; its document is trusted here.

    Raises PeerError.
    """
    return begin(peer_url, domain, path, body, timeout_s)()


def begin(peer_url: str, domain: str, path: str, body: bytes, timeout_s: float) -> Callable[[], bytes]:
    """As `call`, but it only sends: what it returns, to be called once, waits for the answer.

    What cannot even be sent raises PeerError here; everything else does when the answer is waited for.
    """
    key = signing_key()  # as it is now: a request signed by the key before could bring seals by a key not known there
    if key is None:
        raise PeerError("unreachable", "This domain has no signing key yet; its gateway makes one when it starts.")
    _require_address(peer_url)
    request = signatures.request_signed(
        f"{peer_url.rstrip('/')}{path}",
        body,
        origin=config().domain,
        destination=domain,
        key=key,
        nonce=secrets.token_urlsafe(18),
        now=time.time(),
    )
    request.headers.update(tracing.headers())  # unsigned: it decides nothing
    waiting = _sending(request, body, timeout_s)
    _under_way[domain] = (time.monotonic(), waiting)
    return lambda: _answer(request, waiting, domain, timeout_s)


_under_way: dict[str, tuple[float, Future[_Raw]]] = {}
"""The last call to each domain, since when it waits, and what for. At most one of each domain that is called."""


def give_up(domain: str, *, begun_before: float) -> None:
    """End the call to `domain` that waits since before `begun_before` (time.monotonic), if there is one: it fails as one
    without an answer. For whoever has seen that the domain answers on another connection."""
    begun, waiting = _under_way.get(domain, (math.inf, None))
    if waiting is not None and begun < begun_before:
        waiting.cancel()


def _answer(request: signatures.Request, waiting: Future[_Raw], domain: str, timeout_s: float) -> bytes:
    """Wait for an answer, and check it. Raises PeerError."""
    raw = _received(waiting, timeout_s)
    try:
        headers = signatures.fields_read(raw.fields)
        _verified(signatures.Answer(raw.status, headers, request), raw.body, domain)
    except BadSignature as error:
        raise _not_theirs(raw, error) from None
    contacted(domain, "answer")
    if raw.status == 200:
        return raw.body
    raise _refused(raw, headers)


def _verified(answer: signatures.Answer, body: bytes, domain: str) -> None:
    """Check an answer; if it is signed with a key that we do not know, ask the domain for its document first."""

    def verify(jwks: Keys) -> None:
        signatures.answer_verified(answer, body, origin=domain, jwks=jwks, now=time.time())

    try:
        verify(domain_keys_recent(domain))
        return
    except BadSignature as error:
        if error.code not in ("unknown-key", "key-window"):
            raise
    try:
        verify(domain_keys(domain))
    except BadSignature as error:
        fetching = document_refetch(domain) if error.code == "unknown-key" else None
        if fetching is None:
            raise
        wait([fetching], REFETCH_S_MAX)
        verify(domain_keys(domain))


def _require_address(url: str) -> None:
    """Before anything is signed for it. Raises PeerError."""
    with suppress(httpx.InvalidURL):  # what looks like an IP address and is none
        httpx.URL(url)
        if is_address(url):
            return
    raise PeerError("unreachable", "The peer's address is not an https address (http on this machine only).")


def _sending(request: signatures.Request, body: bytes, timeout_s: float) -> Future[_Raw]:
    deadline = time.monotonic() + timeout_s
    url = httpx.URL(request.url)
    port = url.port or (443 if url.scheme == "https" else 80)
    addresses = _checked(url, port)
    return _Loop.running().begin(_post(url, port, addresses, request, body, deadline - time.monotonic()))


def _received(waiting: Future[_Raw], timeout_s: float) -> _Raw:
    try:
        return waiting.result()
    except TimeoutError:
        raise PeerError(
            "unreachable", f"There was no complete answer within {timeout_s:g} s.", code=NO_ANSWER
        ) from None
    except CancelledError:
        raise PeerError(
            "unreachable", "There was no answer on this connection, but on others.", code=NO_ANSWER
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
        cut = isinstance(error, httpx.TransportError | OSError)
        detail = f"The domain cannot be reached ({type(error).__name__})."
        raise PeerError("unreachable", detail, code=NO_ANSWER if cut else "") from None


async def answers(peer_url: str, within_s: float, resolver: Executor) -> bool:
    """Whether whoever is at `peer_url` answers at all, whatever it answers: a connection, and a HEAD that is not signed.

    It is bound by the same rules as calls: addresses of private networks are not asked. For any event loop.

    Args:
        within_s: seconds for all of it.
        resolver: threads to resolve the name on.
    """
    if not is_address(peer_url):
        return False
    url = httpx.URL(peer_url)
    port = url.port or (443 if url.scheme == "https" else 80)
    with suppress(TimeoutError, OSError, PeerError):
        async with asyncio.timeout(within_s):
            addresses = await asyncio.get_running_loop().run_in_executor(resolver, _checked, url, port)
            for address in addresses:
                with suppress(OSError):
                    if await _answers_at(url, port, address):
                        return True
    return False


async def _answers_at(url: httpx.URL, port: int, address: Address) -> bool:
    tls = {"ssl": _tls(), "server_hostname": host_of(url)} if url.scheme == "https" else {}
    reader, writer = await asyncio.open_connection(str(address), port, **tls)  # type: ignore[arg-type]
    try:
        writer.write(f"HEAD /livez HTTP/1.1\r\nHost: {host_field(url)}\r\nConnection: close\r\n\r\n".encode("ascii"))
        return bool(await reader.read(1))
    finally:
        writer.transport.abort()


def _checked(url: httpx.URL, port: int) -> list[Address]:
    """The addresses that may be called, if all of the name's may."""
    try:
        found = socket.getaddrinfo(host_of(url), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise PeerError("unreachable", "The peer's name cannot be resolved.") from None
    texts = dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found)
    addresses: list[Address] = [ipaddress.ip_address(text) for text in texts]
    ours = host_of(httpx.URL(config().base_url))
    for address in addresses:
        if address.is_loopback and _is_loopback(ours):
            continue  # both domains are on this machine
        if not is_public(address) and not (config().allow_private_peers and is_private(address)):
            raise PeerError(
                "unreachable", "The peer's name resolves to an address that is not public (HERALD_ALLOW_PRIVATE_PEERS)."
            )
        if url.scheme != "https" and not address.is_loopback:
            raise PeerError("unreachable", "http is spoken to domains on this machine only.")
    return addresses[:ADDRESSES_TRIED_MAX]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _post(
    url: httpx.URL, port: int, addresses: list[Address], request: signatures.Request, body: bytes, left_s: float
) -> _Raw:
    """Ask the first address that takes the connection."""
    async with asyncio.timeout(left_s):
        for address in addresses[:-1]:
            try:
                return await _ask(url, port, address, request, body, left_s)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await _ask(url, port, addresses[-1], request, body, left_s)


async def _ask(
    url: httpx.URL, port: int, address: Address, request: signatures.Request, body: bytes, left_s: float
) -> _Raw:
    headers = {
        **request.headers,
        "host": host_field(url),
        "accept-encoding": "identity",  # a compressed answer could be small to receive and huge to read
        "user-agent": "Herald",
    }
    client = _Loop.running().client(f"{url.scheme}://{host_of(url)}:{port}")
    built = client.build_request(
        request.method,
        url.copy_with(host=str(address), port=port),
        headers=headers,
        content=body,
        timeout=httpx.Timeout(left_s, connect=min(left_s, CONNECT_S_MAX)),
        extensions={"sni_hostname": host_of(url)} if url.scheme == "https" else None,
    )
    response = await client.send(built, stream=True)
    try:
        return await _read(response)
    finally:
        await response.aclose()


async def _read(response: httpx.Response) -> _Raw:
    if response.is_redirect:
        raise PeerError("unreachable", "The answer is a redirect; redirects are not followed.", code="redirect")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise PeerError("unreachable", "The answer is in an encoding that was not asked for.", code="encoding")
    parts, size = [], 0
    async for part in response.aiter_raw():
        size += len(part)
        if size > ANSWER_BYTES_MAX:
            raise PeerError("unreachable", f"The answer is longer than {ANSWER_BYTES_MAX} bytes.", code="too-large")
        parts.append(part)
    fields = [(name.decode("ascii"), value.decode("latin-1")) for name, value in response.headers.raw]
    return _Raw(response.status_code, fields, b"".join(parts))


def _not_theirs(raw: _Raw, error: BadSignature) -> PeerError:
    """An answer that is not proven to be the other domain's says nothing about it: a proxy or anybody else may have given it."""
    headers = {name.lower(): value for name, value in raw.fields}
    unsigned_and_busy = error.code == "unsigned" and raw.status in _BUSY
    return PeerError(
        "busy" if unsigned_and_busy else "unreachable",
        f"The answer (status {raw.status}) is not proven to be that domain's: {error.detail}",
        _retry_after_s(headers, RETRY_AFTER_UNSIGNED_S_MAX) if unsigned_and_busy else None,
        code=error.code,
        status=raw.status,
    )


def _refused(raw: _Raw, headers: dict[str, str]) -> PeerError:
    """What an answer other than success says."""
    document = _problem(raw.body)
    passing = raw.status in _BUSY or str(document.get("reason")) in _PASSING
    kind: Kind = "busy" if passing else "invalid" if raw.status in _INVALID else "refused"
    code = str(document.get("type", ""))[:DETAIL_CHARS_MAX].removeprefix("urn:herald:problem:")
    detail = "".join(filter(str.isprintable, str(document.get("detail", ""))[:DETAIL_CHARS_MAX]))
    said = f"It answers with status {raw.status}: {detail or 'no reason given.'}"
    return PeerError(kind, said, _retry_after_s(headers), code=code, status=raw.status, document=document)


def _problem(body: bytes) -> dict[str, Any]:
    try:
        document = strict_json.parse(body)
    except strict_json.NotStrictJson:
        return {}
    return document if isinstance(document, dict) else {}


def _retry_after_s(headers: dict[str, str], most: int = RETRY_AFTER_S_MAX) -> int | None:
    text = headers.get(signatures.RETRY_AFTER, "")
    return min(int(text), most) if text.isascii() and text.isdigit() and len(text) <= 9 else None


class _Loop:
    """This process's event loop for calls, on a thread of its own, and the connections that it keeps."""

    _lock = threading.Lock()
    _current: _Loop | None = None

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._clients: OrderedDict[str, httpx.AsyncClient] = OrderedDict()
        threading.Thread(target=self._loop.run_forever, name="federation-client", daemon=True).start()

    @classmethod
    def running(cls) -> _Loop:
        """The loop; a new one after a fork, which leaves threads behind."""
        with cls._lock:
            if cls._current is None or cls._current._pid != os.getpid():
                cls._current = cls()
            return cls._current

    def begin(self, work: Coroutine[Any, Any, _Raw]) -> Future[_Raw]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def client(self, place: str) -> httpx.AsyncClient:
        """The connections to one place: those of two names at one address are never mixed, TLS has checked one of them."""
        client = self._clients.get(place)
        if client is None:
            client = self._clients[place] = httpx.AsyncClient(
                trust_env=False,
                verify=_tls(),
                follow_redirects=False,
                limits=httpx.Limits(max_connections=4, max_keepalive_connections=2, keepalive_expiry=IDLE_S),
            )
            if len(self._clients) > CLIENTS_MAX:
                self._clients.popitem(last=False)  # its connections end when the last call has let go of it
        self._clients.move_to_end(place)
        return client


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Made once: to load the certificates takes 20 ms."""
    return httpx.create_ssl_context(trust_env=False)
