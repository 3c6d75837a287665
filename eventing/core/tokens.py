"""Tokens of this domain: JWTs signed with its Ed25519 keys. Pure: keys, names and the time are passed in.

A token's header is {"alg": "Ed25519", "typ": "JWT", "kid"}; its claims are iss (the issuing domain), aud (the domain it
is for), sub, iat, exp, jti, and optionally admin (true: administers the domain) and ops (operations it is narrowed to).
Verification is deliberately narrower than RFC 7519: one algorithm (under its RFC 9864 and its older name), the key chosen
by `kid` only, no extension header, an end is required.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from joserfc import jws
from joserfc.jwk import OKPKey

from eventing.core import strict_json
from eventing.core.errors import Unauthenticated
from eventing.core.principals import Principal, Scope

ALGORITHM = "Ed25519"
ALGORITHMS = (ALGORITHM, "EdDSA")  # RFC 9864, and the name of RFC 8037 that older libraries write
TOKEN_CHARS_MAX = 8 * 1024  # what proxies commonly allow a header line
CLAIMS_MAX = 64
SUBJECT_CHARS_MAX = 255
ID_CHARS_MAX = 255
OPERATIONS_MAX = 32
AUDIENCES_MAX = 32
SKEW_S = 30  # how far the clock of whoever issued a token may be ahead of ours
_KEYS_CACHED = 256
_HEADER_MEMBERS = {"alg", "typ", "kid"}
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")


def sign(claims: Mapping[str, Any], private_jwk: Mapping[str, Any]) -> str:
    """Sign `claims` with `private_jwk` (an Ed25519 JWK with its `kid`). Returns the compact form."""
    header = {"alg": ALGORITHM, "typ": "JWT", "kid": private_jwk["kid"]}
    key = OKPKey.import_key({name: private_jwk[name] for name in ("kty", "crv", "x", "d")})
    payload = json.dumps(claims, separators=(",", ":"), ensure_ascii=False).encode()
    return jws.serialize_compact(header, payload, key, algorithms=[ALGORITHM])


def verify(token: str, keys: Mapping[str, Mapping[str, Any]], *, issuer: str, audience: str, now: float) -> Principal:
    """Who a token speaks for.

    Args:
        token: the compact form.
        keys: public JWKs by `kid`: all that may still verify.
        issuer: the only acceptable `iss`.
        audience: what `aud` must be or contain.
        now: Unix time in seconds.

    Raises Unauthenticated, saying what is wrong with the token.
    """
    key_id, claims = _verified_claims(token, keys)
    if len(claims) > CLAIMS_MAX:
        raise Unauthenticated(f"The token has more than {CLAIMS_MAX} claims.")
    if claims.get("iss") != issuer:
        raise Unauthenticated(f"The token was not issued by {issuer}.")
    if not _is_for(audience, claims.get("aud")):
        raise Unauthenticated(f"The token is not for {audience}.")
    subject = _text(claims, "sub", SUBJECT_CHARS_MAX)
    if "jti" in claims:
        _text(claims, "jti", ID_CHARS_MAX)
    expires_at = _time(claims, "exp")
    if expires_at is None:
        raise Unauthenticated("The token has no exp claim; a token must end.")
    if expires_at <= now:
        raise Unauthenticated("The token has expired; get a new one.")
    for claim in ("nbf", "iat"):
        begins_at = _time(claims, claim)
        if begins_at is not None and begins_at > now + SKEW_S:
            raise Unauthenticated(f"The token's {claim} lies in the future; check the issuer's clock.")
    admin = claims.get("admin", False)
    if not isinstance(admin, bool):
        raise Unauthenticated("The token's admin claim is not true or false.")
    return Principal(
        issuer,
        subject,
        admin,
        expires_at,
        claims,
        _scopes(claims),
        token_id=str(claims.get("jti", "")),
        key_id=key_id,
    )


def _verified_claims(token: str, keys: Mapping[str, Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The key's `kid` and the claims of a token whose signature holds."""
    if len(token) > TOKEN_CHARS_MAX:
        raise Unauthenticated(f"The token is longer than {TOKEN_CHARS_MAX} characters.")
    parts = token.split(".")
    if len(parts) != 3 or not token.isascii():
        raise Unauthenticated("The token is not a signed JWT (three parts joined by dots).")
    header = _json_object(_decoded(parts[0]))
    if set(header) - _HEADER_MEMBERS:
        raise Unauthenticated("The token's header has members other than alg, typ and kid.")
    if header.get("alg") not in ALGORITHMS:
        raise Unauthenticated(f"The token's alg is not {ALGORITHM}.")
    kind = header.get("typ")
    if not isinstance(kind, str) or kind.upper() != "JWT":
        raise Unauthenticated("The token's typ is not JWT.")
    kid = header.get("kid")
    if not isinstance(kid, str) or kid not in keys:
        raise Unauthenticated("The token's kid names no key of this domain.")
    try:
        _public_key(str(keys[kid]["x"])).verify(_decoded(parts[2]), f"{parts[0]}.{parts[1]}".encode())
    except InvalidSignature:
        raise Unauthenticated("The token's signature is wrong.") from None
    return kid, _json_object(_decoded(parts[1]))


@lru_cache(maxsize=_KEYS_CACHED)
def _public_key(x: str) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(x + "=" * (-len(x) % 4)))


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


def _scopes(claims: Mapping[str, Any]) -> tuple[Scope, ...] | None:
    operations = claims.get("ops")
    if operations is None:
        return None
    if (
        not isinstance(operations, list)
        or len(operations) > OPERATIONS_MAX
        or not all(isinstance(operation, str) for operation in operations)
    ):
        raise Unauthenticated(f"The token's ops is not a list of at most {OPERATIONS_MAX} operations.")
    return (Scope(("*",), frozenset(operations)),)
