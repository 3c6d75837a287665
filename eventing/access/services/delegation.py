"""Making Biscuits: a token that its holder can narrow and hand on without asking us (docs/delegation.md)."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from biscuit_auth import BiscuitBuilder, Fact, PrivateKey
from django.utils import timezone

from eventing.access.rules.delegation import PREFIX, claim_facts
from eventing.access.rules.tokens import TOKEN_CHARS_MAX
from eventing.access.selectors.keys import key_get
from eventing.audit.services import audit_record
from eventing.core.errors import Forbidden, InvalidRequest
from eventing.core.principals import Principal

BISCUIT_CHARS_MAX = TOKEN_CHARS_MAX - 2048  # leaves room for some six blocks of its holders
_LAST_DATE = 253_402_300_799  # the end of the year 9999, which is the last that a timestamp can say


@dataclass(frozen=True, slots=True)
class IssuedBiscuit:
    """A Biscuit and the JWT that it stands for: `id` is that one's jti, and it ends with it."""

    token: str
    id: str
    subject: str
    admin: bool
    expires_at: datetime


def biscuit_create(*, principal: Principal, now: datetime | None = None) -> IssuedBiscuit:
    """Sign a Biscuit that says exactly what the token of `principal` says: same claims, same scopes, same end.

    It is revoked with that token, whether by its id, its subject or its key: the id is the same, and so is the key that
    signs it, also when another one signs by now; else a stolen key could make what outlives it. Nothing is stored.

    Raises Forbidden for whoever shows no JWT of this domain (or a narrowed Biscuit, which its holder narrows further by
    himself), InvalidRequest for a token with so many claims that no room would be left.
    """
    now = now or timezone.now()
    if not principal.local or not math.isfinite(principal.expires_at):
        raise Forbidden("Only a token that this domain issued can be made a Biscuit; show one as a bearer.")
    if principal.restriction is not None:
        raise Forbidden("This token is delegated already; narrow it yourself: herald token delegate.")
    key = key_get(principal.key_id)
    if key is None or (key.not_after is not None and key.not_after <= now):  # since it was verified
        raise Forbidden("The key that signed your token is no longer the domain's; ask for a new token.")
    token = sign_biscuit(principal.claims, {**key.private_jwk, "kid": key.kid})
    if len(token) > BISCUIT_CHARS_MAX:
        raise InvalidRequest(f"The token has too many claims: its Biscuit is over {BISCUIT_CHARS_MAX} characters.")
    ends = datetime.fromtimestamp(min(principal.expires_at, _LAST_DATE), UTC)
    audit_record(action="token.biscuit", principal=principal, on=("token", principal.token_id), now=now)
    return IssuedBiscuit(token, principal.token_id, principal.subject, principal.admin, ends)


def sign_biscuit(claims: Mapping[str, Any], private_jwk: Mapping[str, Any]) -> str:
    """The Biscuit that says `claims`, signed with `private_jwk` (an Ed25519 JWK with its `kid`), in its textual form."""
    builder = BiscuitBuilder()
    builder.add_fact(Fact("key({key})", {"key": private_jwk["x"]}))
    for fact in claim_facts(claims):
        builder.add_fact(Fact(f"{fact.name}({{claim}}, {{value}})", {"claim": fact.claim, "value": fact.value}))
    seed = base64.urlsafe_b64decode(private_jwk["d"] + "=" * (-len(private_jwk["d"]) % 4))
    text = builder.build(PrivateKey(f"ed25519-private/{seed.hex()}")).to_base64().rstrip("=")
    return f"{PREFIX}{private_jwk['kid']}:{text}"
