"""How two domains agree to be peers, and tell each other of new keys: the hello.

    [document, version, stance, at_ms]   ->   [document, version, stance, at_ms]

`document` is the sender's domain document, `stance` how it stands to the receiver (peering/rules/peers.py: Stance), `at_ms` since
when. Both the request and the answer are signed like all others.

The life of a hello: something has changed here, or an hour has passed -> `peers_greet` (a worker, every few seconds) or
whoever made the change (`greet`) sends how things are now -> the other side takes over our document if it follows the one
it trusts, notes our stance, and answers with its own -> we do the same with that. One that is lost is sent again, later
each time; one that comes twice or late changes nothing. A removal is told once (`farewell`); if that is lost, the other
side's next hello is answered with `leaves`.

Anybody may send a hello, so strangers' are few: peering/rules/peers.py bounds how many may wait for approval, refusals.py:
STRANGERS how often one is looked at. What changes something here is written, audited and told on `domain.admin`, so a domain
changes its mind no more often than CHANGES. An honest one that is quicker is told to wait, and its next hello, seconds later,
says how things are then.
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
from django.db.models import F
from django.utils import timezone
from msgspec import Meta
from redis.exceptions import RedisError

from eventing.access.rules.rates import Bucket, Rate, Table
from eventing.conf import config
from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.errors import HeraldError, InvalidRequest, RateLimited, Unauthenticated
from eventing.core.signing import Signed
from eventing.peering.models import Peer
from eventing.peering.models.peer import PROBLEM_CHARS_MAX
from eventing.peering.peer_documents import document_refetch
from eventing.peering.ports import peer_removed
from eventing.peering.rules import domain_documents
from eventing.peering.rules.domain_documents import BadDocument, DomainDocument, is_valid
from eventing.peering.rules.peers import STANCES, Stance, State, heard
from eventing.peering.selectors.domain_documents import domain_document
from eventing.peering.selectors.peers import peers_to_greet
from eventing.peering.services.domain_documents import own_document
from eventing.peering.services.peers import document_read, hello_received, peer_document_followed
from eventing.peering.wire import client
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import HELLO, Sender
from eventing.peering.wire.messages import VERSION, BadMessage, encode
from eventing.peering.wire.refusals import count_stranger

GREET_S = 3600  # a hello an hour renews the peer's lease and finds what was lost
RETRY_S = (2.0, 600.0)  # after a failure: at first, and at most; doubled each time, and up to a quarter more by chance
TIMEOUT_S = 5.0  # for one hello
FAREWELL_S = 3.0  # an administrator waits for it
AT_ONCE = 8  # hellos under way: some peers are slow or gone, and the others must not wait for them
SWEEP_MAX = 100  # hellos of one sweep
AHEAD_MS_MAX = (
    300_000  # how far the other side's clock may be ahead: a stance from the future could never be taken back
)
CHANGES = Rate(per_s=0.2, window_s=25.0)  # hellos of one domain that change something here, in each process: 5 at once
CHANGING_MAX = 2000  # domains whose changes a process counts; more than may be known here
log = logging.getLogger(__name__)


class Hello(msgspec.Struct, array_like=True):
    """What both sides say. See the module."""

    document: Signed
    version: int
    stance: Stance
    at_ms: Annotated[int, Meta(ge=0, le=2**53 - 1)]


_changing = Table(lambda _: Bucket(CHANGES), CHANGING_MAX)
_lock = threading.Lock()
_decode = msgpack_reader(Hello)


# Receiving


def hello(sender: Sender, body: bytes) -> bytes:
    """Answer another domain's hello. `sender` signed the request, with keys that may be its own claim (Sender.trusted).

    Raises HeraldError, RateLimited among them; what is wrong with the message is BadMessage.
    """
    said = _read(body)
    document = document_read(said.document)
    if document.domain != sender.domain:
        raise Unauthenticated("The domain document is of another domain than the request.", reason="wrong")
    _require_clock(said.at_ms)
    row = Peer.objects.filter(name=sender.domain).first()
    if row is None and sender.trusted:  # it is known by what a home says of it; of others it was counted before
        count_stranger()
    newer = row is not None and row.state != State.ASKED and _is_newer(sender, said.document)
    if row is not None and row.fingerprint == document.fingerprint and (newer or _changes(row, said)):
        _within(row, said.stance)
    if newer:
        _follow(sender, said.document)
    row = hello_received(statement=said.document, stance=said.stance, at_ms=said.at_ms)
    return encode(_hello(row))


def _is_newer(sender: Sender, statement: Signed) -> bool:
    """Whether the document of a domain that is known here is to be taken over. Writes nothing: anybody may send one.

    Raises Unauthenticated: it must not be believed, or the request was not signed by a key that is the domain's after it.
    """
    document, held = domain_documents.read(statement), domain_document(sender.domain)
    try:
        newer = held is None or domain_documents.follows(document, held, time.time())
    except BadDocument as error:
        raise Unauthenticated(str(error), reason="document") from None
    _require_key(sender, document if held is None or newer else held)
    return newer


def _follow(sender: Sender, statement: Signed) -> None:
    """Take over the document of a domain that is known here."""
    try:
        held = peer_document_followed(statement, name=sender.domain)
    except BadDocument as error:
        raise Unauthenticated(str(error), reason="document") from None
    _require_key(sender, held)  # another one may have come meanwhile


def _require_key(sender: Sender, held: DomainDocument) -> None:
    """See that the request was signed by a key of the document that is trusted."""
    if sender.kid not in held.jwks or not is_valid(held.jwks[sender.kid], time.time()):
        raise Unauthenticated(f"The key is none that {sender.domain} signs with now.", reason="unknown-key")


def _changes(row: Peer, said: Hello) -> bool:
    """Whether a hello changes how the two domains stand."""
    state = State(row.state)
    return said.at_ms >= row.theirs_at_ms and (said.stance != row.theirs or heard(state, said.stance) is not state)


def _within(row: Peer, stance: Stance) -> None:
    """Count a change that a domain makes by its hello. Raises RateLimited.

    What an administrator here added anew begins anew; who only asks makes its row itself, so its name counts. Who leaves a
    peering says so once, and is always heard: the way back costs as much.
    """
    asks = row.state == State.ASKED
    key = row.name if asks else f"{row.name} {row.created_at.isoformat()}"
    with _lock:
        now = time.monotonic()
        bucket = _changing.get(key, now)
        if bucket.take(1, now):
            return
        if stance is Stance.LEAVES != row.theirs and not asks:
            bucket.charge(1, now, 0.0)
            return
        wait_s = bucket.wait_s(1, now)
    detail = f"{row.name} changes how it stands to {config().domain}, or its keys, too often. Try again."
    raise RateLimited(detail, retry_after_s=math.ceil(wait_s))


# Sending


def greet(name: str, *, timeout_s: float = TIMEOUT_S) -> Peer | None:
    """Tell a peer how we stand to it, and hear how it stands to us. Never raises for what the other side does.

    Returns the peer as it is then; None if there is none any more.
    """
    row = Peer.objects.filter(name=name).first()
    if row is None or row.hello_at is None:
        return row
    own = own_document()
    told = told_of(State(row.state), domain_documents.read(own).serial)
    _begin(row)
    try:
        answer = client.call(row.url, name, HELLO, encode(_hello(row, own)), timeout_s)
        said = _read(answer)
        if document_read(said.document).domain != name:
            raise BadMessage("The answer holds the document of another domain.")
        _require_clock(said.at_ms)
        peer_document_followed(said.document, name=name)
        hello_received(statement=said.document, stance=said.stance, at_ms=said.at_ms)
    except PeerError as error:
        if error.code == "unknown-key":  # it signs with keys that it could not tell us of
            document_refetch(name)
        log.info("The hello to %s did not get through (%s): %s", name, error.kind, error.detail)
        _failed(name, error.detail)
    except (BadMessage, BadDocument, HeraldError) as error:
        log.warning("The answer of %s to a hello is not understood: %s", name, error)
        _failed(name, f"Its answer to a hello is not understood: {error}")
    else:
        _done(name, told)
    return Peer.objects.filter(name=name).first()


def farewell(row: Peer, *, timeout_s: float = FAREWELL_S) -> bool:
    """Tell a domain that was a peer, or asked to be one, that it is none, and drop what Redis notes of it: links, traffic,
    what waits. Once; whether it heard.
    """
    with contextlib.suppress(RedisError):  # it is removed already; what is left is a count
        peer_removed(row.name)
    said = Hello(own_document(), VERSION, Stance.LEAVES, _now_ms())
    try:
        client.call(row.url, row.name, HELLO, encode(said), timeout_s)
    except (PeerError, HeraldError) as error:
        log.info("%s was not told that it is no peer any more: %s", row.name, error)
        return False
    return True


def peers_greet(*, now: datetime | None = None) -> int:
    """Send the hellos that are due, at most SWEEP_MAX, those first that did not fail before. Returns how many."""
    serial = domain_documents.read(own_document()).serial
    expected = {state: told_of(state, serial) for state in State}
    names = peers_to_greet(expected=expected, now=now or timezone.now(), limit=SWEEP_MAX)
    if len(names) <= 1:
        for name in names:
            greet(name)
        return len(names)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="hello") as threads:
        list(threads.map(_greet_on_thread, names))
    return len(names)


def told_of(state: State, serial: int) -> str:
    """What a peer has been told once it answered a hello of ours in this state, with this document."""
    return f"{STANCES[state]}:{serial}"


def _greet_on_thread(name: str) -> None:
    try:
        greet(name)
    except Exception:
        log.exception("The hello to %s failed; it is sent again later.", name)
    finally:
        connection.close()


def _begin(row: Peer) -> None:
    """Count the hello as failed, until its answer is here: whoever dies meanwhile, and whoever else looks, leaves it alone."""
    low, high = RETRY_S
    wait_s = min(high, low * 2 ** min(row.hello_failures, 20)) * random.uniform(1.0, 1.25)  # noqa: S311 - spreads load
    due = timezone.now() + timedelta(seconds=wait_s)
    Peer.objects.filter(pk=row.pk).update(hello_failures=F("hello_failures") + 1, hello_at=due)


def _failed(name: str, problem: str) -> None:
    Peer.objects.filter(name=name).update(hello_problem=problem[:PROBLEM_CHARS_MAX])


def _done(name: str, told: str) -> None:
    due = timezone.now() + timedelta(seconds=GREET_S * random.uniform(0.9, 1.0))  # noqa: S311 - spreads load
    Peer.objects.filter(name=name).update(hello_told=told, hello_failures=0, hello_problem="")
    Peer.objects.filter(name=name, hello_at__isnull=False).update(hello_at=due)


# The message


def _hello(row: Peer | None, own: Signed | None = None) -> Hello:
    """What we say to the domain of this row; to one that there is no row of, that there is no peering."""
    own = own or own_document()
    if row is None:
        return Hello(own, VERSION, Stance.LEAVES, _now_ms())
    return Hello(own, VERSION, STANCES[State(row.state)], int(row.changed_at.timestamp() * 1000))


def _read(body: bytes) -> Hello:
    try:
        return _decode(body)
    except Undecodable as error:
        raise BadMessage(f"The hello is not understood: {error}") from None


def _require_clock(at_ms: int) -> None:
    if at_ms > _now_ms() + AHEAD_MS_MAX:
        raise InvalidRequest("The hello speaks of the future. Compare the clocks of the two domains.")


def _now_ms() -> int:
    return int(time.time() * 1000)
