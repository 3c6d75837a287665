"""Requests of other domains at /federation/v1/: brought from the event loop to threads, and their signed answers back.

A stranger cannot make us read a body or take a thread from a peer: the head's signature comes first, and those who have
none yet (`hello`) have few places and a thread of their own, small bodies and little time. A peer has PEER_PLACES requests
here at once, of which PEER_THREADS are worked on: one peer alone, whatever it sends, leaves threads to the others.
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
from eventing.core.errors import HeraldError, InvalidRequest, MethodNotAllowed, TooLarge, Unavailable
from eventing.core.principals import Principal
from eventing.gateway import http
from eventing.gateway.answers import Answers
from eventing.gateway.gateway import Gateway
from eventing.gateway.recording import DISCONNECTED, access
from eventing.peering.wire import endpoints
from eventing.peering.wire.endpoints import Admitted, Answer
from eventing.peering.wire.refusals import oversize_note
from eventing.peering.wire.signatures import Request
from eventing.sql.threads import in_database
from eventing.telemetry import metrics

THREADS = 4  # of one gateway process for handlers of peers' requests; one more for those of strangers
PEER_THREADS = (
    2  # at work for one peer, its others wait in their order; forwarding needs one, what waits for others one
)
PLACES = 32  # admitted requests here at once, of at most wire.BODY_BYTES_MAX each; beyond it 503
PEER_PLACES = 4  # of one peer; forwarding needs one, the rest is for hellos, joins and probes
STRANGER_PLACES = 4  # hellos of domains whose keys are in the body
STRANGER_BODY_S = 5.0  # within which that body, at most 64 KiB, must be here
HEAD_PLACES = 64  # requests whose heads wait to be looked at, each 16 KiB; beyond it 503
REFUSED_BODY_S = 5.0  # for the body of a refused request to pass by: some clients read no answer before
RETRY_S = 2  # what those are told who find no place

P = ParamSpec("P")
R = TypeVar("R")
log = logging.getLogger(__name__)
_heads = ThreadPoolExecutor(1, thread_name_prefix="federation-heads")
_handlers = ThreadPoolExecutor(THREADS, thread_name_prefix="federation")
_strangers = ThreadPoolExecutor(1, thread_name_prefix="federation-strangers")


class _Places:
    """How many requests of a kind are here, who finds no place is told to come later; and whose turn it is of a kind."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        self._turns: dict[str, asyncio.Semaphore] = {}

    def turn(self, kind: str) -> asyncio.Semaphore:
        """What a request that has a place of this kind holds while it is at work: PEER_THREADS do, the others wait."""
        return self._turns.setdefault(kind, asyncio.Semaphore(PEER_THREADS))

    @contextmanager
    def place(self, kind: str, most: int) -> Iterator[None]:
        """Take a place for the time of the block. Raises Unavailable."""
        taken = self._taken.get(kind, 0)
        if taken >= most:
            raise Unavailable("Too many requests of domains are here at once. Try again.", retry_after_s=RETRY_S)
        self._taken[kind] = taken + 1
        try:
            yield
        finally:
            self._taken[kind] -= 1
            if not self._taken[kind]:
                del self._taken[kind]
                self._turns.pop(kind, None)


_places = _Places()


async def federation(gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
    """Serve one request of another domain."""
    records = gateway.records
    path = scope["path"]
    known = path in endpoints.HANDLERS
    record = records.begin(scope, f"federation.{path.rpartition('/')[2]}" if known else "unknown", "domain")
    reason = ""
    send = Answers(gateway, scope, send)
    try:
        answer = await _answer(gateway, scope, receive)
        record.bytes_out = len(answer.body)
        reason = answer.reason
        await http.answer(send, answer.status, answer.body, _fields(answer))
    except HeraldError as error:  # too early, or too much going on, to sign it
        reason = error.code
        await http.answer_problem(send, error, close=True)
    except http.Disconnected:
        reason = DISCONNECTED
    finally:
        records.end(record, reason)
        if record.principal is not None:  # whoever is not known to be a domain gets no label
            metrics.PEER_REQUESTS.labels(metrics.peer_label(record.principal.issuer), reason or "ok").inc()


async def _answer(gateway: Gateway, scope: http.Scope, receive: http.Receive) -> Answer:
    if scope["method"] != "POST":
        raise MethodNotAllowed("Domains call each other by POST.", allow=["POST"])
    if scope["query_string"]:
        raise InvalidRequest("Domains call each other without a query: it would not be signed.")
    gateway.limits.request(gateway.limits.address(address_key(scope_address(scope))))
    fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    request = endpoints.request_read("POST", scope["raw_path"].decode("latin-1"), fields)
    with _places.place("heads", HEAD_PLACES):
        found = await _on(_heads, _head, request, scope["path"])
    if isinstance(found, Answer):
        await _pass_by(receive)
        return found
    try:
        return await _admitted(gateway, scope, receive, found)
    except HeraldError as error:
        with _places.place("heads", HEAD_PLACES):
            return await _on(_heads, endpoints.refused, request, error)


async def _admitted(gateway: Gateway, scope: http.Scope, receive: http.Receive, admitted: Admitted) -> Answer:
    """Take the body of a request that may go on, and have it answered."""
    sender = admitted.sender
    if sender is not None:
        access(scope).principal = Principal(sender.domain, sender.domain, False, math.inf, {}, local=False)
    kind, most = ("strangers", STRANGER_PLACES) if sender is None else (f"peer:{sender.domain}", PEER_PLACES)
    patience_s = STRANGER_BODY_S if sender is None else gateway.config.request_timeout_s
    with _places.place(kind, most), _places.place("admitted", PLACES):
        try:
            body = await http.body(scope, receive, admitted.body_bytes_max, patience_s)
        except TooLarge as error:
            if sender is not None:
                await _on(_heads, oversize_note, sender.domain, error)
            raise
        access(scope).bytes_in = len(body)
        if sender is None:
            return await _on(_strangers, _handled, admitted, body)
        async with _places.turn(kind):
            return await _on(_handlers, _handled, admitted, body)


def _head(request: Request, path: str) -> Admitted | Answer:
    try:
        return endpoints.admit(request, path)
    except HeraldError as error:
        return endpoints.refused(request, error)


def _handled(admitted: Admitted, body: bytes) -> Answer:
    try:
        return endpoints.answered(admitted.request, endpoints.serve(admitted, body))
    except HeraldError as error:
        return endpoints.refused(admitted.request, error)
    except Exception:  # nothing of a handler goes further than this
        log.exception("A request of another domain at %s failed", admitted.path)
        failed = Unavailable("Something went wrong here. Try again later.", retry_after_s=RETRY_S)
        return endpoints.refused(admitted.request, failed)


async def _pass_by(receive: http.Receive) -> None:
    """Let the body of a refused request go by, unkept: a connection that is cut under it may take the answer with it."""
    try:
        async with asyncio.timeout(REFUSED_BODY_S):
            while (message := await receive())["type"] == "http.request" and message.get("more_body"):
                pass
    except TimeoutError:
        return


def _on(threads: ThreadPoolExecutor, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
    return in_database(work, threads=threads)(*args, **kwargs)


def _fields(answer: Answer) -> http.Headers:
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in answer.headers.items()]
