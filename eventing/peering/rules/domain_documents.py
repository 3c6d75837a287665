"""Domain documents: the signed statements of domains about themselves, verifiable whichever domain carried them. Pure.

The life of a domain document: the domain issues it with serial N, signed by every key that it lists -> another domain
pins it, after an administrator there compared its fingerprint (or its home vouches for it) -> the domain makes a new
key and issues serial N+1, which is also signed by the key that is already trusted -> the other domain accepts it
without an administrator. A document without such a signature is not accepted and has to be pinned anew.

The fingerprint is the domain's first key, which stays in every document and signs each; a copy of the key's public part
proves nothing. On the wire and in SQL a document is one `Signed`: `payload` is the document, `kid` the kids of all keys
that signed it, separated by spaces, and `signature` their signatures in that order.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eventing.access.rules.policy_issuers import is_address
from eventing.core import strict_json
from eventing.core.container import memoized
from eventing.core.ed25519 import BadPublicKey, public_key
from eventing.core.ids import canonical_json
from eventing.core.names import DOMAIN_PATTERN
from eventing.core.signing import DOMAIN, SIGNATURE_BYTES, Signed, sign, verified

VERSIONS = (1,)  # of the wire between domains (peering/wire/messages.py) that this code speaks
# Ended keys too: their seals still verify.
KEYS_MAX = 32  # bound: keys of a domain document; the document lists the first key and the newest 31
# 32 keys take 5 KiB
PAYLOAD_BYTES_MAX = 16 * 1024  # bound: bytes of a domain document; the document is refused
VERSIONS_MAX = 16
NUMBER_MAX = 2**53 - 1
SKEW_S = 60  # a key is accepted this long before its window by our clock: clocks differ
_GROUP = 4  # characters in one group of a fingerprint
_READ_CACHED = 512  # documents; each domain has one in use, and reading it verifies a signature per key


class BadDocument(Exception):
    """Bytes that are no valid domain document, or one that must not be trusted; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class VerifiedDomainDocument:
    """A document whose signatures were verified.

    Attributes:
        domain: the domain's name.
        url, websocket: addresses of its gateways, without a slash at the end.
        versions: protocol versions that it speaks.
        serial: grows with each document that the domain issues.
        issued_at: Unix seconds, by its clock.
        jwks: public Ed25519 JWKs by kid, the first key first, each with `nbf` and, if its end is known, `exp`.
        signers: the kids that signed this copy; a carrier can leave some out.
    """

    domain: str
    url: str
    websocket: str
    versions: tuple[int, ...]
    serial: int
    issued_at: int
    jwks: Mapping[str, Mapping[str, Any]]
    signers: frozenset[str] = field(compare=False)

    @property
    def fingerprint(self) -> str:
        """Return the kid of the domain's first key, which people compare."""
        return next(iter(self.jwks))


def make(content: Mapping[str, Any], private_jwks: Sequence[Mapping[str, Any]]) -> Signed:
    """Return a document of `content` (members as in VerifiedDomainDocument, without keys), signed by all keys.

    Args:
        private_jwks: at most KEYS_MAX, the domain's first key first, each with `kid`, `nbf` and maybe `exp`.
    """
    keys = [{name: jwk[name] for name in ("kid", "x", "nbf", "exp") if name in jwk} for jwk in private_jwks]
    payload = canonical_json({**content, "keys": keys})
    signatures = [sign(DOMAIN, payload, jwk) for jwk in private_jwks]
    return Signed(payload, " ".join(one.kid for one in signatures), b"".join(one.signature for one in signatures))


@memoized(maxsize=_READ_CACHED)
def read(statement: Signed) -> VerifiedDomainDocument:
    """Read and verify a document: all its signatures are valid and by keys that it lists, one of them by its first key.

    That alone does not make the document trustworthy: anybody can make such a document in any name (see `trusted_now`,
    `follows`).
    Raises BadDocument.
    """
    members = _members(statement)
    jwks = _jwks(members.get("keys"))
    document = VerifiedDomainDocument(
        domain=_domain(members.get("domain")),
        url=_url(members.get("url")),
        websocket=_websocket(members.get("websocket")),
        versions=_versions(members.get("versions")),
        serial=_number(members, "serial"),
        issued_at=_number(members, "issued_at"),
        jwks=jwks,
        signers=_signers(statement, jwks),
    )
    if document.fingerprint not in document.signers:
        raise BadDocument("The domain document is not signed by the domain's first key.")
    return document


class DocumentClaim(NamedTuple):
    """Unverified claims of a document; `fingerprint` is empty for none."""

    domain: str
    serial: int
    fingerprint: str


def claimed(statement: Signed) -> DocumentClaim:
    """Return what a document claims, without verifying any signature.

    `read` verifies a signature for each key, and a carrier may send many documents that nobody needs. Raises
    BadDocument.
    """
    members = _members(statement)
    match members.get("keys"):
        case [{"kid": str(first)}, *_]:
            return DocumentClaim(_domain(members.get("domain")), _number(members, "serial"), first)
    return DocumentClaim(_domain(members.get("domain")), _number(members, "serial"), "")


def signed_now(statement: Signed, jwks: Mapping[str, Mapping[str, Any]], now: float) -> bool:
    """Return whether one of `jwks` (public JWKs by kid with their windows) that may sign now has signed the statement.

    Verifies at most one signature: a wrong signature makes the whole document invalid.
    """
    for place, kid in enumerate(statement.kid.split(" ", KEYS_MAX)[:KEYS_MAX]):
        if kid in jwks and is_valid(jwks[kid], now):
            return verified(DOMAIN, Signed(statement.payload, kid, _signature(statement, place)), jwks[kid])
    return False


def trusted_now(document: VerifiedDomainDocument, jwks: Mapping[str, Mapping[str, Any]], now: float) -> bool:
    """Return whether one of `jwks` (public JWKs by kid with their windows) has signed the document and may sign now."""
    return any(
        kid in jwks and is_valid(jwks[kid], now) and _same_key(jwks[kid], document, kid) for kid in document.signers
    )


def follows(document: VerifiedDomainDocument, held: VerifiedDomainDocument, now: float) -> bool:
    """Return whether `document` replaces `held`, the domain's trusted one; False for one that is not newer.

    Raises BadDocument for a newer document, or a different one of the same serial, that must not be trusted.
    """
    if document.domain != held.domain:
        raise BadDocument("The domain document is of another domain.")
    if document.serial < held.serial or document == held:
        return False
    if document.serial == held.serial:
        raise BadDocument(f"There are two different domain documents of {held.domain} with the serial {held.serial}.")
    if document.fingerprint != held.fingerprint:
        raise BadDocument(f"The fingerprint of {held.domain} has changed.")
    if not trusted_now(document, held.jwks, now):
        raise BadDocument(f"The domain document is not signed by a key that is trusted for {held.domain} now.")
    return True


def is_valid(jwk: Mapping[str, Any], now: float) -> bool:
    """Return whether `now` is within the key's window."""
    return int(jwk["nbf"]) - SKEW_S <= now and ("exp" not in jwk or now < int(jwk["exp"]))


def thumbprint(x: str) -> str:
    """Return the kid of an Ed25519 key: its RFC 7638 thumbprint with SHA-256."""
    digest = hashlib.sha256(canonical_json({"crv": "Ed25519", "kty": "OKP", "x": x})).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def fingerprint_shown(kid: str) -> str:
    """Return a fingerprint in groups, as people read it aloud."""
    return " ".join(kid[at : at + _GROUP] for at in range(0, len(kid), _GROUP))


def fingerprint_read(text: str) -> str:
    """Return the kid from a fingerprint as people type it: grouped or not."""
    return "".join(text.split())


def published(statement: Signed) -> dict[str, Any]:
    """Return the JSON form, member `document` of /.well-known/herald."""
    return {
        "payload": base64.b64encode(statement.payload).decode(),
        "kids": statement.kid.split(" "),
        "signature": base64.b64encode(statement.signature).decode(),
    }


def from_published(members: object) -> Signed:
    """Return the statement in the JSON form made by `published`. Raises BadDocument."""
    match members:
        case {"payload": str(payload), "kids": list(kids), "signature": str(signature)} if all(
            isinstance(kid, str) for kid in kids
        ):
            try:
                return Signed(
                    base64.b64decode(payload, validate=True), " ".join(kids), base64.b64decode(signature, validate=True)
                )
            except (binascii.Error, ValueError):
                pass
    raise BadDocument("A published domain document has the members payload, kids and signature.")


def _members(statement: Signed) -> dict[str, Any]:
    if len(statement.payload) > PAYLOAD_BYTES_MAX:
        raise BadDocument(f"A domain document has at most {PAYLOAD_BYTES_MAX} bytes.")
    try:
        members = strict_json.parse(statement.payload)
    except strict_json.NotStrictJson as error:
        raise BadDocument(f"The domain document is not strict JSON: {error}") from None
    if not isinstance(members, dict):
        raise BadDocument("The domain document is not a JSON object.")
    return members


def _signature(statement: Signed, place: int) -> bytes:
    return statement.signature[place * SIGNATURE_BYTES : (place + 1) * SIGNATURE_BYTES]


def _signers(statement: Signed, jwks: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    kids = statement.kid.split(" ")
    if len(kids) > KEYS_MAX or len(set(kids)) != len(kids) or len(statement.signature) != SIGNATURE_BYTES * len(kids):
        raise BadDocument("The domain document does not have one signature for each key that it names.")
    for place, kid in enumerate(kids):
        signed = Signed(statement.payload, kid, _signature(statement, place))
        if kid not in jwks or not verified(DOMAIN, signed, jwks[kid]):
            raise BadDocument("A signature of the domain document is wrong.")
    return frozenset(kids)


def _same_key(jwk: Mapping[str, Any], document: VerifiedDomainDocument, kid: str) -> bool:
    return bool(jwk["x"] == document.jwks[kid]["x"])


def _jwks(keys: object) -> dict[str, dict[str, Any]]:
    if not isinstance(keys, list) or not 1 <= len(keys) <= KEYS_MAX:
        raise BadDocument(f"A domain document lists 1 to {KEYS_MAX} keys.")
    jwks: dict[str, dict[str, Any]] = {}
    for key in keys:
        if not isinstance(key, dict):
            raise BadDocument("A key of the domain document is not an object.")
        kid, x = key.get("kid"), key.get("x")
        if not isinstance(kid, str) or not isinstance(x, str) or kid != thumbprint(x) or kid in jwks:
            raise BadDocument(
                "A key of the domain document is listed twice, or is not an Ed25519 key named by its thumbprint."
            )
        try:
            public_key(x)
        except BadPublicKey as error:
            raise BadDocument(f"A key of the domain document is not usable: {error}.") from None
        window = {"nbf": _number(key, "nbf")}
        if "exp" in key:
            window["exp"] = _number(key, "exp")
            if window["exp"] < window["nbf"]:
                raise BadDocument("A key of the domain document ends before it begins.")
        jwks[kid] = {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": kid, **window}
    return jwks


def _number(members: Mapping[str, Any], name: str) -> int:
    value = members.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= NUMBER_MAX:
        raise BadDocument(f"The domain document's {name} is not a whole number from 0.")
    return value


def _domain(name: object) -> str:
    if not isinstance(name, str) or not DOMAIN_PATTERN.fullmatch(name):
        raise BadDocument("The domain document names no domain.")
    return name


def _url(url: object) -> str:
    if not isinstance(url, str) or not is_address(url) or "?" in url or url.endswith("/"):
        raise BadDocument("The domain document's url is not an https address (http on this machine only).")
    return url


def _websocket(url: object) -> str:
    if not isinstance(url, str) or not url.startswith("ws"):
        raise BadDocument("The domain document's websocket is not a wss address.")
    _url(f"http{url.removeprefix('ws')}")
    return url


def _versions(versions: object) -> tuple[int, ...]:
    if (
        not isinstance(versions, list)
        or not 1 <= len(versions) <= VERSIONS_MAX
        or not all(type(version) is int and 0 < version < 2**16 for version in versions)
    ):
        raise BadDocument("The domain document's versions are not a list of version numbers.")
    return tuple(versions)
