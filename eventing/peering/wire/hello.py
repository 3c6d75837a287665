"""The hello: agreement of two domains to be peers, and announcement of new keys.

    [document, version, stance, at_ms]   ->   [document, version, stance, at_ms]

`document` is the sender's domain document, `stance` its stance towards the receiver (peering/rules/peers.py: Stance),
`at_ms` the start of that stance. Both the request and the answer are signed like all others.

The life of a hello: something has changed here, or an hour has passed -> `peers_greet` (a worker, every few seconds) or
the changing process (`greet`) sends the present state -> the other side accepts our document if it follows the one it
trusts, records our stance, and answers with its own -> this side does the same with the answer. A lost hello is sent
again, with back-off; a repeated or late one changes nothing. A removal is sent once (`farewell`); if it is lost, the
other side's next hello is answered with `leaves`.

Anybody may send a hello, so strangers' hellos are bounded: peering/rules/peers.py bounds how many may wait for
approval, refusals.py: STRANGERS how often one is processed. A change is written, audited and reported on
`domain.admin`, so CHANGES bounds how often a domain changes its stance. An honest domain beyond that rate is asked to
wait, and its next hello, seconds later, carries the state of that time.
"""

from __future__ import annotations

import contextlib
import logging
import math
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from django.db import connection
from django.utils import timezone
from msgspec import Meta

from eventing.access.rules.rates import Bucket, Rate, Table
from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.errors import ApplicationError, InvalidRequest, RateLimited, Unauthenticated
from eventing.core.signing import Signed
from eventing.peering.models import Peer
from eventing.peering.peer_documents import document_refetch
from eventing.peering.ports import peer_removed
from eventing.peering.rules import domain_documents
from eventing.peering.rules.domain_documents import BadDocument, VerifiedDomainDocument, is_valid
from eventing.peering.rules.peers import STANCES, PeeringState, Stance, on_hello
from eventing.peering.selectors.domain_documents import domain_document
from eventing.peering.selectors.peers import peer_found, peers_to_greet
from eventing.peering.services.domain_documents import own_document
from eventing.peering.services.hellos import hello_begun, hello_done, hello_failed
from eventing.peering.services.peers import document_read, hello_received, peer_document_followed
from eventing.peering.wire import client
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import HELLO, Sender
from eventing.peering.wire.messages import VERSION, BadMessage, encode
from eventing.peering.wire.refusals import count_stranger
from eventing.store.errors import RedisError

GREET_S = 3600  # a hello an hour renews the peer's lease and repairs lost ones
RETRY_S = (2.0, 600.0)  # after a failure: at first, and at most; doubled each time, and up to a quarter more by chance
TIMEOUT_S = 5.0  # for one hello
FAREWELL_S = 3.0  # an administrator waits for it
AT_ONCE = 8  # concurrent hellos: the others must not wait for peers that are slow or down
SWEEP_MAX = 100  # hellos of one sweep
AHEAD_MS_MAX = 300_000  # how far the other side's clock may be ahead: a stance from the future could never be replaced
# bound: hellos of one domain that change its state: 0.2 per second, 5 at once; 429; a hello that ends the peering is always accepted
# In each process.
CHANGES = Rate(per_s=0.2, window_s=25.0)
# bound: domains whose changes a process counts; newcomers share one rate until a domain is discarded
CHANGING_MAX = 2000
log = logging.getLogger(__name__)


class Hello(msgspec.Struct, array_like=True):
    """Content of a hello, in both directions; see the module."""

    document: Signed
    version: int
    stance: Stance
    at_ms: Annotated[int, Meta(ge=0, le=2**53 - 1)]


_decode = msgpack_reader(Hello)


class _Changes:
    """Number of changes of each domain's stance towards this one, guarded by `lock`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.of = Table(lambda _: Bucket(CHANGES), CHANGING_MAX)


_changes_counted = per_process(_Changes)


# Receiving


def hello(sender: Sender, body: bytes) -> bytes:
    """Answer another domain's hello. `sender` signed the request, perhaps with keys that only its document claims
    (Sender.trusted).

    Raises ApplicationError, RateLimited among them; BadMessage for an invalid message.
    """
    said = _read(body)
    document = document_read(said.document)
    if document.domain != sender.domain:
        raise Unauthenticated("The domain document is of another domain than the request.", reason="wrong")
    _require_clock(said.at_ms)
    row = peer_found(sender.domain)
    if row is None and sender.trusted:  # known only through a home's statement; others were counted before
        count_stranger()
    newer = row is not None and row.state != PeeringState.ASKED and _is_newer(sender, said.document)
    if row is not None and row.fingerprint == document.fingerprint and (newer or _changes(row, said)):
        _within(row, said.stance)
    if newer:
        _follow(sender, said.document)
    row = hello_received(statement=said.document, stance=said.stance, at_ms=said.at_ms)
    return encode(_hello(row))


def _is_newer(sender: Sender, statement: Signed) -> bool:
    """Return whether a known domain's document is to be accepted. Writes nothing: anybody may send one.

    Raises Unauthenticated: the document must not be trusted, or the request was not signed by one of its keys.
    """
    document, held = domain_documents.read(statement), domain_document(sender.domain)
    try:
        newer = held is None or domain_documents.follows(document, held, time.time())
    except BadDocument as error:
        raise Unauthenticated(str(error), reason="document") from None
    _require_key(sender, document if held is None or newer else held)
    return newer


def _follow(sender: Sender, statement: Signed) -> None:
    """Accept the document of a known domain."""
    try:
        held = peer_document_followed(statement, name=sender.domain)
    except BadDocument as error:
        raise Unauthenticated(str(error), reason="document") from None
    _require_key(sender, held)  # another one may have arrived meanwhile


def _require_key(sender: Sender, held: VerifiedDomainDocument) -> None:
    """Raise Unauthenticated unless a key of the trusted document signed the request."""
    if sender.kid not in held.jwks or not is_valid(held.jwks[sender.kid], time.time()):
        raise Unauthenticated(f"The key is not a present signing key of {sender.domain}.", reason="unknown-key")


def _changes(row: Peer, said: Hello) -> bool:
    """Return whether a hello changes the peering."""
    state = PeeringState(row.state)
    return said.at_ms >= row.theirs_at_ms and (said.stance != row.theirs or on_hello(state, said.stance) is not state)


def _within(row: Peer, stance: Stance) -> None:
    """Count a change that a domain makes by its hello. Raises RateLimited.

    A domain added anew by an administrator here starts with a full rate; one that only asks makes its row itself, so it
    is counted by name. Leaving a peering is always accepted: it happens once, and the way back is limited.
    """
    asks = row.state == PeeringState.ASKED
    key = row.name if asks else f"{row.name} {row.created_at.isoformat()}"
    changes = _changes_counted()
    with changes.lock:
        now = time.monotonic()
        bucket = changes.of.get(key, now)
        if bucket.take(1, now):
            return
        if stance is Stance.LEAVES != row.theirs and not asks:
            bucket.charge(1, now, 0.0)
            return
        wait_s = bucket.wait_s(1, now)
    detail = f"{row.name} changes its stance towards {config().domain}, or its keys, too often. Try again."
    raise RateLimited(detail, retry_after_s=math.ceil(wait_s))


# Sending


def greet(name: str, *, timeout_s: float = TIMEOUT_S) -> Peer | None:
    """Send this domain's stance to a peer, and apply the stance in the answer. Never raises for failures of the other
    side.

    Returns the peer afterwards; None if it was removed.
    """
    row = peer_found(name)
    if row is None or row.hello_at is None:
        return row
    own = own_document()
    told = stance_sent(PeeringState(row.state), domain_documents.read(own).serial)
    _begin(row)
    try:
        answer = client.call(row.url, name, HELLO, encode(_hello(row, own)), timeout_s)
        said = _read(answer)
        if document_read(said.document).domain != name:
            raise BadMessage("The answer contains the document of another domain.")
        _require_clock(said.at_ms)
        peer_document_followed(said.document, name=name)
        hello_received(statement=said.document, stance=said.stance, at_ms=said.at_ms)
    except PeerError as error:
        if error.code == "unknown-key":  # it signs with keys that it could not announce
            document_refetch(name)
        log.info("The hello to %s failed (%s): %s", name, error.kind, error.detail)
        hello_failed(name, error.detail)
    except (BadMessage, BadDocument, ApplicationError) as error:
        log.warning("The answer of %s to a hello is not understood: %s", name, error)
        hello_failed(name, f"Its answer to a hello is not understood: {error}")
    else:
        _done(name, told)
    return peer_found(name)


def farewell(row: Peer, *, timeout_s: float = FAREWELL_S) -> bool:
    """Notify a former peer, or a domain that asked, that it is none, and delete its state in Redis: links, traffic,
    backlog. Sent once; returns whether it was acknowledged.
    """
    with contextlib.suppress(RedisError):  # it is removed already; only counts remain
        peer_removed(row.name)
    said = Hello(own_document(), VERSION, Stance.LEAVES, _now_ms())
    try:
        client.call(row.url, row.name, HELLO, encode(said), timeout_s)
    except (PeerError, ApplicationError) as error:
        log.info("%s could not be notified that it is no longer a peer: %s", row.name, error)
        return False
    return True


def peers_greet(*, now: datetime | None = None) -> int:
    """Send the hellos that are due, at most SWEEP_MAX, those without earlier failures first. Returns how many."""
    try:
        serial = domain_documents.read(own_document()).serial
    except BadDocument:  # an address without TLS, which no peer takes: the start and doctor say so (portal/security.py)
        return 0
    expected = {state: stance_sent(state, serial) for state in PeeringState}
    names = peers_to_greet(expected=expected, now=now or timezone.now(), limit=SWEEP_MAX)
    if len(names) <= 1:
        for name in names:
            greet(name)
        return len(names)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="hello") as threads:
        list(threads.map(_greet_on_thread, names))
    return len(names)


def stance_sent(state: PeeringState, serial: int) -> str:
    """Return the value of `hello_told` after an acknowledged hello in this state with this document."""
    return f"{STANCES[state]}:{serial}"


def _greet_on_thread(name: str) -> None:
    try:
        greet(name)
    except Exception:
        log.exception("The hello to %s failed; it is sent again later.", name)
    finally:
        connection.close()


def _begin(row: Peer) -> None:
    """Count the hello as failed until its answer arrives, so that no other process sends it, also if this one dies."""
    low, high = RETRY_S
    wait_s = min(high, low * 2 ** min(row.hello_failures, 20)) * random.uniform(1.0, 1.25)  # noqa: S311 - spreads load
    hello_begun(row.name, again_at=timezone.now() + timedelta(seconds=wait_s))


def _done(name: str, told: str) -> None:
    due = timezone.now() + timedelta(seconds=GREET_S * random.uniform(0.9, 1.0))  # noqa: S311 - spreads load
    hello_done(name, told, again_at=due)


# The message


def _hello(row: Peer | None, own: Signed | None = None) -> Hello:
    """Return the hello for the domain of this row; without a row, one that states that there is no peering."""
    own = own or own_document()
    if row is None:
        return Hello(own, VERSION, Stance.LEAVES, _now_ms())
    return Hello(own, VERSION, STANCES[PeeringState(row.state)], int(row.changed_at.timestamp() * 1000))


def _read(body: bytes) -> Hello:
    try:
        return _decode(body)
    except Undecodable as error:
        raise BadMessage(f"The hello is not understood: {error}") from None


def _require_clock(at_ms: int) -> None:
    if at_ms > _now_ms() + AHEAD_MS_MAX:
        raise InvalidRequest("The stance in the hello begins in the future. Compare the clocks of the two domains.")


def _now_ms() -> int:
    return int(time.time() * 1000)
