"""Key sets of foreign issuers (RFC 7517): parsed without trust, and used to verify tokens. Pure.

Against algorithm confusion, parsing binds a key to its algorithms by its type alone, and a token's `alg` must be one of
these. A shared secret is never a key here. A mistake that an honest issuer does not make (two keys of one id, a private
key published) refuses the whole set: a holder of earlier keys continues to use them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

from eventing.access.rules import tokens
from eventing.core import strict_json
from eventing.core.algorithms import ED25519
from eventing.core.ed25519 import KEY_BYTES, BadPublicKey, public_key
from eventing.core.errors import Unauthenticated
from eventing.core.principals import Principal, Scope

BYTES_MAX = 256 * 1024  # bound: bytes of a key set or discovery document; the document is refused
# Large providers publish about ten.
KEYS_MAX = 100  # bound: keys of a foreign key set; the key set is refused
KID_CHARS_MAX = 255  # as of our own
RSA_BITS = (2048, 4096)  # below: weak (NIST SP 800-131A). Above: a verification would cost more than a token is worth
RSA_EXPONENT_MAX = 2**32  # a huge exponent makes verification slow on purpose
PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
# Members of a header that do not affect verification, or only repeat `kid`. Any other is refused: jwk, jku, x5u and x5c
# supply a key, crit and b64 change the signed bytes.
HEADER_MEMBERS = frozenset({"alg", "typ", "kid", "x5t", "x5t#S256"})
TYPES = ("JWT", "AT+JWT")  # RFC 7519, RFC 9068; absent in some ID tokens


class BadKeys(Exception):
    """The document is not a usable key set; the message is a sentence for the operator."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A public key, bound to the algorithms that it may verify."""

    kid: str
    algorithms: tuple[str, ...]
    jwk: Mapping[str, str]


def parse(document: bytes, algorithms: Collection[str]) -> dict[str, ForeignKey]:
    """Parse the keys of a JWKS that can verify one of `algorithms`, by `kid`; others, and those without `kid`, are
    ignored.

    Raises BadKeys.
    """
    keys = _object(document, "The key set").get("keys")
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise BadKeys("The key set has no list of keys.")
    if len(keys) > KEYS_MAX:
        raise BadKeys(f"The key set has {len(keys)} keys; at most {KEYS_MAX} are accepted.")
    found: dict[str, ForeignKey] = {}
    seen: set[str] = set()
    for key in keys:
        if PRIVATE_MEMBERS & set(key):
            raise BadKeys("The key set publishes a private key; its issuer must replace it.")
        kid = key.get("kid")
        if not isinstance(kid, str) or not 1 <= len(kid) <= KID_CHARS_MAX:
            continue
        if kid in seen:
            raise BadKeys(f"The key set has two keys of the id {kid!r}.")
        seen.add(kid)
        usable = _usable(key, kid)
        if usable is not None and set(usable.algorithms) & set(algorithms):
            found[kid] = usable
    return found


def parse_discovery(document: bytes, issuer: str) -> str:
    """Return the `jwks_uri` of an OpenID provider's configuration, which must be that of `issuer`. Raises BadKeys."""
    members = _object(document, "The discovery document")
    if members.get("issuer") != issuer:
        raise BadKeys("The discovery document is of another issuer.")
    address = members.get("jwks_uri")
    if not isinstance(address, str):
        raise BadKeys("The discovery document names no jwks_uri.")
    return address


def check_header(read: tokens.Read) -> None:
    """Check a foreign token's header before anything is fetched for it. Raises Unauthenticated."""
    header = read.header
    if set(header) - HEADER_MEMBERS:
        raise Unauthenticated(f"The token's header has members other than {', '.join(sorted(HEADER_MEMBERS))}.")
    kind = header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.upper() not in TYPES:
        raise Unauthenticated("The token's typ is not JWT.")
    if not 1 <= len(read.key_id) <= KID_CHARS_MAX:
        raise Unauthenticated("The token's header names no key (kid).")


def check_algorithm(read: tokens.Read, algorithms: Collection[str]) -> None:
    """Raise Unauthenticated unless the token's `alg` is one of `algorithms`."""
    algorithm = read.header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in algorithms:
        raise Unauthenticated(f"The token's alg is not {' or '.join(algorithms)}.")


def verify(read: tokens.Read, token: str, key: ForeignKey, algorithms: Collection[str]) -> None:
    """Verify a token's signature. Raises Unauthenticated.

    Args:
        read: result of tokens.read for `token`; `check_header` has passed.
        algorithms: algorithms that this domain accepts; the key's own must agree.
    """
    check_algorithm(read, [name for name in algorithms if name in key.algorithms])
    if key.jwk["kty"] == "OKP":
        tokens.verify_ed25519(key.jwk["x"], read)
        return
    kind = ECKey if key.jwk["kty"] == "EC" else RSAKey
    try:
        jws.deserialize_compact(token.encode(), kind.import_key(dict(key.jwk)), algorithms=list(key.algorithms))
    except (JoseError, ValueError):
        raise Unauthenticated("The token's signature is wrong.") from None


def principal_of(read: tokens.Read, *, audience: Collection[str], now: float) -> Principal:
    """Make the principal of a verified foreign token: its claims grant nothing by themselves, `ops` and `scopes` only
    narrow.

    Raises Unauthenticated.
    """
    return tokens.principal_of(
        read, issuer=read.issuer, audience=tuple(audience), now=now, scopes=_scopes(read.claims), local=False
    )


def _scopes(claims: Mapping[str, Any]) -> tuple[Scope, ...] | None:
    """Return the scopes to which the claims narrow the token. Claims `ops` and `scopes` in other issuers' forms are ignored."""
    ours: dict[str, Any] = {}
    operations, scopes = claims.get("ops"), claims.get("scopes")
    if isinstance(operations, list) and all(isinstance(operation, str) for operation in operations):
        ours["ops"] = operations
    if isinstance(scopes, list) and scopes and all(isinstance(scope, dict) for scope in scopes):
        ours["scopes"] = scopes
    return tokens.scopes_of(ours)


def _object(document: bytes, what: str) -> dict[str, Any]:
    if len(document) > BYTES_MAX:
        raise BadKeys(f"{what} is longer than {BYTES_MAX} bytes.")
    try:
        value = strict_json.parse(document)
    except strict_json.NotStrictJson as error:
        raise BadKeys(f"{what} is not strict JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadKeys(f"{what} is not a JSON object.")
    return value


def _usable(key: Mapping[str, Any], kid: str) -> ForeignKey | None:
    """Return the key if it is meant for signatures and of a supported kind and size; else None, as if it were absent."""
    operations = key.get("key_ops")
    if key.get("use", "sig") != "sig" or (operations is not None and operations != ["verify"]):
        return None
    usable = _of_kind(key, kid)
    if usable is None or key.get("alg", usable.algorithms[0]) not in usable.algorithms:
        return None
    return usable


def _of_kind(key: Mapping[str, Any], kid: str) -> ForeignKey | None:
    match key.get("kty"), key.get("crv"):
        case "OKP", "Ed25519":
            return _ed25519(key.get("x"), kid)
        case "EC", "P-256":
            x, y = _number(key.get("x"), 32), _number(key.get("y"), 32)
            if x is None or y is None:
                return None
            jwk = {"kty": "EC", "crv": "P-256", "x": x, "y": y}
            try:
                ECKey.import_key(dict(jwk)).public_key  # noqa: B018 - refuses a point that is not on the curve
            except (JoseError, ValueError):
                return None
            return ForeignKey(kid, ("ES256",), jwk)
        case "RSA", None:
            n, e = _number(key.get("n"), RSA_BITS[1] // 8), _number(key.get("e"), 8)
            if n is None or e is None:
                return None
            modulus, exponent = _integer(n), _integer(e)
            if not RSA_BITS[0] <= modulus.bit_length() <= RSA_BITS[1] or modulus % 2 == 0:
                return None
            if not 3 <= exponent < RSA_EXPONENT_MAX or exponent % 2 == 0:
                return None
            return ForeignKey(kid, ("RS256",), {"kty": "RSA", "n": n, "e": e})
        case _:
            return None


def _ed25519(value: Any, kid: str) -> ForeignKey | None:
    """Return the key, with any padding. Raises BadKeys for an invalid key, which no honest issuer publishes by mistake."""
    x = _number(value, KEY_BYTES)
    if x is None:
        return None
    x = x.rstrip("=")
    try:
        public_key(x)
    except BadPublicKey as error:
        raise BadKeys(f"The key {kid!r} of the key set is not usable: {error}.") from None
    return ForeignKey(kid, ED25519, {"kty": "OKP", "crv": "Ed25519", "x": x})


def _number(value: Any, bytes_max: int) -> str | None:
    """Return base64url of at most `bytes_max` bytes, of exactly 32 where that is the bound; None for anything else."""
    if not isinstance(value, str) or not 1 <= len(value) <= bytes_max * 2 or not value.isascii():
        return None
    try:
        data = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    fits = len(data) == bytes_max if bytes_max == 32 else 1 <= len(data) <= bytes_max
    return value if fits else None


def _integer(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")
