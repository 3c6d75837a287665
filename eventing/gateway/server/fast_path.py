"""The fast path of a publish over HTTP: from the request to the log and back, without a task, without ASGI.

Most publishes are valid, and have a bearer and an RP that this process has in memory. Such a publish is decided here in
one call, and answered in one write once the log has it. Every other one (a token or an RP that must be read from SQL,
any refusal) is *declined* before it has had any effect, and takes the ordinary path through the ASGI application
(gateway/endpoints/publish.py), which has every answer. So this file makes no decision that the ordinary path does not
make too; common parts are shared functions. Declined publishes are counted by reason (docs/observability.md).

Life of a publish here: its head is parsed -> `declined` returns the reasons that the head alone gives -> the connection
holds it until its body is complete: many clients send head and body separately -> `take` decides.

A client sends the same head again and again, byte by byte: the same RP, token, content type and length. `take` caches
the meaning of such a head, and the next request with it, if it arrives complete in one read on a connection that is
between two requests, is handled by `take_again` without parsing. Identical bytes at that place parse identically, so
only the meaning of the bytes is taken from the cache: token, policy, limits and everything else are checked each time.

Measured in one process, without sockets and Redis (tests/gateway/test_fast_path_played.py): 14 us of CPU a publish with
a cached head, 31 to 48 with a parsed one, 62 to 90 by the ordinary path.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final, Protocol

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from eventing.access.rules.limits import Account
from eventing.access.verification.verifier import token_digest
from eventing.client_address import scope_address
from eventing.core.client_address import address_key
from eventing.core.errors import ApplicationError
from eventing.core.events.cloudevents import Event
from eventing.core.events.cloudevents_http import EventHead, read_head
from eventing.core.principals import Principal
from eventing.core.request_origin import Origin, current_origin
from eventing.gateway import http
from eventing.gateway.admission.auditing import refused_request
from eventing.gateway.admission.limits import bytes_of
from eventing.gateway.endpoints.publish import events_of, published_json
from eventing.gateway.gateway import Gateway, gateway_of
from eventing.log.appender import Outcome
from eventing.rps.rules.descriptor import Descriptor
from eventing.telemetry.totals import totals

RPS: Final = "/api/v1/rps/"
EVENTS: Final = "/events"
# A declined body is read twice, and larger ones are mostly batches, whose cost is their events.
BODY_BYTES_MAX = 64 * 1024  # bound: bytes of a body on the fast path; the publish takes the ordinary path
# About 500 bytes each.
HEADS_MAX = 10_000  # bound: request heads in memory; the oldest head is parsed again
HEAD_BYTES_REMEMBERED_MAX = 8 * 1024  # bound: bytes of a cached request head; a longer head is parsed each time

# Reasons to decline
RP, TOKEN, REFUSED, QUERY, BODY, PIPELINED, BUSY = "rp", "token", "refused", "query", "body", "pipelined", "busy"
MOVING = "moving"

_POST: Final = b"POST " + RPS.encode()
_END_OF_HEAD: Final = b"\r\n\r\n"
_BEARER: Final = b"bearer "
_AT = len(RPS)
_END = -len(EVENTS)
_UNREPEATED = frozenset({b"x-request-id", b"traceparent", b"tracestate", b"expect"})
"""Headers that differ from one request to the next, or require an intermediate answer: a head with one of them is not cached."""


class ServerConnection(Protocol):
    """A connection of the server (gateway/server/protocol.py), as the fast path uses it."""

    @property
    def client(self) -> tuple[str, int] | None:
        """Address of the client."""

    @property
    def server_state(self) -> ServerState:
        """State of the server, including its ordinary headers."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Event loop of the connection."""

    @property
    def flow(self) -> FlowControl:
        """Flow control: whether the client reads its answers."""

    def answer_fast(self, cycle: Any, status: int, headers: bytes, content: bytes) -> None:
        """Answer a request that was taken."""

    def began_again(self, cycle: Any) -> None:
        """Count an unparsed request as begun."""

    def answered_again(self) -> None:
        """Count an unparsed request as answered."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Meaning of a cached head.

    Attributes:
        reference: the RP's id or name, as the client writes it.
        digest: digest of the token (access/verification/verifier.py); None for none.
        head: description of the body.
        length: length of the body, bytes.
        scope: scope of the request from which it was cached, without the token and the client's address.
    """

    reference: str
    digest: bytes | None
    head: EventHead
    length: int
    scope: Mapping[str, Any]


def is_publish(scope: Any) -> bool:
    """Return True if the request is a publish, by its method and path."""
    path = scope["path"]
    return scope["method"] == "POST" and path.endswith(EVENTS) and path.startswith(RPS) and len(path) > _AT - _END


def declined(connection: ServerConnection, cycle: RequestResponseCycle) -> str:
    """Return the reason to decline a publish by its head; empty if there is none so far."""
    gateway = gateway_of(connection.loop)
    scope: Any = cycle.scope
    if scope["query_string"]:
        return QUERY
    if gateway is None:
        return RP
    if cycle.waiting_for_100_continue or not _is_plain(scope["headers"]):
        return BODY
    try:
        digest = _digest(scope["headers"])
        found = _admitted(gateway, scope["path"][_AT:_END], digest)
    except ApplicationError:
        return REFUSED
    return found if isinstance(found, str) else ""


def take(connection: ServerConnection, cycle: RequestResponseCycle, raw: bytes = b"") -> bool:
    """Take a publish whose body is complete. False: declined, nothing has happened.

    Args:
        connection, cycle: connection and cycle of the request, as in uvicorn.
        raw: all bytes of the request, if one read returned exactly these.
    """
    scope: Any = cycle.scope
    headers = scope["headers"]
    body = bytes(cycle.body)
    gateway = gateway_of(connection.loop)
    if gateway is None or connection.flow.write_paused:
        reason = BUSY
    elif scope["query_string"]:
        reason = QUERY
    elif len(body) > BODY_BYTES_MAX:
        reason = BODY
    else:
        try:
            head = read_head(headers)
            digest = _digest(headers)
        except ApplicationError:
            reason = REFUSED
        else:
            reference = scope["path"][_AT:_END]
            reason = _append(gateway, reference, digest, head, body, _Publish(gateway, connection, cycle, scope))
            if not reason and raw:
                known = _Known(reference, digest, head, len(body), _shown(scope))
                _remember(gateway.publish_heads, raw, scope, cycle.keep_alive, known)
    if reason:
        totals().decline(reason)
    return not reason


def take_again(connection: ServerConnection, data: bytes) -> bool:
    """Take a publish whose head is cached. `data` is a read that begins a request. False: to be parsed."""
    if not data.startswith(_POST):
        return False
    end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
    if not len(_END_OF_HEAD) <= end <= HEAD_BYTES_REMEMBERED_MAX:
        return False
    gateway = gateway_of(connection.loop)
    if gateway is None:
        return False
    known: _Known | None = gateway.publish_heads.get(_of_head(data[:end]))
    if known is None or len(data) - end != known.length:
        return False
    publish = _PublishAgain(gateway, connection, known)
    # a declined one is counted when it has been parsed and is declined again
    return not _append(gateway, known.reference, known.digest, known.head, data[end:], publish)


def _is_plain(headers: http.Headers) -> bool:
    """Return True if the body's length is announced, and within BODY_BYTES_MAX."""
    for name, value in headers:
        if name == b"content-length":
            return len(value) < 10 and value.isdigit() and int(value) <= BODY_BYTES_MAX
    return False


def _digest(headers: http.Headers) -> bytes | None:
    """Compute the digest of the bearer's token; None for none. Raises Unauthenticated for an Authorization of another kind."""
    for name, value in headers:
        if name == b"authorization":
            if value[:7].lower() == _BEARER:
                return token_digest(value[7:].decode("latin-1").strip())
            http.bearer({"headers": headers})
    return None


def _admitted(gateway: Gateway, reference: str, digest: bytes | None) -> tuple[Descriptor, Principal] | str:
    """Return the RP and the publisher, or the reason to decline. Raises the errors of the ordinary path."""
    descriptor = gateway.descriptors.peek(reference)
    if descriptor is None:
        return RP
    if gateway.reader_moves.active(descriptor.id):
        return MOVING
    principal = gateway.tokens.peek_anonymous() if digest is None else gateway.tokens.peek_digest(digest)
    if principal is None:
        return TOKEN
    if not descriptor.allows(principal, "publish"):
        return REFUSED
    gateway.require_taken(descriptor)
    return descriptor, principal


def _append(
    gateway: Gateway, reference: str, digest: bytes | None, head: EventHead, body: bytes, publish: _Publish
) -> str:
    """Append the events of a publish to the log. Returns the reason if it is declined; then nothing has happened."""
    try:
        admitted = _admitted(gateway, reference, digest)
        if isinstance(admitted, str):
            return admitted
        descriptor, principal = admitted
        events, batch = events_of(gateway, principal, head, body)
    except ApplicationError:
        return REFUSED
    if not events:
        return REFUSED
    limits = gateway.limits
    if digest is None:
        account = limits.address(address_key(scope_address(publish.scope)))
    else:
        account = limits.principal(principal.identity)
    size = bytes_of(events)
    if not limits.request_to_publish(account, descriptor.id, len(events), size):
        return REFUSED
    gateway.totals.fast_path += 1
    publish.principal = principal
    publish.account = account
    publish.rp = descriptor.id
    publish.events = events
    publish.batch = batch
    publish.size = size
    publish.begin()
    gateway.appender.append(descriptor, events, publish.done)
    return ""


def _of_head(head: bytes) -> bytes:
    return hashlib.blake2b(head, digest_size=16).digest()


def _remember(heads: OrderedDict[bytes, _Known], raw: bytes, scope: Any, keep_alive: bool, known: _Known) -> None:
    """Cache the head of the request `raw`, unless no other request will have the same or it must be parsed each time."""
    end = len(raw) - known.length
    if (
        not keep_alive
        or end > HEAD_BYTES_REMEMBERED_MAX
        or raw.find(_END_OF_HEAD) + len(_END_OF_HEAD) != end
        or known.head.attributes is not None
        or not raw.startswith(_POST)
        or any(name in _UNREPEATED for name, _ in scope["headers"])
    ):
        return
    heads[_of_head(raw[:end])] = known
    if len(heads) > HEADS_MAX:
        heads.popitem(last=False)


def _shown(scope: Any) -> Mapping[str, Any]:
    """Return the scope without credentials and client address."""
    headers = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
    kept = {name: scope[name] for name in ("type", "method", "path", "query_string", "scheme", "http_version")}
    return {**kept, "headers": headers}


class _Publish:
    """One publish on its way to the log, and its answer.

    Attributes:
        scope: scope of the request.
        principal, account, rp, events, batch, size: set on admission.
    """

    __slots__ = (
        "_began",
        "_connection",
        "_cycle",
        "_gateway",
        "_request_id",
        "account",
        "batch",
        "events",
        "principal",
        "rp",
        "scope",
        "size",
    )

    principal: Principal
    account: Account
    rp: str
    events: list[Event]
    batch: bool
    size: int

    def __init__(self, gateway: Gateway, connection: ServerConnection, cycle: Any, scope: Any) -> None:
        self._gateway = gateway
        self._connection = connection
        self._cycle = cycle
        self.scope = scope

    def begin(self) -> None:
        """Note the admission: from now on the publish is answered here."""
        self._began = self._gateway.clock()
        self._request_id = http.request_id(self.scope)

    def done(self, outcome: Outcome) -> None:
        """Handle the outcome of the append."""
        if isinstance(outcome, ApplicationError):
            copy_context().run(self._refused, outcome)
            return
        self._answer(201, http.JSON, published_json(self.events, outcome, self.batch))
        records = self._gateway.records
        if records.on:
            records.published_http(self.principal, self.rp, self._began, len(self.events), self.size)

    def _refused(self, error: ApplicationError) -> None:
        """Answer a refusal in a context of its own, as each task of the ordinary path has one."""
        scope = self.scope
        current_origin.set(Origin(scope_address(scope), self._request_id, "api"))
        refused_request(scope, error, "events", scope["path"][_AT:_END], self.principal)
        totals().refuse(error.code)
        headers, content = http.problem(error)
        self._answer(error.status, headers, content)
        records = self._gateway.records
        now = self._gateway.clock()
        who = records.who(self.principal, "http")
        events, size = len(self.events), self.size
        records.note(now, who, "publish", self.rp, error.code, events, size, 0, now - self._began)

    def _answer(self, status: int, headers: bytes, content: bytes) -> None:
        limits = self._gateway.limits
        value = limits.field(self.account, True)
        rates = b"ratelimit-policy: %b\r\nratelimit: %b\r\n" % (limits.policy_field(True), value) if value else b""
        head = b"%bx-request-id: %b\r\n%b" % (headers, self._request_id.encode(), rates)
        self._connection.answer_fast(self._cycle, status, head, content)


class _PublishAgain(_Publish):
    """A publish with a cached head: at its connection it stands for uvicorn's request and response too."""

    __slots__ = ("_known", "disconnected", "keep_alive", "response_complete", "response_started")

    body = b""
    more_body = waiting_for_100_continue = False

    def __init__(self, gateway: Gateway, connection: ServerConnection, known: _Known) -> None:
        self._gateway = gateway
        self._connection = connection
        self._cycle = self
        self._known = known
        self.keep_alive = True
        self.disconnected = self.response_started = self.response_complete = False

    def begin(self) -> None:
        self._began = self._gateway.clock()
        self._request_id = http.new_request_id()
        self._connection.began_again(self)

    @property
    def scope(self) -> Any:
        """Scope as the parser would have made it, without the token."""
        return {**self._known.scope, "client": self._connection.client}

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """Headers that the server adds to every answer at present."""
        return self._connection.server_state.default_headers

    @property
    def message_event(self) -> _Nobody:
        """Event of uvicorn for a lost connection, without waiters."""
        return _NOBODY

    def on_response(self) -> None:
        """Handle the end of the answer."""
        self._connection.answered_again()


class _Nobody:
    """An asyncio.Event without waiters."""

    def set(self) -> None:
        return


_NOBODY = _Nobody()

__all__ = ["declined", "is_publish", "take", "take_again"]
