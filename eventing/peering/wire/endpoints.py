"""The endpoints for other domains, and the checks that every request there passes, whatever transports it.

The life of a request: its head is read, and nothing of the body, until its signature is verified as that of a domain
that may call here (`admit`) -> the body arrives and must have the signed digest -> the handler answers -> the answer,
refusals included, is signed (`serve`). The one exception is `hello`, which unknown domains call: its body begins with
the sender's domain document, so it is read, within tight bounds, before the signature is verified with the keys in it;
the handler decides whether those are trusted.

Active peers may call every path. An acquaintance (rules/acquaintances.py) may call ACQUAINTED, and any other domain that
the directory identifies IDENTIFIED: at both, the handlers answer about RPs to which the sender is admitted,
or may be by its home's policy, and of no others.

All of this is synchronous: gateway/endpoints/federation.py runs it on threads.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import msgspec
from django.utils import timezone

from eventing.conf import config
from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.errors import (
    ApplicationError,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from eventing.core.names import DOMAIN_PATTERN
from eventing.core.ports import Port
from eventing.core.signing import Signed
from eventing.peering.directory_documents import document_fetch_soon
from eventing.peering.models import Acquaintance, Peer
from eventing.peering.peer_documents import document_refetch
from eventing.peering.ports import overlay_introduction, overlay_keys
from eventing.peering.rules.acquaintances import IDENTIFIED_BYTES_MAX
from eventing.peering.rules.domain_documents import BadDocument, VerifiedDomainDocument, claimed, read, signed_now
from eventing.peering.rules.peers import PeeringState
from eventing.peering.selectors.domain_documents import domain_document, domain_keys
from eventing.peering.selectors.identities import identity
from eventing.peering.selectors.partners import Partner, acquaintance_get, is_suspended
from eventing.peering.selectors.peers import peer_found, peer_get
from eventing.peering.selectors.recent_keys import domain_keys_recent, recent_keys_forget, signing_key_recent
from eventing.peering.services.acquaintances import acquaintance_contacted
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.services.peers import CONTACT_S, asked_statement, peer_contacted
from eventing.peering.wire import messages as wire
from eventing.peering.wire import signatures
from eventing.peering.wire.refusals import (
    bad_request_note,
    count_identified,
    count_overlay_request,
    count_request,
    count_stranger,
)
from eventing.peering.wire.signatures import WINDOW_S, BadSignature
from eventing.store.errors import RedisError
from eventing.store.peer_state import contact_note, nonce_note

NONCE_KEPT_S = 2 * WINDOW_S + 5  # `created` may be WINDOW_S ahead of our clock, and is good until WINDOW_S after it
PREFIX = "/federation/v1/"
HELLO = f"{PREFIX}hello"
PROBE = f"{PREFIX}probe"
OVERLAY = f"{PREFIX}overlay"
SPONSOR = f"{PREFIX}sponsor"
PATH = f"{PREFIX}path"
LOAD = f"{PREFIX}load"
# A document with 32 keys takes 10 KiB.
HELLO_BYTES_MAX = 64 * 1024  # bound: bytes of a hello; 413
OVERLAY_BYTES_MAX = 128 * 1024  # bound: bytes of an overlay request or answer; 413, the others are in the next one
REFETCHED_S = 2  # after which a sender with an unknown key may try again
PROBLEM_TYPE = "application/problem+json"
log = logging.getLogger(__name__)


class Sender(NamedTuple):
    """The verified sender of a request: the key `kid` of the domain signed it.

    Attributes:
        peer: the sender's row as a peer; None if it is none. Of an active peer everywhere but at `hello` and `overlay`, unless
            the sender is an acquaintance or only identified.
        trusted: whether the key is trusted for that domain. False at `hello` only: the keys are part of the request, and
            anybody can make such in any name.
        document: the domain document in a `hello` with which the request was verified; else None.
        acquaintance: the sender's row as an acquaintance; None if it is none.
    """

    domain: str
    kid: str
    peer: Peer | None
    trusted: bool = True
    document: Signed | None = None
    acquaintance: Acquaintance | None = None

    @property
    def partner(self) -> Partner | None:
        """The row of the sender that events are exchanged with; None where the sender is neither."""
        return self.peer if self.peer is not None else self.acquaintance


def probe(sender: Sender, body: bytes) -> bytes:
    """Answer a probe: the newest version of the protocol that this domain speaks."""
    return wire.encode([wire.VERSION])


def _handler(sender: Sender, body: bytes) -> bytes:
    """Return the answer's body, or raise a ApplicationError, which is sent as a signed problem document. Runs on a thread with a
    database connection.

    Args:
        body: of the request.
    """
    raise NotImplementedError


HANDLERS: Mapping[str, Port[[Sender, bytes], bytes]] = {
    PREFIX + name: Port(_handler)
    for name in (
        "probe",
        "hello",
        "exchange",
        "join",
        "leave",
        "invite",
        "home",
        "release",
        "elect",
        "subscriptions",
        "overlay",
        "sponsor",
        "region",
        "path",
        "load",
    )
}
"""The handler of each path."""


def handle(name: str, handler: Callable[[Sender, bytes], bytes]) -> None:
    """Connect `handler` for requests at PREFIX + `name`; the composition root does."""
    HANDLERS[PREFIX + name].connect(handler)


OPEN = frozenset({HELLO, OVERLAY})
"""Paths that domains may call that are not active peers. At OVERLAY they must be in the directory, or present records that admit them."""

IDENTIFIED = frozenset({PREFIX + name for name in ("region", "join", "leave")})
"""Paths that domains may call that the directory identifies."""

ACQUAINTED = IDENTIFIED | {PROBE, PATH, LOAD, PREFIX + "exchange", PREFIX + "elect"}
"""Paths that acquaintances may call."""


class _Introduction(msgspec.Struct, array_like=True):
    """The beginning of a hello's body; the rest of the array is for the handler."""

    document: Signed


_introduction = msgpack_reader(_Introduction)


_BODY_BYTES_MAX = {
    HELLO: HELLO_BYTES_MAX,
    OVERLAY: OVERLAY_BYTES_MAX,
    SPONSOR: HELLO_BYTES_MAX,
    PATH: HELLO_BYTES_MAX,
    LOAD: HELLO_BYTES_MAX,
}


@dataclass(slots=True)
class Admitted:
    """A request that may proceed; `sender` is None where its keys are in the body."""

    request: signatures.SignedRequest
    path: str
    sender: Sender | None

    @property
    def body_bytes_max(self) -> int:
        """Return the greatest length of the body."""
        if self.sender is not None and self.sender.partner is None and self.path in IDENTIFIED:
            return IDENTIFIED_BYTES_MAX
        return _BODY_BYTES_MAX.get(self.path, wire.BODY_BYTES_MAX)


@dataclass(slots=True)
class EndpointAnswer:
    """The answer to send; `reason` is the code of the problem, empty for none."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    reason: str = ""


def request_read(method: str, path: str, fields: signatures.Fields) -> signatures.SignedRequest:
    """Return the head of a request. Raises InvalidRequest.

    Args:
        path: with the query, as it was sent.
        fields: names and values of the header.
    """
    try:
        headers = signatures.fields_read(fields)
    except BadSignature as error:
        raise InvalidRequest(error.detail) from None
    scheme = config().base_url.partition(":")[0]  # needed only to leave :80 or :443 out of the authority
    return signatures.SignedRequest(method, f"{scheme}://{headers.get('host', '')}{path}", headers)


def admit(request: signatures.SignedRequest, path: str) -> Admitted:
    """Verify the head of a request: its sender, and whether it may proceed. Raises ApplicationError."""
    if path not in HANDLERS:
        raise NotFound("There is no endpoint for other domains at this path.")
    if request.headers.get("content-type") != signatures.CONTENT_TYPE:
        raise InvalidRequest(f"The content type must be {signatures.CONTENT_TYPE}.")
    domain = request.headers.get(signatures.FROM, "")
    if not DOMAIN_PATTERN.fullmatch(domain):
        raise Unauthenticated(f"The field {signatures.FROM} names no domain.", reason="malformed")
    if domain == config().domain:
        raise Unauthenticated("A domain does not call itself.", reason="wrong")
    peer = peer_get(domain)
    active = peer is not None and peer.active
    if path == OVERLAY and not active:
        return _admit_acquainted(request, domain, peer)
    if path in OPEN and not active:
        return Admitted(request, path, None)
    if peer is None or not peer.active:
        return _identified(request, path, domain)
    try:
        proof = _verified_by(request, domain)
    except BadSignature as error:
        if path in OPEN and error.code == "unknown-key":  # its body may contain the new key
            return Admitted(request, path, None)
        if error.code == "unknown-key" and active and document_refetch(domain) is not None:
            detail = f"The key is not known yet; the document of {domain} is being fetched. Try again."
            raise Unavailable(detail, retry_after_s=REFETCHED_S, reason=error.code) from None
        bad_request_note(error, domain, known=bool(domain_keys(domain)))
        raise _unauthenticated(error) from None
    if path == OVERLAY:
        count_overlay_request(domain)
    else:
        count_request(peer)
    _once(domain, proof)
    _contacted(peer)
    return Admitted(request, path, Sender(domain, proof.kid, peer))


def _admit_acquainted(request: signatures.SignedRequest, domain: str, peer: Peer | None) -> Admitted:
    """Admit an overlay request of a domain that is no active peer, by the keys that the directory has of it; if it has not the one
    that signed, the body must present them. Raises ApplicationError.
    """
    if peer is not None and peer.state == PeeringState.SUSPENDED:
        raise Forbidden(f"{domain} is suspended at {config().domain}.")
    for anew in (False, True):
        keys = overlay_keys(domain, anew)
        try:
            proof = _verified(request, keys)
        except BadSignature as error:
            if keys and error.code != "unknown-key":
                bad_request_note(error, domain, known=True)
            if error.code != "unknown-key":
                raise _unauthenticated(error) from None
        else:
            count_overlay_request(domain)
            _once(domain, proof)
            return Admitted(request, OVERLAY, Sender(domain, proof.kid, None))
    return Admitted(request, OVERLAY, None)


def _identified(request: signatures.SignedRequest, path: str, domain: str) -> Admitted:
    """Verify the head of a request of an acquaintance, or of another domain that the directory identifies. Raises ApplicationError.

    Everything that costs more than a look into memory is counted first: anybody can call in any name.
    """
    acquaintance = acquaintance_get(domain)
    allowed = path in ACQUAINTED and config().overlay != "peers" and not is_suspended(domain)
    found = identity(domain) if allowed else None
    if found is None or found.record is None or found.contradicted:
        _refuse_stranger(request, domain)
    elif acquaintance is not None and acquaintance.fingerprint != found.record.fingerprint:
        raise Forbidden(f"The directory names another first key of {domain} than that of the acquaintance.")
    elif acquaintance is None:
        count_identified()
        if path not in IDENTIFIED:  # the link may stand there before it does here
            raise Unavailable(f"{domain} is no acquaintance of {config().domain} yet.", retry_after_s=REFETCHED_S)
        if not found.verified:
            document_fetch_soon(domain, found.record)
            detail = f"The document of {domain} is being fetched. Try again."
            raise Unavailable(detail, retry_after_s=REFETCHED_S)
    try:
        proof = _verified_by(request, domain)
    except BadSignature as error:
        if error.code == "unknown-key" and document_refetch(domain) is not None:
            detail = f"The key is not known yet; the document of {domain} is being fetched. Try again."
            raise Unavailable(detail, retry_after_s=REFETCHED_S, reason=error.code) from None
        bad_request_note(error, domain, known=bool(domain_keys(domain)))
        raise _unauthenticated(error) from None
    if acquaintance is not None:
        count_request(acquaintance)
    _once(domain, proof)
    if acquaintance is not None:
        contact_note(domain, "request")
        acquaintance_contacted(acquaintance)
    return Admitted(request, path, Sender(domain, proof.kid, None, acquaintance=acquaintance))


def _refuse_stranger(request: signatures.SignedRequest, domain: str) -> NoReturn:
    """Refuse a domain that may not call here: a good signature shows that the domain itself called."""
    try:
        _verified_by(request, domain)
    except BadSignature as error:
        bad_request_note(error, domain, known=bool(domain_keys(domain)))
        raise _unauthenticated(error) from None
    raise Forbidden(f"{domain} is not an active peer of {config().domain}.")


def serve(admitted: Admitted, body: bytes) -> bytes:
    """Pass an admitted request with its body to its handler. Returns the body of the answer. Raises ApplicationError."""
    sender = admitted.sender
    try:
        if sender is None:
            introduced = _presented if admitted.path == OVERLAY else _introduced
            sender = introduced(admitted.request, body)
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


def answered(request: signatures.SignedRequest, body: bytes) -> EndpointAnswer:
    """Return the signed answer to a request that succeeded."""
    return _signed(request, 200, body, signatures.CONTENT_TYPE, None)


def refused(request: signatures.SignedRequest, error: ApplicationError) -> EndpointAnswer:
    """Return the signed problem document, with nothing that the sender could not know; unsigned for unsigned requests."""
    body = msgspec.json.encode(error.document())
    answer = _signed(request, error.status, body, PROBLEM_TYPE, error.retry_after_s)
    answer.reason = error.code
    return answer


def _verified(request: signatures.SignedRequest, jwks: signatures.Jwks) -> signatures.VerifiedSignature:
    return signatures.request_verified(request, destination=config().domain, jwks=jwks, now=time.time())


def _verified_by(request: signatures.SignedRequest, domain: str) -> signatures.VerifiedSignature:
    """Verify the request with the domain's keys, of which the cached ones may be out of date."""
    try:
        return _verified(request, domain_keys_recent(domain))
    except BadSignature as error:
        if error.code not in ("unknown-key", "key-window"):
            raise
        recent_keys_forget()  # the request's content may be signed with that key, too
        return _verified(request, domain_keys_recent(domain))


def _introduced(request: signatures.SignedRequest, body: bytes) -> Sender:
    """Return the sender of a hello, by the domain document in it. Raises BadSignature, ApplicationError."""
    try:
        statement = _introduction(body).document
        name, serial, _ = claimed(statement)
    except Undecodable:
        raise InvalidRequest("A hello is an array that begins with the sender's domain document.") from None
    except BadDocument as error:
        raise InvalidRequest(str(error)) from None
    domain = request.headers[signatures.FROM]
    if name != domain:
        raise BadSignature("wrong", "The domain document is not of the domain that sent the request.")
    trusted = domain_keys(domain)
    try:
        proof = _verified(request, trusted)
    except BadSignature as error:
        if error.code not in ("unknown-key", "key-window"):
            raise
        if not _expected(domain, statement, serial):
            count_stranger()  # before the signatures of the document are verified
        proof = _verified(request, _document(statement).jwks)
        trusted = {}
    peer = peer_get(domain)
    if (
        trusted and peer is not None
    ):  # suspended, or not approving this domain yet: counted as an active one was in `admit`
        count_request(peer)
    _once(domain, proof, trusted=bool(trusted))
    return Sender(domain, proof.kid, peer, trusted=bool(trusted), document=statement)


def _presented(request: signatures.SignedRequest, body: bytes) -> Sender:
    """Return the sender of an overlay request, by the records in it. Raises BadSignature, ApplicationError."""
    domain = request.headers[signatures.FROM]
    proof = _verified(request, overlay_introduction(domain, body))
    count_overlay_request(domain)
    _once(domain, proof)
    return Sender(domain, proof.kid, None)


def _expected(domain: str, statement: Signed, serial: int) -> bool:
    """Return whether a document is expected: the next one of a known domain, or the one in its earlier hello."""
    held = domain_document(domain)
    if held is not None:
        return serial > held.serial and signed_now(statement, held.jwks, time.time())
    row = peer_found(domain)
    return row is not None and row.asked_document is not None and asked_statement(row) == statement


def _document(statement: Signed) -> VerifiedDomainDocument:
    try:
        return read(statement)
    except BadDocument as error:
        raise InvalidRequest(str(error)) from None


def _once(domain: str, proof: signatures.VerifiedSignature, *, trusted: bool = True) -> None:
    """Use up a request's nonce. Raises Conflict, Unavailable. A repetition counts against the domain if its key is
    trusted (Sender).
    """
    try:
        if nonce_note(domain, proof.nonce, NONCE_KEPT_S):
            return
    except RedisError:
        raise Unavailable("Replayed requests cannot be detected at the moment. Try again.", retry_after_s=2) from None
    if trusted:
        misbehaviour_note("replayed", carrier=domain, detail="A request was replayed.")
    raise Conflict("A request with this nonce has been accepted already. Sign the request anew.", reason="replay")


def _contacted(peer: Peer) -> None:
    """Record the contact and renew the peer's lease, a write that not each request needs. `peer` may be cached."""
    contact_note(peer.name, "request")
    if peer.heard_at is None or (timezone.now() - peer.heard_at).total_seconds() > CONTACT_S:
        peer_contacted(peer.name)


def _unauthenticated(error: BadSignature) -> Unauthenticated:
    return Unauthenticated(error.detail, reason=error.code)


def _signed(
    request: signatures.SignedRequest, status: int, body: bytes, content_type: str, retry_after_s: int | None
) -> EndpointAnswer:
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
            return EndpointAnswer(status, answer.headers, body)
    headers = {"content-type": content_type}
    if retry_after_s is not None:
        headers[signatures.RETRY_AFTER] = str(retry_after_s)
    return EndpointAnswer(status, headers, body)
