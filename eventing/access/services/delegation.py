"""Creation of Biscuits: tokens that their holders can narrow and delegate offline (docs/delegation.md)."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from biscuit_auth import BiscuitBuilder, Fact, PrivateKey
from django.utils import timezone

from eventing.access.rules.delegation import PREFIX, claim_facts
from eventing.access.rules.tokens import TOKEN_CHARS_MAX
from eventing.access.selectors.keys import key_get
from eventing.access.shapes import BiscuitAnswer
from eventing.audit.services import audit_record
from eventing.core.errors import Forbidden, InvalidRequest
from eventing.core.principals import Principal
from eventing.core.timestamps import timestamp

BISCUIT_CHARS_MAX = TOKEN_CHARS_MAX - 2048  # leaves room for some six blocks of its holders
_LAST_DATE = 253_402_300_799  # the end of the year 9999, the last year in RFC 3339


def biscuit_create(*, principal: Principal, now: datetime | None = None) -> BiscuitAnswer:
    """Sign a Biscuit equivalent to the token of `principal`: same claims, same scopes, same expiry.

    The Biscuit is revoked with that token, whether by its id, its subject or its key: the id is the same, and so is the
    signing key, also when another one signs by now; otherwise a stolen key could make Biscuits that outlive it. Nothing
    is stored.

    Raises Forbidden without a JWT of this domain (a narrowed Biscuit is narrowed further by its holder), InvalidRequest
    for a token with so many claims that no room would be left.
    """
    now = now or timezone.now()
    if not principal.local or not math.isfinite(principal.expires_at):
        raise Forbidden(
            "Only a token issued by this domain can be converted into a Biscuit; send one as a bearer token."
        )
    if principal.restriction is not None:
        raise Forbidden("This token is already a Biscuit; narrow it offline: herald token delegate.")
    key = key_get(principal.key_id)
    if key is None or (key.not_after is not None and key.not_after <= now):  # since it was verified
        raise Forbidden("The key that signed your token is no longer valid; get a new token.")
    token = sign_biscuit(principal.claims, {**key.private_jwk, "kid": key.kid})
    if len(token) > BISCUIT_CHARS_MAX:
        raise InvalidRequest(f"The token has too many claims: its Biscuit is over {BISCUIT_CHARS_MAX} characters.")
    ends = datetime.fromtimestamp(min(principal.expires_at, _LAST_DATE), UTC)
    audit_record(action="token.biscuit", principal=principal, on=("token", principal.token_id), now=now)
    return BiscuitAnswer(token, principal.token_id, principal.subject, principal.admin, timestamp(ends))


def sign_biscuit(claims: Mapping[str, Any], private_jwk: Mapping[str, Any]) -> str:
    """Sign the Biscuit for `claims` with `private_jwk` (an Ed25519 JWK with its `kid`), in its textual form."""
    builder = BiscuitBuilder()
    builder.add_fact(Fact("key({key})", {"key": private_jwk["x"]}))
    for fact in claim_facts(claims):
        builder.add_fact(Fact(f"{fact.name}({{claim}}, {{value}})", {"claim": fact.claim, "value": fact.value}))
    seed = base64.urlsafe_b64decode(private_jwk["d"] + "=" * (-len(private_jwk["d"]) % 4))
    text = builder.build(PrivateKey(f"ed25519-private/{seed.hex()}")).to_base64().rstrip("=")
    return f"{PREFIX}{private_jwk['kid']}:{text}"
