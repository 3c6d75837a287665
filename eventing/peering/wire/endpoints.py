"""The paths that other domains call, and what every request there goes through, whatever carries it.

The life of a request: its head is looked at, and nothing of the body read, until the signature over it is known to be
of a domain that may call here (`admit`) -> the body comes, its digest is the signed one -> the handler answers -> the
answer is signed, a refusal like any other (`serve`). The one exception is `hello`, which domains call that are not known
here yet: its body begins with the sender's domain document, so it is read, small and in a hurry, before the signature is
checked with the keys that it brings; whether those are to be trusted is for the handler.

All of this is synchronous: gateway/endpoints/federation.py runs it on threads.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from django.utils import timezone
from redis.exceptions import RedisError

from eventing.conf import config
from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.errors import (
    Conflict,
    Forbidden,
    HeraldError,
    InvalidRequest,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from eventing.core.names import DOMAIN_PATTERN
from eventing.core.signing import Signed
from eventing.peering.models import Peer
from eventing.peering.peer_documents import document_refetch
from eventing.peering.rules.domain_documents import BadDocument, DomainDocument, claimed, read, signed_now
from eventing.peering.selectors.domain_documents import domain_document, domain_keys
from eventing.peering.selectors.peers import peer_get
from eventing.peering.selectors.recent_keys import domain_keys_recent, recent_keys_forget, signing_key_recent
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.services.peers import CONTACT_S, asked_statement, peer_contacted
from eventing.peering.wire import contacts, signatures
from eventing.peering.wire import messages as wire
from eventing.peering.wire.nonces import is_first
from eventing.peering.wire.refusals import bad_request_note, count_request, count_stranger
from eventing.peering.wire.signatures import BadSignature

PREFIX = "/federation/v1/"
HELLO = f"{PREFIX}hello"
PROBE = f"{PREFIX}probe"
HELLO_BYTES_MAX = 64 * 1024  # a document with 32 keys takes 10 KiB
REFETCHED_S = 2  # after which a sender with a key that we did not know may try again
PROBLEM_TYPE = "application/problem+json"
log = logging.getLogger(__name__)


class Sender(NamedTuple):
    """Who sent a request: the signature was good, by the key `kid` of the domain.

    Attributes:
        peer: what we hold of it as a peer; None if it is none. Of an active peer everywhere but at `hello`.
        trusted: the key is one that we trust for that domain. False at `hello` only: the keys came with the request,
            and anybody can make such in any name.
        document: the domain document that came with a `hello` and that the request was verified with; else None.
    """

    domain: str
    kid: str
    peer: Peer | None
    trusted: bool = True
    document: Signed | None = None


Handler = Callable[[Sender, bytes], bytes]


def probe(sender: Sender, body: bytes) -> bytes:
    """Answer that we are here and take this domain's requests: the newest version of the wire that we speak."""
    return wire.encode([wire.VERSION])


HANDLERS: dict[str, Handler] = {PROBE: probe}
"""What is called at each path; the composition root enters those of the subjects (`handle`). A handler gets who sent the
request, and its body; it returns the body of the answer, or raises a HeraldError, which the sender gets as a signed problem
document. It runs on a thread with a database connection."""


def handle(name: str, handler: Handler) -> None:
    """Have requests at PREFIX + `name` answered by `handler`."""
    HANDLERS[PREFIX + name] = handler


OPEN = frozenset({HELLO})
"""The paths that domains may call that are not active peers."""


class _Introduction(msgspec.Struct, array_like=True):
    """How the body of a hello begins; what follows in the array is the handler's."""

    document: Signed


_introduction = msgpack_reader(_Introduction)


@dataclass(slots=True)
class Admitted:
    """A request that may go on; `sender` is None for a hello whose keys are in its body."""

    request: signatures.Request
    path: str
    sender: Sender | None

    @property
    def body_bytes_max(self) -> int:
        """How long its body may be."""
        return HELLO_BYTES_MAX if self.path in OPEN else wire.BODY_BYTES_MAX


@dataclass(slots=True)
class Answer:
    """What is sent back; `reason` is the code of the problem, empty for none."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    reason: str = ""


def request_read(method: str, path: str, fields: signatures.Fields) -> signatures.Request:
    """The head of a request that came at `path`, as it was asked for. Raises InvalidRequest."""
    try:
        headers = signatures.fields_read(fields)
    except BadSignature as error:
        raise InvalidRequest(error.detail) from None
    scheme = config().base_url.partition(":")[0]  # decides only whether :80 or :443 is left out of the authority
    return signatures.Request(method, f"{scheme}://{headers.get('host', '')}{path}", headers)


def admit(request: signatures.Request, path: str) -> Admitted:
    """Look at the head of a request: who sent it, and may it go on? Raises HeraldError."""
    if path not in HANDLERS:
        raise NotFound("Domains call nothing at this path.")
    if request.headers.get("content-type") != signatures.CONTENT_TYPE:
        raise InvalidRequest(f"Domains send each other {signatures.CONTENT_TYPE}.")
    domain = request.headers.get(signatures.FROM, "")
    if not DOMAIN_PATTERN.fullmatch(domain):
        raise Unauthenticated(f"The field {signatures.FROM} names no domain.", reason="malformed")
    if domain == config().domain:
        raise Unauthenticated("A domain does not call itself.", reason="wrong")
    peer = peer_get(domain)
    active = peer is not None and peer.active
    if path in OPEN and not active:
        return Admitted(request, path, None)
    try:
        proof = _verified_by(request, domain)
    except BadSignature as error:
        if path in OPEN and error.code == "unknown-key":  # it may bring its new key along
            return Admitted(request, path, None)
        if error.code == "unknown-key" and active and document_refetch(domain) is not None:
            detail = f"The key is new to us; the document of {domain} is being fetched. Try again."
            raise Unavailable(detail, retry_after_s=REFETCHED_S, reason=error.code) from None
        bad_request_note(error, domain, known=bool(domain_keys(domain)))
        raise _unauthenticated(error) from None
    if peer is None or not peer.active:
        raise Forbidden(f"{config().domain} does not exchange anything with {domain}: it is no active peer.")
    count_request(peer)
    _once(domain, proof)
    _contacted(peer)
    return Admitted(request, path, Sender(domain, proof.kid, peer))


def serve(admitted: Admitted, body: bytes) -> bytes:
    """Give an admitted request, whose body is here, to its handler. Returns the body of the answer. Raises HeraldError."""
    sender = admitted.sender
    try:
        if sender is None:
            sender = _introduced(admitted.request, body)
        signatures.body_checked(admitted.request, body)
    except BadSignature as error:
        known = sender is not None and sender.trusted
        bad_request_note(error, admitted.request.headers[signatures.FROM], known=known)
        raise _unauthenticated(error) from None
    try:
        return HANDLERS[admitted.path](sender, body)
    except wire.BadMessage as error:
        misbehaviour_note("malformed", carrier=sender.domain if sender.trusted else "", detail=str(error))
        raise InvalidRequest(str(error)) from None


def answered(request: signatures.Request, body: bytes) -> Answer:
    """The signed answer to a request that went well."""
    return _signed(request, 200, body, signatures.CONTENT_TYPE, None)


def refused(request: signatures.Request, error: HeraldError) -> Answer:
    """The signed problem document. It says nothing that its asker could not know; to unsigned requests it is not signed."""
    body = msgspec.json.encode(error.document())
    answer = _signed(request, error.status, body, PROBLEM_TYPE, error.retry_after_s)
    answer.reason = error.code
    return answer


def _verified(request: signatures.Request, jwks: signatures.Jwks) -> signatures.Proof:
    return signatures.request_verified(request, destination=config().domain, jwks=jwks, now=time.time())


def _verified_by(request: signatures.Request, domain: str) -> signatures.Proof:
    """The same by the domain's keys; those that this process knows may be a moment old."""
    try:
        return _verified(request, domain_keys_recent(domain))
    except BadSignature as error:
        if error.code not in ("unknown-key", "key-window"):
            raise
        recent_keys_forget()  # what the request brings may be signed with it, too
        return _verified(request, domain_keys_recent(domain))


def _introduced(request: signatures.Request, body: bytes) -> Sender:
    """Who sent a hello, by the domain document in it. Raises BadSignature, HeraldError."""
    try:
        statement = _introduction(body).document
        name, serial, _ = claimed(statement)
    except Undecodable:
        raise InvalidRequest("A hello is an array that begins with the sender's domain document.") from None
    except BadDocument as error:
        raise InvalidRequest(str(error)) from None
    domain = request.headers[signatures.FROM]
    if name != domain:
        raise BadSignature("wrong", "The domain document is of another domain than the request.")
    trusted = domain_keys(domain)
    try:
        proof = _verified(request, trusted)
    except BadSignature as error:
        if error.code not in ("unknown-key", "key-window"):
            raise
        if not _expected(domain, statement, serial):
            count_stranger()  # before the signatures of the document are looked at
        proof = _verified(request, _document(statement).jwks)
        trusted = {}
    peer = peer_get(domain)
    if trusted and peer is not None:  # suspended, or yet to approve us: as an active one was in `admit`
        count_request(peer)
    _once(domain, proof, trusted=bool(trusted))
    return Sender(domain, proof.kid, peer, trusted=bool(trusted), document=statement)


def _expected(domain: str, statement: Signed, serial: int) -> bool:
    """Whether a document is not a stranger's: the next one of a domain that is known, or the one that it asked with."""
    held = domain_document(domain)
    if held is not None:
        return serial > held.serial and signed_now(statement, held.jwks, time.time())
    row = Peer.objects.filter(name=domain).first()
    return row is not None and row.asked_document is not None and asked_statement(row) == statement


def _document(statement: Signed) -> DomainDocument:
    try:
        return read(statement)
    except BadDocument as error:
        raise InvalidRequest(str(error)) from None


def _once(domain: str, proof: signatures.Proof, *, trusted: bool = True) -> None:
    """Take a request's nonce. Raises Conflict, Unavailable. It is held against the domain where its key is trusted (Sender)."""
    try:
        if is_first(domain, proof.nonce):
            return
    except RedisError:
        raise Unavailable("Replays cannot be told from requests right now. Try again.", retry_after_s=2) from None
    if trusted:
        misbehaviour_note("replayed", carrier=domain, detail="A request was made a second time.")
    raise Conflict("A request with this nonce was taken before. Sign it anew.", reason="replay")


def _contacted(peer: Peer) -> None:
    """Note the request, and renew the peer's lease, which is a write: not with each request. `peer` is as it was a moment ago."""
    contacts.contacted(peer.name, "request")
    if peer.heard_at is None or (timezone.now() - peer.heard_at).total_seconds() > CONTACT_S:
        peer_contacted(peer.name)


def _unauthenticated(error: BadSignature) -> Unauthenticated:
    return Unauthenticated(error.detail, reason=error.code)


def _signed(
    request: signatures.Request, status: int, body: bytes, content_type: str, retry_after_s: int | None
) -> Answer:
    key = signing_key_recent() if "signature" in request.headers else None
    if key is not None:
        with suppress(BadSignature):
            answer = signatures.answer_signed(
                request,
                status,
                body,
                content_type=content_type,
                retry_after_s=retry_after_s,
                key=key,
                origin=config().domain,
                nonce=secrets.token_urlsafe(18),
                now=time.time(),
            )
            return Answer(status, answer.headers, body)
    headers = {"content-type": content_type}
    if retry_after_s is not None:
        headers[signatures.RETRY_AFTER] = str(retry_after_s)
    return Answer(status, headers, body)
