"""Signatures on requests between domains and on their answers: a profile of RFC 9421.

A request's signature covers the method, authority, path, the digest of the body (RFC 9530), its type, and the names of
both domains; an answer's covers its status, digest, type and names, and the request's signature, which binds it to that
request. There is exactly one signature, Ed25519, tag `herald`, with created, nonce and keyid.

Time, keys and nonces are passed in; nonces.py decides whether a nonce is new.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from cryptography.exceptions import InvalidSignature as NotSigned
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from http_message_signatures import (
    ContentDigest,
    HTTPMessageSignaturesException,
    HTTPMessageSigner,
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
    InvalidSignature,
)
from http_message_signatures.algorithms import ED25519

from eventing.core.container import memoized
from eventing.core.ed25519 import public_key
from eventing.core.signing import KID_PATTERN
from eventing.peering.rules.domain_documents import is_valid
from eventing.peering.wire import signature_base
from eventing.peering.wire.signature_base import LABEL, TAG

WINDOW_S = 60  # bound: seconds since a request was signed; the request is refused: 401
NONCE_PATTERN = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)
# Proxies add some.
HEADERS_MAX = 64  # bound: header fields of a request between domains; 400
HEADERS_BYTES_MAX = 16 * 1024  # bound: bytes of these header fields; 400
CONTENT_TYPE = "application/msgpack"
TO, FROM = "herald-to", "herald-from"

REQUEST_COMPONENTS = ("@method", "@authority", "@path", "content-digest", "content-type", TO, FROM)
ANSWER_COMPONENTS = ("@status", "content-digest", "content-type", TO, FROM, '"signature";req')
RETRY_AFTER = "retry-after"  # covered in answers that have it

_FIELD_CHARS_MAX = {  # of the fields that are read; each may be present once
    "signature-input": 1024,
    "signature": 256,
    "content-digest": 256,
    "content-type": 128,
    TO: 253,
    FROM: 253,
    "host": 300,
    RETRY_AFTER: 32,
}

_UNKNOWN_KEY = "The key that signed is not a known key of the domain."
_KEY_WINDOW = "The key that signed is not valid yet, or has expired."

Jwks = Mapping[str, Mapping[str, Any]]
Fields = Iterable[tuple[str, str]]


class BadSignature(Exception):
    """A message that fails verification; the text is one sentence, `code` one of the words below.

    Codes: `unsigned`, `malformed`, `unknown-key`, `key-window`, `wrong`; and with a valid signature that does not fit
    the message: `clock`, `destination`, `digest`.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(slots=True)
class SignedRequest:
    """A request as signed: `url` is absolute, `headers` has lower-case names."""

    method: str
    url: str
    headers: dict[str, str]


@dataclass(slots=True)
class SignedAnswer:
    """An answer as signed, and the request that it answers."""

    status_code: int
    headers: dict[str, str]
    request: SignedRequest


@dataclass(frozen=True, slots=True)
class VerifiedSignature:
    """The parameters of a valid signature: key, time, nonce."""

    kid: str
    created: int
    nonce: str


def request_signed(
    url: str, body: bytes, *, origin: str, destination: str, key: Mapping[str, Any], nonce: str, now: float
) -> SignedRequest:
    """Return a signed POST.

    Args:
        url: absolute.
        origin: the domain that signs.
        destination: the domain that the request is for.
        key: private JWK of the origin.
        nonce: 16 to 64 characters of base64url, used only once.
        now: Unix seconds.
    """
    request = SignedRequest("POST", url, {"content-type": CONTENT_TYPE, TO: destination, FROM: origin})
    _sign(request, body, REQUEST_COMPONENTS, key, nonce, now)
    return request


def answer_signed(
    request: SignedRequest,
    status: int,
    body: bytes,
    *,
    content_type: str,
    retry_after_s: int | None,
    key: Mapping[str, Any],
    origin: str,
    nonce: str,
    now: float,
) -> SignedAnswer:
    """Return the signed answer to `request`, which has a Signature field.

    Args:
        retry_after_s: seconds for the field Retry-After; None for none.
        key: private JWK of the origin.
        origin: the domain that answers.
        now: Unix seconds.

    Raises BadSignature if no answer can be bound to the request (its Host is invalid).
    """
    headers = {"content-type": content_type, TO: request.headers.get(FROM, ""), FROM: origin}
    components: tuple[str, ...] = ANSWER_COMPONENTS
    if retry_after_s is not None:
        headers[RETRY_AFTER] = str(retry_after_s)
        components = (*components, RETRY_AFTER)
    answer = SignedAnswer(status, headers, request)
    try:
        _sign(answer, body, components, key, nonce, now)
    except HTTPMessageSignaturesException as error:
        raise BadSignature("malformed", str(error)[:200]) from None
    return answer


def request_verified(request: SignedRequest, *, destination: str, jwks: Jwks, now: float) -> VerifiedSignature:
    """Verify everything of a request but its body, which may not have arrived yet (see `body_checked`).

    Args:
        destination: this domain.
        jwks: the sender's public keys by kid, with their windows.
        now: Unix seconds.

    Raises BadSignature.
    """
    proof = _profile(verified(request, REQUEST_COMPONENTS, jwks=jwks, now=now, window_s=WINDOW_S, tag=TAG))
    if request.headers[TO] != destination:
        raise BadSignature("destination", f"The request is for another domain than {destination}.")
    return proof


def body_checked(request: SignedRequest, body: bytes) -> None:
    """Verify the body of a request that `request_verified` accepted against the signed digest. Raises BadSignature."""
    try:
        ContentDigest.verify(request.headers["content-digest"], body)
    except (HTTPMessageSignaturesException, KeyError) as error:
        raise BadSignature("digest", f"The body is not the one that was signed: {error}.") from None


def answer_verified(answer: SignedAnswer, body: bytes, *, origin: str, jwks: Jwks, now: float) -> VerifiedSignature:
    """Verify an answer to a request of this domain, with its body.

    Args:
        origin: the domain that must have answered.
        jwks: its public keys by kid, with their windows.
        now: Unix seconds.

    Raises BadSignature.
    """
    if "signature" not in answer.headers:
        raise BadSignature("unsigned", "The answer is not signed.")
    if answer.headers.get(FROM) != origin or answer.headers.get(TO) != answer.request.headers[FROM]:
        raise BadSignature("wrong", f"The answer is not from {origin} to this domain.")
    components: tuple[str, ...] = ANSWER_COMPONENTS
    if RETRY_AFTER in answer.headers:
        components = (*components, RETRY_AFTER)
    return _profile(verified(answer, components, jwks=jwks, now=now, window_s=WINDOW_S, tag=TAG, body=body))


def fields_read(fields: Fields) -> dict[str, str]:
    """Return the header fields of a message from outside, names in lower case; those that are read are within their
    bounds and present once. Raises BadSignature.
    """
    found: dict[str, str] = {}
    count = size = 0
    for given, value in fields:
        name = given.lower()
        count += 1
        size += len(name) + len(value)
        if count > HEADERS_MAX or size > HEADERS_BYTES_MAX:
            raise BadSignature(
                "malformed", f"The header has more than {HEADERS_MAX} fields or {HEADERS_BYTES_MAX} bytes."
            )
        most = _FIELD_CHARS_MAX.get(name)
        if most is None:
            continue
        if name in found:
            raise BadSignature("malformed", f"The field {name} is present twice.")
        if len(value) > most or not (value.isascii() and value.isprintable()):
            raise BadSignature(
                "malformed", f"The field {name} has more than {most} characters, or characters outside ASCII."
            )
        found[name] = value
    return found


def verified(
    message: SignedRequest | SignedAnswer,
    components: Sequence[str],
    *,
    jwks: Jwks,
    now: float,
    window_s: float | None,
    tag: str | None,
    body: bytes | None = None,
) -> VerifiedSignature:
    """Verify the one signature of a message.

    Args:
        components: those that must be covered; more may be.
        jwks: public Ed25519 keys by kid with their windows, one of which must have signed.
        window_s: greatest difference of `created` to `now`; None for any.
        tag: the required tag of the signature; None for any or none.
        body: the body whose digest the covered Content-Digest must be; None where that is checked elsewhere.

    Raises BadSignature.
    """
    if "signature" not in message.headers or "signature-input" not in message.headers:
        raise BadSignature("unsigned", "The message is not signed (Signature and Signature-Input, RFC 9421).")
    if tag == TAG and (body is None or message.headers.get("content-digest") == signature_base.digest(body)):
        plain = signature_base.read(message, components)
        if plain is not None:
            return _plain_verified(plain, jwks, now, window_s)
    keys = _Keys(jwks, now, any_time=window_s is None)
    verifier = _Verifier(signature_algorithm=ED25519, key_resolver=keys)
    try:
        (result,) = verifier.verify(message, max_age=None, require_components=components, body=body)
    except _Refused as error:
        raise error.reason from None
    except HTTPMessageSignaturesException as error:
        raise BadSignature("wrong", f"The signature is invalid: {str(error)[:200] or 'it does not verify'}.") from None
    except (ValueError, TypeError, KeyError, AttributeError, AssertionError, RecursionError):  # of the parsers below
        raise BadSignature("malformed", "The signature's fields are not well formed.") from None
    parameters = result.parameters
    if tag is not None and parameters.get("tag") != tag:
        raise BadSignature("wrong", f"The signature's tag is not {tag}.")
    if window_s is not None:
        _require_now(parameters, now, window_s)
    return VerifiedSignature(str(parameters["keyid"]), int(parameters.get("created", 0)), result.nonce or "")


def _plain_verified(
    plain: signature_base.PlainSignature, jwks: Jwks, now: float, window_s: float | None
) -> VerifiedSignature:
    """Verify a signature of the form that domains make. Raises BadSignature."""
    jwk = jwks.get(plain.kid)
    if jwk is None:
        raise BadSignature("unknown-key", _UNKNOWN_KEY)
    if window_s is not None and not is_valid(jwk, now):
        raise BadSignature("key-window", _KEY_WINDOW)
    try:
        public_key(str(jwk["x"])).verify(plain.signature, plain.base)
    except NotSigned:
        raise BadSignature("wrong", "The signature is invalid: it does not verify.") from None
    except ValueError as error:
        raise BadSignature("malformed", f"The key is not usable: {error}.") from None
    if window_s is not None:
        _require_now({"created": plain.created}, now, window_s)
    return VerifiedSignature(plain.kid, plain.created, plain.nonce)


def _profile(proof: VerifiedSignature) -> VerifiedSignature:
    if not NONCE_PATTERN.fullmatch(proof.nonce):
        raise BadSignature("malformed", "The signature has no nonce of 16 to 64 characters of base64url.")
    return proof


class _Refused(InvalidSignature):
    """An InvalidSignature that carries a BadSignature's reason through the library."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = BadSignature(code, detail)


class _Keys(HTTPSignatureKeyResolver):
    """The keys that may have signed, with their windows."""

    def __init__(self, jwks: Jwks, now: float, any_time: bool) -> None:
        self._jwks = jwks
        self._now = now
        self._any_time = any_time

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        jwk = self._jwks.get(key_id)
        if jwk is None:
            raise _Refused("unknown-key", _UNKNOWN_KEY)
        if not self._any_time and not is_valid(jwk, self._now):
            raise _Refused("key-window", _KEY_WINDOW)
        return public_key(str(jwk["x"]))


class _Verifier(HTTPMessageVerifier):
    """The library's verifier without its check of the clock: the time is passed in, and checked after the signature is
    verified (`_require_now`). Two signatures are refused, as neither a tag nor a label is given.
    """

    def validate_created_and_expires(self, sig_input: Any, max_age: Any = None) -> None:
        """Called by the library."""


def _require_now(parameters: Mapping[str, Any], now: float, window_s: float) -> None:
    created, expires = parameters.get("created"), parameters.get("expires")
    if created is None:
        raise BadSignature("clock", "The signature has no time of creation.")
    if abs(now - created) > window_s:
        raise BadSignature(
            "clock", f"The signature was created more than {window_s:g} s from now, by this domain's clock."
        )
    if expires is not None and expires <= now:
        raise BadSignature("clock", "The signature has expired.")


class _OneKey(HTTPSignatureKeyResolver):
    def __init__(self, key: Mapping[str, Any]) -> None:
        self._key = key

    def resolve_private_key(self, key_id: str) -> Ed25519PrivateKey:
        return _private(str(self._key["d"]))


def _sign(
    message: SignedRequest | SignedAnswer,
    body: bytes,
    components: Sequence[str],
    key: Mapping[str, Any],
    nonce: str,
    now: float,
) -> None:
    stated = signature_base.parameters(components, int(now), str(key["kid"]), nonce)
    digest = signature_base.digest(body)
    base = signature_base.base_of(_with_digest(message, digest), components, stated)
    covered = "content-digest" in components
    if covered and base is not None and KID_PATTERN.fullmatch(str(key["kid"])) and NONCE_PATTERN.fullmatch(nonce):
        signature = _private(str(key["d"])).sign(base)
        message.headers |= {"content-digest": digest, **signature_base.signature_fields(stated, signature)}
        return
    HTTPMessageSigner(signature_algorithm=ED25519, key_resolver=_OneKey(key)).sign(
        message,
        key_id=str(key["kid"]),
        created=datetime.fromtimestamp(int(now), UTC),
        nonce=nonce,
        label=LABEL,
        tag=TAG,
        covered_component_ids=components,
        body=body,
    )
    for name in list(message.headers):  # the library changes the case of names
        message.headers[name.lower()] = message.headers.pop(name)


def _with_digest(message: SignedRequest | SignedAnswer, digest: str) -> SignedRequest | SignedAnswer:
    return replace(message, headers={**message.headers, "content-digest": digest})


@memoized(maxsize=16)
def _private(d: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(_unpadded(d))


def _unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
