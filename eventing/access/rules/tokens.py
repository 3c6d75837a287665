"""Tokens of this domain: JWTs signed with its Ed25519 keys. Pure: keys, names and the time are arguments.

A token's header is {"alg": "Ed25519", "typ": "JWT", "kid"}; its claims are iss (the issuing domain), aud (the domain
for which it is issued), sub, iat, exp, jti, and optionally admin (true: administers the domain), ops (operations to
which it is narrowed) and scopes (RPs and operations: [{"rps": ["/example.org/weather/*"], "ops": ["subscribe"]}], see
Scope in core/principals.py). Verification is deliberately narrower than RFC 7519: one algorithm (under its RFC 9864 and
its older name), the key chosen by `kid` only, no extension header, an expiry is required.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cryptography.exceptions import InvalidSignature
from joserfc import jws
from joserfc.jwk import OKPKey

from eventing.core import strict_json
from eventing.core.ed25519 import BadPublicKey, public_key
from eventing.core.errors import Unauthenticated
from eventing.core.principals import Principal, Scope

ALGORITHM = "Ed25519"
ALGORITHMS = (ALGORITHM, "EdDSA")  # RFC 9864, and the name of RFC 8037 that older libraries write
# The length that proxies commonly allow a header line.
TOKEN_CHARS_MAX = 8 * 1024  # bound: characters of a token; `unauthenticated`
CLAIMS_MAX = 64  # bound: claims of a token; `unauthenticated`
SUBJECT_CHARS_MAX = 255
ID_CHARS_MAX = 255
IDENTITY_CHARS_MAX = 512  # characters of Principal.identity: the width of its columns in SQL
OPERATIONS_MAX = 32
SCOPES_MAX = 16  # scopes of one token; a token is sent with every request and has to fit into a header line
PATTERNS_MAX = 32  # patterns of RPs in one scope
PATTERN_CHARS_MAX = 255  # as the longest name
AUDIENCES_MAX = 32
SKEW_S = 30  # bound: seconds that an issuer's clock may be ahead; the token is refused
_HEADER_MEMBERS = {"alg", "typ", "kid"}
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")


def sign(claims: Mapping[str, Any], private_jwk: Mapping[str, Any]) -> str:
    """Sign `claims` with `private_jwk` (an Ed25519 JWK with its `kid`). Returns the compact form."""
    header = {"alg": ALGORITHM, "typ": "JWT", "kid": private_jwk["kid"]}
    key = OKPKey.import_key({name: private_jwk[name] for name in ("kty", "crv", "x", "d")})
    payload = json.dumps(claims, separators=(",", ":"), ensure_ascii=False).encode()
    return jws.serialize_compact(header, payload, key, algorithms=[ALGORITHM])


@dataclass(frozen=True, slots=True)
class Read:
    """A well-formed token whose signature has not been verified: nothing in it may be trusted yet.

    Attributes:
        header: the JOSE header.
        claims: claims of the token.
        signing_input: signed bytes.
        signature: signature over these bytes.
    """

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signing_input: bytes
    signature: bytes

    @property
    def issuer(self) -> str:
        """Issuer named by the token; empty if it is not a text."""
        issuer = self.claims.get("iss")
        return issuer if isinstance(issuer, str) else ""

    @property
    def key_id(self) -> str:
        """`kid` named by the token; empty if it is not a text."""
        kid = self.header.get("kid")
        return kid if isinstance(kid, str) else ""


def read(token: str) -> Read:
    """Parse a compact JWS, without verification. Raises Unauthenticated."""
    if len(token) > TOKEN_CHARS_MAX:
        raise Unauthenticated(f"The token is longer than {TOKEN_CHARS_MAX} characters.")
    parts = token.split(".")
    if len(parts) != 3 or not token.isascii():
        raise Unauthenticated("The token is not a signed JWT (three parts joined by dots).")
    header = _json_object(_decoded(parts[0]))
    claims = _json_object(_decoded(parts[1]))
    return Read(header, claims, f"{parts[0]}.{parts[1]}".encode(), _decoded(parts[2]))


def verify(
    token: str | Read,
    keys: Mapping[str, Mapping[str, Any]],
    *,
    issuer: str,
    audience: str | Sequence[str],
    now: float,
) -> Principal:
    """Verify a token of this domain and return its principal.

    Args:
        token: the compact form, or the result of `read`.
        keys: public JWKs by `kid`: all that may still verify, each within its `nbf` and `exp` (Unix seconds) if
            present.
        issuer: the only acceptable `iss`.
        audience: `aud` must be or contain one of these.
        now: Unix time in seconds.

    Raises Unauthenticated with the token's fault.
    """
    token = read(token) if isinstance(token, str) else token
    key = _own_key(token, keys, now)
    verify_ed25519(str(key["x"]), token)
    return own_principal(token, key, issuer=issuer, audience=audience, now=now)


def verify_of_domain(
    token: Read,
    keys: Mapping[str, Mapping[str, Any]],
    *,
    issuer: str,
    audience: Sequence[str],
    now: float,
) -> Principal:
    """Verify a token of another domain as `verify` does, but it administers nothing, whatever its claims.

    Args:
        keys: public JWKs of that domain, by `kid`, with their windows.
        issuer: the other domain's name.
        audience: this domain's names. A token for its own domain is accepted too, so that its bearer needs no second
            one to use a replica.

    Raises Unauthenticated; UnknownKey when that domain may have a newer key.
    """
    key = _own_key(token, keys, now, whose=issuer)
    verify_ed25519(str(key["x"]), token)
    principal = own_principal(token, key, issuer=issuer, audience=(*audience, issuer), now=now)
    return replace(principal, admin=False, local=False)


def own_principal(
    token: Read, key: Mapping[str, Any], *, issuer: str, audience: str | Sequence[str], now: float
) -> Principal:
    """Make the principal of a token of this domain whose signature by `key` was verified. Raises Unauthenticated.

    Also used for a Biscuit, with the claims of its authority block (eventing/access/verification/biscuits.py).
    """
    ends_at = float(key.get("exp", math.inf))
    admin = token.claims.get("admin", False)
    if not isinstance(admin, bool):
        raise Unauthenticated("The token's admin claim is not true or false.")
    principal = principal_of(
        token, issuer=issuer, audience=audience, now=now, scopes=scopes_of(token.claims), admin=admin
    )
    if "#" in principal.subject:
        raise Unauthenticated("The token's sub contains #, which no subject of a domain does.")
    return replace(principal, expires_at=min(principal.expires_at, ends_at))


def principal_of(
    token: Read,
    *,
    issuer: str,
    audience: str | Sequence[str],
    now: float,
    scopes: tuple[Scope, ...] | None,
    admin: bool = False,
    local: bool = True,
) -> Principal:
    """Make the principal of a token whose signature was verified; check the claims that every token has.

    Raises Unauthenticated.
    """
    claims = token.claims
    if len(claims) > CLAIMS_MAX:
        raise Unauthenticated(f"The token has more than {CLAIMS_MAX} claims.")
    if claims.get("iss") != issuer:
        raise Unauthenticated(f"The token was not issued by {issuer}.")
    audiences = (audience,) if isinstance(audience, str) else tuple(audience)
    if not any(_is_for(one, claims.get("aud")) for one in audiences):
        raise Unauthenticated(f"The token is not for {audiences[0]}.")
    subject = _text(claims, "sub", SUBJECT_CHARS_MAX)
    if "jti" in claims:
        _text(claims, "jti", ID_CHARS_MAX)
    expires_at = _time(claims, "exp")
    if expires_at is None:
        raise Unauthenticated("The token has no exp claim; a token must expire.")
    if expires_at <= now:
        raise Unauthenticated("The token has expired; get a new one.")
    for claim in ("nbf", "iat"):
        begins_at = _time(claims, claim)
        if begins_at is not None and begins_at > now + SKEW_S:
            raise Unauthenticated(f"The token's {claim} lies in the future; check the issuer's clock.")
    return Principal(
        issuer,
        subject,
        admin,
        expires_at,
        claims,
        scopes,
        local=local,
        token_id=str(claims.get("jti", "")),
        key_id=token.key_id,
    )


def _own_key(
    token: Read, keys: Mapping[str, Mapping[str, Any]], now: float, whose: str = "this domain"
) -> Mapping[str, Any]:
    """Return the key named in the header of a token of this domain, or of the domain `whose`."""
    header = token.header
    if set(header) - _HEADER_MEMBERS:
        raise Unauthenticated("The token's header has members other than alg, typ and kid.")
    if header.get("alg") not in ALGORITHMS:
        raise Unauthenticated(f"The token's alg is not {ALGORITHM}.")
    kind = header.get("typ")
    if not isinstance(kind, str) or kind.upper() != "JWT":
        raise Unauthenticated("The token's typ is not JWT.")
    return own_key(token.key_id, keys, now, whose)


def own_key(
    kid: str, keys: Mapping[str, Mapping[str, Any]], now: float, whose: str = "this domain"
) -> Mapping[str, Any]:
    """Return the key of this domain with this `kid`, within its window. Raises UnknownKey."""
    key = keys.get(kid)
    if key is None or not float(key.get("nbf", -math.inf)) - SKEW_S <= now < float(key.get("exp", math.inf)):
        raise UnknownKey(f"The token's kid names no key of {whose}.")
    return key


class UnknownKey(Unauthenticated):
    """The key named by a token is unknown: it may be newer than the keys known here."""


def verify_ed25519(x: str, token: Read) -> None:
    """Verify the signature with the public key `x` (base64url of 32 bytes). Raises Unauthenticated."""
    try:
        public_key(x).verify(token.signature, token.signing_input)
    except InvalidSignature:
        raise Unauthenticated("The token's signature is wrong.") from None
    except BadPublicKey as error:
        raise Unauthenticated(f"The token's key is not usable: {error}.") from None


def _decoded(part: str) -> bytes:
    if not _BASE64URL.fullmatch(part):
        raise Unauthenticated("The token is not base64url.")
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise Unauthenticated("The token is not base64url.") from None


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        value = strict_json.parse(data)
    except strict_json.NotStrictJson as error:
        raise Unauthenticated(f"The token does not hold strict JSON: {error}") from None
    if not isinstance(value, dict):
        raise Unauthenticated("The token does not hold JSON objects.")
    return value


def _is_for(audience: str, claimed: Any) -> bool:
    if isinstance(claimed, list):
        return len(claimed) <= AUDIENCES_MAX and audience in claimed
    return bool(claimed == audience)


def _text(claims: Mapping[str, Any], claim: str, chars_max: int) -> str:
    value = claims.get(claim)
    if not isinstance(value, str) or not 1 <= len(value) <= chars_max:
        raise Unauthenticated(f"The token's {claim} is not a text of 1 to {chars_max} characters.")
    return value


def _time(claims: Mapping[str, Any], claim: str) -> float | None:
    value = claims.get(claim)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Unauthenticated(f"The token's {claim} is not a Unix time in seconds.")
    return float(value)


def scopes_of(claims: Mapping[str, Any]) -> tuple[Scope, ...] | None:
    """Return the scopes to which the claims `scopes` and `ops` narrow a token; None for neither. With both, their
    intersection.

    Raises Unauthenticated for malformed claims.
    """
    operations, scopes = claims.get("ops"), claims.get("scopes")
    if operations is not None:
        operations = _operations(operations, "ops")
    if scopes is None:
        return None if operations is None else (Scope(("*",), operations),)
    if not isinstance(scopes, list) or len(scopes) > SCOPES_MAX:
        raise Unauthenticated(f"The token's scopes is not a list of at most {SCOPES_MAX} scopes.")
    read_scopes = tuple(_scope(scope) for scope in scopes)
    if operations is None:
        return read_scopes
    return tuple(Scope(scope.rps, scope.operations & operations) for scope in read_scopes)


def _scope(scope: Any) -> Scope:
    if not isinstance(scope, dict) or set(scope) != {"rps", "ops"}:
        raise Unauthenticated('A scope of the token is not {"rps": [...], "ops": [...]}.')
    rps = scope["rps"]
    if (
        not isinstance(rps, list)
        or len(rps) > PATTERNS_MAX
        or not all(isinstance(rp, str) and 1 <= len(rp) <= PATTERN_CHARS_MAX for rp in rps)
    ):
        raise Unauthenticated(
            f"The rps of a scope of the token are not a list of at most {PATTERNS_MAX} texts of 1 to {PATTERN_CHARS_MAX} characters."
        )
    return Scope(tuple(rps), _operations(scope["ops"], "scopes"))


def _operations(value: Any, claim: str) -> frozenset[str]:
    if (
        not isinstance(value, list)
        or len(value) > OPERATIONS_MAX
        or not all(isinstance(operation, str) for operation in value)
    ):
        raise Unauthenticated(f"The token's {claim} is not a list of at most {OPERATIONS_MAX} operations.")
    return frozenset(value)
