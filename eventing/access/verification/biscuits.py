"""Verification of delegated tokens: a Biscuit of this domain, narrowed by its holders offline.

    biscuit:KID:BASE64URL

`KID` names the key of the domain with which the chain of signatures begins: it selects the key, the signature decides.
The library verifies the chain; access/rules/biscuits.py and delegation.py parse the blocks, and no Datalog is run.
"""

from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from biscuit_auth import Biscuit, BiscuitValidationError, PublicKey

from eventing.access.rules import biscuits, tokens
from eventing.access.rules.delegation import PREFIX, attenuation_of, claims_of
from eventing.conf import config
from eventing.core.container import memoized
from eventing.core.ed25519 import BadPublicKey, public_key
from eventing.core.errors import Unauthenticated
from eventing.core.principals import Principal

_FORM = re.compile(rf"{PREFIX}([A-Za-z0-9_-]{{1,64}}):([A-Za-z0-9_-]{{1,{tokens.TOKEN_CHARS_MAX}}})={{0,2}}", re.ASCII)
_KEYS_CACHED = 256


def verify_biscuit(
    token: str,
    keys: Mapping[str, Mapping[str, Any]],
    now: float,
    *,
    issuer: str | None = None,
    audience: str | Sequence[str] | None = None,
) -> Principal:
    """Verify a delegated token and return its principal, narrowed by its holders.

    Args:
        token: the textual form, at most tokens.TOKEN_CHARS_MAX characters.
        keys: public JWKs by `kid`: all of the domain's that may still verify.
        now: Unix time in seconds.
        issuer: the only acceptable `iss`; None: this domain.
        audience: `aud` must be or contain one of these; None: this domain's name or address.

    Returns the principal of the JWT from which the Biscuit was made (its subject, token id, claims, scopes), with the
    attenuation as its restriction, expiring with the earliest of all expiries. Raises Unauthenticated with the fault;
    UnknownKey, if the key may be newer than `keys`.
    """
    if len(token) > tokens.TOKEN_CHARS_MAX:
        raise Unauthenticated(f"The token is longer than {tokens.TOKEN_CHARS_MAX} characters.")
    form = _FORM.fullmatch(token)
    if form is None:
        raise Unauthenticated("The token is not of the form biscuit:KEY:BASE64URL.")
    kid, text = form.groups()
    key = tokens.own_key(kid, keys, now)
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise Unauthenticated("The Biscuit is not base64url.") from None
    contents = biscuits.split(data)
    try:
        _verify_chain(data, _public_key(str(key["x"])), len(contents))
        biscuits.check_keys(data)
    except BadPublicKey as error:
        raise Unauthenticated(f"The Biscuit has a key that is not usable: {error}.") from None
    authority, *appended = biscuits.read(contents)
    if issuer is None or audience is None:
        settings = config()
        issuer = issuer or settings.domain
        audience = audience or (settings.domain, settings.base_url)
    said = tokens.Read({"kid": kid}, claims_of(authority), b"", b"")
    principal = tokens.own_principal(said, key, issuer=issuer, audience=audience, now=now)
    attenuation, ends = attenuation_of(appended)
    if ends <= now:
        raise Unauthenticated("The delegated token has expired; get a new one from its delegator.")
    if ends < principal.expires_at:  # in the claims too: tokens made from them expire no later
        principal = dataclasses.replace(principal, expires_at=ends, claims={**principal.claims, "exp": ends})
    return dataclasses.replace(principal, restriction=attenuation)


def _verify_chain(data: bytes, key: PublicKey, count: int) -> None:
    """Raise Unauthenticated unless every block is signed by the key in the block before it, beginning with `key`."""
    try:
        verified = Biscuit.from_bytes(data, key)
        same = verified.block_count() == count
    except BiscuitValidationError:
        same = False
    if not same:
        raise Unauthenticated("The Biscuit's signatures are wrong, or it is malformed.")


@memoized(maxsize=_KEYS_CACHED)
def _public_key(x: str) -> PublicKey:
    return PublicKey(f"ed25519/{public_key(x).public_bytes_raw().hex()}")
