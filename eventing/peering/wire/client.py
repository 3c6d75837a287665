"""Client of other domains: a signed POST, whose answer must be signed by that domain and bound to the request.

Everything from the other side is bounded: time for the whole call, bytes of the answer, no redirects, no compression,
no addresses of private networks. Proxies of the environment are not used. Connections are kept open (connections.py): one event
loop on a thread of its own per process carries all calls, because only an event loop can bound the whole time against a slow
sender.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import secrets
import socket
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Executor, Future, wait
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import httpx
import uvloop

from eventing.access.rules.policy_issuers import is_address
from eventing.access.selectors.keys import signing_key
from eventing.access.verification.fetching import (
    ADDRESSES_TRIED_MAX,
    FETCH_S,
    host_field,
    host_of,
    is_private,
    is_public,
    tls_context,
)
from eventing.conf import config
from eventing.core import strict_json
from eventing.core.client_address import is_loopback
from eventing.core.container import memoized, per_process
from eventing.peering.peer_documents import document_refetch
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.peering.selectors.recent_keys import Keys, domain_keys_recent
from eventing.peering.wire import signatures
from eventing.peering.wire.connections import AnswerTooLong, Connections, NotConnected, Place, RawAnswer
from eventing.peering.wire.messages import BODY_BYTES_MAX
from eventing.peering.wire.signatures import BadSignature
from eventing.sql.threads import connection_release
from eventing.store.peer_state import contact_note
from eventing.telemetry import tracing

ANSWER_BYTES_MAX = BODY_BYTES_MAX
REFETCH_S_MAX = FETCH_S + 1  # wait for a document with a new key; at most every 30 s for each domain
RETRY_AFTER_S_MAX = 3600
RETRY_AFTER_UNSIGNED_S_MAX = 60  # as forwarding's longest back-off: an unsigned answer may be of an intermediary
DETAIL_CHARS_MAX = 300  # of the other side's own words, for logs and screens
NO_ANSWER = "no-answer"
"""PeerError.code of a call without any answer: the route may be cut (replication/forwarding/probing.py)."""

Kind = Literal["unreachable", "refused", "busy", "invalid"]
_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_INVALID = frozenset({400, 401, 405, 413, 415, 422, 431})
_PASSING = frozenset({"unknown-key", "key-window", "clock", "replay"})
"""Reasons of a 401 or 409 that pass once documents are exchanged, clocks are set, or a request is signed anew."""


class PeerError(Exception):
    """A call that failed.

    Attributes:
        kind: `unreachable`: no answer proven to be the other domain's (retry). `busy`: the domain asks for a later
            request. `refused`: the domain understood and declines. `invalid`: keys, signatures or formats do not match;
            a retry is pointless until something changes.
        detail: one sentence.
        retry_after_s: seconds that the other side asks to wait, at most RETRY_AFTER_S_MAX; None if not stated.
        code: of the answered problem (core/errors.py), or of the fault in the answer (BadSignature).
        status: of the answer; 0 if there was none.
        document: the problem document that the domain signed; empty if there was none.
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


def call(
    peer_url: str,
    domain: str,
    path: str,
    body: bytes,
    timeout_s: float,
    *,
    key: Mapping[str, Any] | None = None,
    keys: Keys | None = None,
) -> bytes:
    """Send `body` to `path` of the domain at `peer_url`, signed, and return the body of the answer.

    Blocks for at most about `timeout_s`, plus the time of the resolver, plus REFETCH_S_MAX if the other side's keys
    have changed; never call it on an event loop.

    Args:
        domain: the domain whose keys must have signed the answer; its document is trusted here, or `keys` are given.
        key: private JWK to sign with; None: the present one.
        keys: keys of the domain that the caller trusts, by kid; None: those of its document. With given keys the call counts neither
            as contact with a peer nor for `give_up`.

    Raises PeerError.
    """
    return begin(peer_url, domain, path, body, timeout_s, key=key, keys=keys)()


def begin(
    peer_url: str,
    domain: str,
    path: str,
    body: bytes,
    timeout_s: float,
    *,
    key: Mapping[str, Any] | None = None,
    keys: Keys | None = None,
) -> Callable[[], bytes]:
    """Send as `call` does, and return a function, to be called once, that waits for the answer.

    Raises PeerError if the request cannot be sent; the returned function raises it for everything else.
    """
    key = (
        key or signing_key()
    )  # uncached: a request signed by the former key could carry seals by a key that is unknown there
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
    request.headers.update(tracing.headers())  # unsigned: no decision depends on it
    waiting = _sending(request, body, timeout_s)
    if keys is None:
        _under_way()[domain] = (time.monotonic(), waiting)
    return lambda: _answer(request, waiting, domain, timeout_s, keys)


@per_process
def _under_way() -> dict[str, tuple[float, Future[RawAnswer]]]:
    """Return the last call to each domain: since when it waits, and its future. At most one per domain."""
    return {}


def give_up(domain: str, *, begun_before: float) -> None:
    """End the call to `domain` that has waited since before `begun_before` (time.monotonic), if any, as one without an
    answer. For callers that saw the domain answer on another connection.
    """
    begun, waiting = _under_way().get(domain, (math.inf, None))
    if waiting is not None and begun < begun_before:
        waiting.cancel()


def _answer(
    request: signatures.SignedRequest, waiting: Future[RawAnswer], domain: str, timeout_s: float, keys: Keys | None
) -> bytes:
    """Wait for an answer and verify it. Raises PeerError."""
    raw = _received(waiting, timeout_s)
    try:
        headers = signatures.fields_read(raw.fields)
        _verified(signatures.SignedAnswer(raw.status, headers, request), raw.body, domain, keys)
    except BadSignature as error:
        raise _not_theirs(raw, error) from None
    if keys is None:
        contact_note(domain, "answer")
    if raw.status == 200:
        return raw.body
    raise _refused(raw, headers)


def _verified(answer: signatures.SignedAnswer, body: bytes, domain: str, keys: Keys | None) -> None:
    """Verify an answer by the given keys, or those of the domain's document; if its key is unknown there, fetch the document first."""

    def verify(jwks: Keys) -> None:
        signatures.answer_verified(answer, body, origin=domain, jwks=jwks, now=time.time())

    if keys is not None:
        verify(keys)
        return
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


class _Target(NamedTuple):
    """A parsed address.

    Attributes:
        host: the name, for DNS and TLS.
        host_field: of requests.
        path: with the query.
    """

    tls: bool
    host: str
    port: int
    host_field: str
    path: str


@memoized(maxsize=1024)
def _target(url: str) -> _Target:
    parsed = httpx.URL(url)
    tls = parsed.scheme == "https"
    path = parsed.raw_path.decode("ascii")
    return _Target(tls, host_of(parsed), parsed.port or (443 if tls else 80), host_field(parsed), path)


def _require_address(url: str) -> None:
    """Check the address before anything is signed for it. Raises PeerError."""
    with suppress(httpx.InvalidURL):  # a malformed IP address
        _target(url)
        if is_address(url):
            return
    raise PeerError("unreachable", "The peer's address is not an https address (http on this machine only).")


def _sending(request: signatures.SignedRequest, body: bytes, timeout_s: float) -> Future[RawAnswer]:
    deadline = time.monotonic() + timeout_s
    target = _target(request.url)
    addresses = _checked(target)
    sent = _encoded(request, target, body)
    return _loop().begin(_post(target, addresses, sent, deadline - time.monotonic()))


def _encoded(request: signatures.SignedRequest, target: _Target, body: bytes) -> bytes:
    fields = {
        **request.headers,
        "host": target.host_field,
        "accept-encoding": "identity",  # a compressed answer could be small to receive and huge to read
        "user-agent": "Herald",
        "content-length": str(len(body)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{request.method} {target.path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


def _received(waiting: Future[RawAnswer], timeout_s: float) -> RawAnswer:
    connection_release()  # the pool of PostgreSQL's connections is smaller than the number of threads that wait for domains
    try:
        answer = waiting.result()
    except TimeoutError:
        raise PeerError(
            "unreachable", f"There was no complete answer within {timeout_s:g} s.", code=NO_ANSWER
        ) from None
    except CancelledError:
        raise PeerError(
            "unreachable", "There was no answer on this connection, but on others.", code=NO_ANSWER
        ) from None
    except AnswerTooLong:
        raise PeerError(
            "unreachable", f"The answer is longer than {ANSWER_BYTES_MAX} bytes.", code="too-large"
        ) from None
    except OSError as error:
        detail = f"The domain cannot be reached ({error or type(error).__name__})."
        raise PeerError("unreachable", detail, code=NO_ANSWER) from None
    if 300 <= answer.status < 400:
        raise PeerError("unreachable", "The answer is a redirect; redirects are not followed.", code="redirect")
    if any(name.lower() == "content-encoding" and value != "identity" for name, value in answer.fields):
        raise PeerError("unreachable", "The answer has an encoding that was not requested.", code="encoding")
    return answer


async def answers(peer_url: str, within_s: float, resolver: Executor) -> bool:
    """Return whether anything answers at `peer_url`, with any status: a connection and an unsigned HEAD.

    The rules of calls apply: addresses of private networks are not contacted. For any event loop.

    Args:
        within_s: seconds for all of it.
        resolver: threads to resolve the name on.
    """
    if not is_address(peer_url):
        return False
    target = _target(peer_url)
    with suppress(TimeoutError, OSError, PeerError):
        async with asyncio.timeout(within_s):
            addresses = await asyncio.get_running_loop().run_in_executor(resolver, _checked, target)
            for address in addresses:
                with suppress(OSError):
                    if await _answers_at(target, address):
                        return True
    return False


async def _answers_at(target: _Target, address: str) -> bool:
    tls = {"ssl": tls_context(), "server_hostname": target.host} if target.tls else {}
    reader, writer = await asyncio.open_connection(address, target.port, **tls)  # type: ignore[arg-type]
    try:
        writer.write(f"HEAD /livez HTTP/1.1\r\nHost: {target.host_field}\r\nConnection: close\r\n\r\n".encode("ascii"))
        return bool(await reader.read(1))
    finally:
        writer.transport.abort()


def _checked(target: _Target) -> list[str]:
    """Return the addresses that may be called, if all of the name's may."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise PeerError("unreachable", "The peer's name cannot be resolved.") from None
    addresses = list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))
    ours = _target(config().base_url).host
    for address in map(ipaddress.ip_address, addresses):
        if address.is_loopback and is_loopback(ours):
            continue  # both domains are on this machine
        if not is_public(address) and not (config().allow_private_peers and is_private(address)):
            raise PeerError(
                "unreachable", "The peer's name resolves to an address that is not public (HERALD_ALLOW_PRIVATE_PEERS)."
            )
        if not target.tls and not address.is_loopback:
            raise PeerError("unreachable", "http is spoken to domains on this machine only.")
    return addresses[:ADDRESSES_TRIED_MAX]


async def _post(target: _Target, addresses: list[str], request: bytes, left_s: float) -> RawAnswer:
    """Send the request to the first address that accepts the connection."""
    connections = _loop().connections
    async with asyncio.timeout(left_s):
        for address in addresses[:-1]:
            try:
                return await connections.exchange(Place(target.tls, target.host, address, target.port), request)
            except NotConnected:
                continue
        return await connections.exchange(Place(target.tls, target.host, addresses[-1], target.port), request)


def _not_theirs(raw: RawAnswer, error: BadSignature) -> PeerError:
    """Return the error for an answer that is not proven to be the other domain's: a proxy or anybody else may have sent
    it.
    """
    headers = {name.lower(): value for name, value in raw.fields}
    unsigned_and_busy = error.code == "unsigned" and raw.status in _BUSY
    return PeerError(
        "busy" if unsigned_and_busy else "unreachable",
        f"The answer (status {raw.status}) is not proven to be that domain's: {error.detail}",
        _retry_after_s(headers, RETRY_AFTER_UNSIGNED_S_MAX) if unsigned_and_busy else None,
        code=error.code,
        status=raw.status,
    )


def _refused(raw: RawAnswer, headers: dict[str, str]) -> PeerError:
    """Return the error for a signed answer that is not a success."""
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
    """An event loop for calls, on a thread of its own, with its open connections."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self.connections = Connections(tls_context(), ANSWER_BYTES_MAX)
        weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop).atexit = False
        threading.Thread(target=self._loop.run_forever, name="federation-client", daemon=True).start()

    def begin(self, work: Coroutine[Any, Any, RawAnswer]) -> Future[RawAnswer]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)


_loop = per_process(_Loop)
