"""Domain documents: what a domain states of itself, signed, so that anyone can check it, whoever carried it. Pure.

The life of a domain document: the domain issues it with serial N, signed by every key that it lists -> another domain
pins it, an administrator there having compared its fingerprint (or its home vouches for it) -> the domain makes a new key
and issues serial N+1, which the key that is trusted already has signed too -> the other domain follows, nobody does
anything. Without such a signature nothing follows: the document has to be pinned anew.

The fingerprint is the domain's first key, which stays in every document and signs each: who copies it without holding
that key gets nowhere. On the wire and in SQL a document is one `Signed`: `payload` is the document, `kid` the kids of all
keys that signed it, separated by spaces, and `signature` their signatures in that order.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from eventing.access.rules.policy_issuers import is_address
from eventing.core import strict_json
from eventing.core.ed25519 import BadPublicKey, public_key
from eventing.core.ids import canonical_json
from eventing.core.names import DOMAIN_PATTERN
from eventing.core.signing import DOMAIN, SIGNATURE_BYTES, Signed, sign, verified

VERSIONS = (1,)  # of the wire between domains (peering/wire/messages.py) that this code speaks
KEYS_MAX = 32  # the first and the newest 31, ended ones too: what those have sealed still verifies
PAYLOAD_BYTES_MAX = 16 * 1024  # 32 keys take 5 KiB
VERSIONS_MAX = 16
NUMBER_MAX = 2**53 - 1
SKEW_S = 60  # a key may be used this long before we think that it begins: clocks differ
_GROUP = 4  # characters of a fingerprint that people compare at once
_READ_CACHED = 512  # documents; each domain has one in use, reading one costs a signature per key


class BadDocument(Exception):
    """The document is none, or is not to be believed; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class DomainDocument:
    """A document whose signatures were right.

    Attributes:
        domain: the domain's name.
        url, websocket: where its gateways are reached, no slash at the end.
        versions: of the wire that it speaks.
        serial: grows with each document that the domain issues.
        issued_at: Unix seconds, by its clock.
        jwks: public Ed25519 JWKs by kid, the first key first, each with `nbf` and, if its end is known, `exp`.
        signers: the kids of those that signed this copy: who carries it can leave some out.
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
        """What people compare: the kid of the domain's first key."""
        return next(iter(self.jwks))


def make(content: Mapping[str, Any], private_jwks: Sequence[Mapping[str, Any]]) -> Signed:
    """A document of `content` (members as in DomainDocument, without keys), signed by all keys.

    Args:
        private_jwks: at most KEYS_MAX, the domain's first key first, each with `kid`, `nbf` and maybe `exp`.
    """
    keys = [{name: jwk[name] for name in ("kid", "x", "nbf", "exp") if name in jwk} for jwk in private_jwks]
    payload = canonical_json({**content, "keys": keys})
    signatures = [sign(DOMAIN, payload, jwk) for jwk in private_jwks]
    return Signed(payload, " ".join(one.kid for one in signatures), b"".join(one.signature for one in signatures))


@lru_cache(maxsize=_READ_CACHED)
def read(statement: Signed) -> DomainDocument:
    """The document of `statement`. Every signature it has is by a key that it lists, and right; its first key signed it.

    That alone makes it no truth: anybody can make such a document in any name (see `trusted_now`, `follows`).
    Raises BadDocument.
    """
    members = _members(statement)
    jwks = _jwks(members.get("keys"))
    document = DomainDocument(
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


class Claim(NamedTuple):
    """What a document says of itself; `fingerprint` is empty for none."""

    domain: str
    serial: int
    fingerprint: str


def claimed(statement: Signed) -> Claim:
    """Whose document it says that it is: no signature is looked at, nothing of it is true yet.

    `read` costs a signature for each key; who carries documents may send many that nobody needs. Raises BadDocument.
    """
    members = _members(statement)
    match members.get("keys"):
        case [{"kid": str(first)}, *_]:
            return Claim(_domain(members.get("domain")), _number(members, "serial"), first)
    return Claim(_domain(members.get("domain")), _number(members, "serial"), "")


def signed_now(statement: Signed, jwks: Mapping[str, Mapping[str, Any]], now: float) -> bool:
    """Whether one of `jwks` (public JWKs by kid with their windows) that may sign now has signed these bytes.

    It costs one signature, whatever the statement says: one that is wrong makes the whole document wrong.
    """
    for place, kid in enumerate(statement.kid.split(" ", KEYS_MAX)[:KEYS_MAX]):
        if kid in jwks and is_valid(jwks[kid], now):
            return verified(DOMAIN, Signed(statement.payload, kid, _signature(statement, place)), jwks[kid])
    return False


def trusted_now(document: DomainDocument, jwks: Mapping[str, Mapping[str, Any]], now: float) -> bool:
    """Whether one of `jwks` (public JWKs by kid with their windows) has signed the document and may sign now."""
    return any(
        kid in jwks and is_valid(jwks[kid], now) and _same_key(jwks[kid], document, kid) for kid in document.signers
    )


def follows(document: DomainDocument, held: DomainDocument, now: float) -> bool:
    """Whether `document` takes the place of `held`, the trusted one of that domain; False for one that is not newer.

    Raises BadDocument when it is newer, or another one of the same serial, and must not be believed.
    """
    if document.domain != held.domain:
        raise BadDocument("The domain document is of another domain.")
    if document.serial < held.serial or document == held:
        return False
    if document.serial == held.serial:
        raise BadDocument(f"There are two different domain documents of {held.domain} with the serial {held.serial}.")
    if document.fingerprint != held.fingerprint:
        raise BadDocument(f"The fingerprint of {held.domain} is another one than before.")
    if not trusted_now(document, held.jwks, now):
        raise BadDocument(f"The domain document is not signed by a key that is trusted for {held.domain} now.")
    return True


def is_valid(jwk: Mapping[str, Any], now: float) -> bool:
    """Whether the key's window holds `now`."""
    return int(jwk["nbf"]) - SKEW_S <= now and ("exp" not in jwk or now < int(jwk["exp"]))


def thumbprint(x: str) -> str:
    """The kid of an Ed25519 key: RFC 7638 with SHA-256."""
    digest = hashlib.sha256(canonical_json({"crv": "Ed25519", "kty": "OKP", "x": x})).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def fingerprint_shown(kid: str) -> str:
    """A fingerprint in groups, as people read it to each other."""
    return " ".join(kid[at : at + _GROUP] for at in range(0, len(kid), _GROUP))


def fingerprint_read(text: str) -> str:
    """What `fingerprint_shown` made, or the kid itself, as people type it."""
    return "".join(text.split())


def published(statement: Signed) -> dict[str, Any]:
    """The JSON form, member `document` of /.well-known/herald."""
    return {
        "payload": base64.b64encode(statement.payload).decode(),
        "kids": statement.kid.split(" "),
        "signature": base64.b64encode(statement.signature).decode(),
    }


def from_published(members: object) -> Signed:
    """The statement that `published` gave the JSON form of. Raises BadDocument."""
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
        raise BadDocument("The domain document's signatures are not one for each of the keys that are named.")
    for place, kid in enumerate(kids):
        signed = Signed(statement.payload, kid, _signature(statement, place))
        if kid not in jwks or not verified(DOMAIN, signed, jwks[kid]):
            raise BadDocument("A signature of the domain document is wrong.")
    return frozenset(kids)


def _same_key(jwk: Mapping[str, Any], document: DomainDocument, kid: str) -> bool:
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
            raise BadDocument("A key of the domain document is not an Ed25519 key named by its thumbprint, once.")
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
