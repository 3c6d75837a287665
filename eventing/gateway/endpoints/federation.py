"""Requests of other domains at /federation/v1/: passed from the event loop to threads, and their signed answers back.

A stranger cannot make this domain read a body or take a thread from a peer: the head's signature is verified first, and
domains without one yet (`hello`) have few places and a thread of their own, small bodies and little time. A peer has
PEER_PLACES concurrent requests here, of which PEER_THREADS are worked on: one peer alone, whatever it sends, leaves
threads to the others.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from eventing.client_address import scope_address
from eventing.core.client_address import address_key
from eventing.core.container import per_process
from eventing.core.errors import ApplicationError, InvalidRequest, MethodNotAllowed, TooLarge, Unavailable
from eventing.core.principals import Principal
from eventing.gateway import http
from eventing.gateway.answers import AnswerSender
from eventing.gateway.gateway import Gateway
from eventing.gateway.recording import DISCONNECTED, access
from eventing.peering.wire import endpoints
from eventing.peering.wire.endpoints import Admitted, EndpointAnswer
from eventing.peering.wire.refusals import oversize_note
from eventing.peering.wire.signatures import SignedRequest
from eventing.sql.threads import in_database
from eventing.telemetry import metrics

# One more thread serves requests of strangers.
THREADS = 4  # bound: concurrent requests of peers at a gateway, and one of strangers; further requests wait
# bound: concurrent requests of one peer; its other requests wait in order
PEER_THREADS = (
    2  # at work for one peer, its others wait in order; forwarding needs one, requests that wait for others one
)
# At most wire.BODY_BYTES_MAX each.
PLACES = 32  # bound: requests of peers at a gateway, running or waiting; 503
# Forwarding needs one, the others are for hellos, joins and probes.
PEER_PLACES = 4  # bound: requests of one peer, running or waiting; 503
# PEER_THREADS of them at work.
OVERLAY_PLACES = 16  # bound: overlay requests of domains that are no peers, running or waiting; 503
# Their keys are in the body.
STRANGER_PLACES = 4  # bound: hellos of strangers, running or waiting; 503
# At most 64 KiB.
STRANGER_BODY_S = 5.0  # bound: seconds for the body of a stranger's hello; the request is discarded
# 16 KiB each.
HEAD_PLACES = 64  # bound: request heads that wait for a check of their signature; 503
REFUSED_BODY_S = 5.0  # seconds for discarding the body of a refused request: some clients read no answer before its end
RETRY_S = 2  # Retry-After of requests without a place

P = ParamSpec("P")
R = TypeVar("R")
log = logging.getLogger(__name__)


class _Places:
    """Places of each kind of request, where a request without a place is refused for later; and the order of work within a kind."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        self._turns: dict[str, asyncio.Semaphore] = {}

    def turn(self, kind: str) -> asyncio.Semaphore:
        """Return the semaphore that a request with a place of this kind holds while it is at work: PEER_THREADS at a time."""
        return self._turns.setdefault(kind, asyncio.Semaphore(PEER_THREADS))

    @contextmanager
    def place(self, kind: str, most: int) -> Iterator[None]:
        """Take a place for the duration of the block. Raises Unavailable."""
        taken = self._taken.get(kind, 0)
        if taken >= most:
            raise Unavailable("Too many concurrent requests of domains. Try again.", retry_after_s=RETRY_S)
        self._taken[kind] = taken + 1
        try:
            yield
        finally:
            self._taken[kind] -= 1
            if not self._taken[kind]:
                del self._taken[kind]
                self._turns.pop(kind, None)


class _Work:
    """The threads and places of this process for requests of domains."""

    def __init__(self) -> None:
        self.heads = ThreadPoolExecutor(1, thread_name_prefix="federation-heads")
        self.handlers = ThreadPoolExecutor(THREADS, thread_name_prefix="federation")
        self.strangers = ThreadPoolExecutor(1, thread_name_prefix="federation-strangers")
        self.places = _Places()


_work = per_process(_Work)


async def federation(gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
    """Serve one request of another domain."""
    records = gateway.records
    path = scope["path"]
    known = path in endpoints.HANDLERS
    record = records.begin(scope, f"federation.{path.rpartition('/')[2]}" if known else "unknown", "domain")
    reason = ""
    send = AnswerSender(gateway, scope, send)
    try:
        answer = await _answer(gateway, scope, receive)
        record.bytes_out = len(answer.body)
        reason = answer.reason
        await http.answer(send, answer.status, answer.body, _fields(answer))
    except ApplicationError as error:  # refused too early, or under too much load, for a signature
        reason = error.code
        await http.answer_problem(send, error, close=True)
    except http.ClientDisconnected:
        reason = DISCONNECTED
    finally:
        records.end(record, reason)
        if record.principal is not None:  # an unauthenticated requester gets no label
            metrics.PEER_REQUESTS.labels(metrics.peer_label(record.principal.issuer), reason or "ok").inc()


async def _answer(gateway: Gateway, scope: http.Scope, receive: http.Receive) -> EndpointAnswer:
    if scope["method"] != "POST":
        raise MethodNotAllowed("Requests between domains use POST.", allow=["POST"])
    if scope["query_string"]:
        raise InvalidRequest("Requests between domains have no query, which would not be signed.")
    gateway.limits.request(gateway.limits.address(address_key(scope_address(scope))))
    fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    request = endpoints.request_read("POST", scope["raw_path"].decode("latin-1"), fields)
    with _work().places.place("heads", HEAD_PLACES):
        found = await _on(_work().heads, _head, request, scope["path"])
    if isinstance(found, EndpointAnswer):
        await _pass_by(receive)
        return found
    try:
        return await _admitted(gateway, scope, receive, found)
    except ApplicationError as error:
        with _work().places.place("heads", HEAD_PLACES):
            return await _on(_work().heads, endpoints.refused, request, error)


async def _admitted(gateway: Gateway, scope: http.Scope, receive: http.Receive, admitted: Admitted) -> EndpointAnswer:
    """Read the body of an admitted request, and have it answered."""
    sender = admitted.sender
    if sender is not None:
        access(scope).principal = Principal(sender.domain, sender.domain, False, math.inf, {}, local=False)
    kind, most = _places_of(admitted)
    patience_s = gateway.config.request_timeout_s if kind.startswith("peer:") else STRANGER_BODY_S
    with _work().places.place(kind, most), _work().places.place("admitted", PLACES):
        try:
            body = await http.body(scope, receive, admitted.body_bytes_max, patience_s)
        except TooLarge as error:
            if sender is not None:
                await _on(_work().heads, oversize_note, sender.domain, error)
            raise
        access(scope).bytes_in = len(body)
        if sender is None:
            return await _on(_work().strangers, _handled, admitted, body)
        async with _work().places.turn(kind):
            return await _on(_work().handlers, _handled, admitted, body)


def _places_of(admitted: Admitted) -> tuple[str, int]:
    """Return the kind of place that a request takes, and how many of them there are."""
    sender = admitted.sender
    if sender is None:
        return "strangers", STRANGER_PLACES
    if sender.peer is None and admitted.path == endpoints.OVERLAY:
        return "overlay", OVERLAY_PLACES
    return f"peer:{sender.domain}", PEER_PLACES


def _head(request: SignedRequest, path: str) -> Admitted | EndpointAnswer:
    try:
        return endpoints.admit(request, path)
    except ApplicationError as error:
        return endpoints.refused(request, error)


def _handled(admitted: Admitted, body: bytes) -> EndpointAnswer:
    try:
        return endpoints.answered(admitted.request, endpoints.serve(admitted, body))
    except ApplicationError as error:
        return endpoints.refused(admitted.request, error)
    except Exception:  # no failure of a handler propagates further
        log.exception("A request of another domain at %s failed", admitted.path)
        failed = Unavailable("The request failed because of an internal fault. Try again later.", retry_after_s=RETRY_S)
        return endpoints.refused(admitted.request, failed)


async def _pass_by(receive: http.Receive) -> None:
    """Discard the body of a refused request: closing the connection earlier might lose the answer."""
    try:
        async with asyncio.timeout(REFUSED_BODY_S):
            while (message := await receive())["type"] == "http.request" and message.get("more_body"):
                pass
    except TimeoutError:
        return


def _on(threads: ThreadPoolExecutor, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
    return in_database(work, threads=threads)(*args, **kwargs)


def _fields(answer: EndpointAnswer) -> http.Headers:
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in answer.headers.items()]
