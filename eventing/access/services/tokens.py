"""Bearer tokens of this domain. They are not stored; they are valid until expiry or revocation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from eventing.access.rules import tokens
from eventing.access.selectors.keys import signing_key
from eventing.access.services.keys import ensure_domain_key
from eventing.audit.services import audit_record
from eventing.conf import config
from eventing.core import leases
from eventing.core.errors import InvalidRequest
from eventing.core.names import NAME_CHARS_MAX, is_id, normalise
from eventing.core.principals import OPERATIONS, Principal, Scope
from eventing.sql.random_ids import random_id

# bound: patterns of rendezvous points that the audit names of a token; the others are in the token only
AUDITED_RPS = 5
# bound: characters that the audit names of a pattern; the rest is cut, so that the entry holds its details
AUDITED_RP_CHARS = 120


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token and what was granted: `granted_s` seconds, until `expires_at`."""

    token: str
    id: str
    subject: str
    admin: bool
    operations: tuple[str, ...] | None
    scopes: tuple[Scope, ...] | None
    granted_s: int
    expires_at: datetime


def token_create(
    *,
    subject: str,
    admin: bool = False,
    lease_s: int | None = None,
    operations: Sequence[str] | None = None,
    scopes: Sequence[Mapping[str, Sequence[str]]] | None = None,
    audience: str | None = None,
    principal: Principal | None = None,
    now: datetime | None = None,
) -> IssuedToken:
    """Sign a token of this domain.

    Args:
        subject: subject, 1 to 255 characters, without `#` (which identities from elsewhere contain).
        admin: whether it administers the domain.
        lease_s: lifetime in seconds; None for the default lease. Shortened to the longest lease, and to the end of the
            signing key.
        operations: operations to which it is narrowed (of core.principals.OPERATIONS); None for no narrowing.
        scopes: RPs and operations to which it is narrowed, [{"rps": [patterns], "ops": [operations]}] with patterns as
            for core.principals.Scope; None for no narrowing. With `operations`, the intersection of both.
        audience: audience; None for this domain. A token for another domain is refused here.
        principal: requesting principal, for the audit; None for the user of a command on the server's machine.

    Raises InvalidRequest.
    """
    now = now or timezone.now()
    if not 1 <= len(subject) <= tokens.SUBJECT_CHARS_MAX or "\0" in subject or "#" in subject:
        raise InvalidRequest(f"subject is a text of 1 to {tokens.SUBJECT_CHARS_MAX} characters without #.")
    if operations is not None and not set(operations) <= set(OPERATIONS):
        raise InvalidRequest(f"ops is a list of {', '.join(OPERATIONS)}.")
    scope_claim = None if scopes is None else _scopes(scopes)
    if audience is not None and not 1 <= len(audience) <= tokens.SUBJECT_CHARS_MAX:
        raise InvalidRequest(f"audience is a text of 1 to {tokens.SUBJECT_CHARS_MAX} characters.")
    granted = leases.grant(lease_s, now, default_s=config().lease_s_default, longest_s=config().lease_s_max)
    ensure_domain_key(now=now)
    key = signing_key(now)
    if key is None:  # only if it was retired just now
        raise InvalidRequest("The domain has no valid key at present; repeat the request.")
    issued_at = int(now.timestamp())
    operations = None if operations is None else tuple(sorted(set(operations)))
    ends_at = min(issued_at + granted.granted_s, key.get("exp", math.inf))
    claims: dict[str, Any] = {
        "iss": config().domain,
        "aud": config().domain if audience is None else audience,
        "sub": subject,
        "iat": issued_at,
        "exp": ends_at,
        "jti": random_id(),
        **({"admin": True} if admin else {}),
        **({"ops": list(operations)} if operations is not None else {}),
        **({"scopes": scope_claim} if scope_claim is not None else {}),
    }
    token = tokens.sign(claims, key)
    if len(token) > tokens.TOKEN_CHARS_MAX:
        raise InvalidRequest(f"The token would be longer than {tokens.TOKEN_CHARS_MAX} characters. State fewer scopes.")
    signed: dict[str, Any] = {
        "subject": subject,
        "admin": admin,
        "ops": _granted(operations, scope_claim),
        "scopes": None if scope_claim is None else len(scope_claim),
        "rps": None if scope_claim is None else _named(scope_claim),
        "kid": key["kid"],
        "audience": audience,
        "granted_s": ends_at - issued_at,
    }
    audit_record(action="token.create", principal=principal, on=("token", claims["jti"]), details=signed, now=now)
    return IssuedToken(
        token,
        claims["jti"],
        subject,
        admin,
        operations,
        None if scope_claim is None else tuple(Scope(tuple(one["rps"]), frozenset(one["ops"])) for one in scope_claim),
        ends_at - issued_at,
        datetime.fromtimestamp(claims["exp"], tz=now.tzinfo),
    )


def _named(scopes: Sequence[Mapping[str, list[str]]]) -> list[str]:
    """Return the first patterns of scopes, for the audit."""
    return [rp[:AUDITED_RP_CHARS] for scope in scopes for rp in scope["rps"]][:AUDITED_RPS]


def _granted(operations: Sequence[str] | None, scopes: Sequence[Mapping[str, list[str]]] | None) -> list[str] | None:
    """Return the operations that claims `ops` and `scopes` leave somewhere, for the audit; None for all."""
    if scopes is None:
        return None if operations is None else list(operations)
    stated = {operation for scope in scopes for operation in scope["ops"]}
    return sorted(stated if operations is None else stated & set(operations))


def _scopes(scopes: Sequence[Mapping[str, Sequence[str]]]) -> list[dict[str, list[str]]]:
    """Make the claim `scopes`, with names in their full form. Raises InvalidRequest."""
    if len(scopes) > tokens.SCOPES_MAX:
        raise InvalidRequest(f"scopes has at most {tokens.SCOPES_MAX} members.")
    return [_scope(scope) for scope in scopes]


def _scope(scope: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    rps, operations = scope.get("rps", ()), scope.get("ops", ())
    if not rps or len(rps) > tokens.PATTERNS_MAX:
        raise InvalidRequest(f"A scope names 1 to {tokens.PATTERNS_MAX} patterns of rendezvous points (rps).")
    if not operations or not set(operations) <= set(OPERATIONS):
        raise InvalidRequest(f"The ops of a scope are of {', '.join(OPERATIONS)}, at least one.")
    return {"rps": [_pattern(rp) for rp in rps], "ops": sorted(set(operations))}


def _pattern(text: str) -> str:
    """Parse a pattern of RPs as for Scope: names without leading slash are placed under this domain."""
    if text == "*" or is_id(text):
        return text
    if len(text) > NAME_CHARS_MAX:
        raise InvalidRequest(f"A pattern of rendezvous points has at most {NAME_CHARS_MAX} characters.")
    if text.endswith("/*"):
        return f"{normalise(text[:-1] + 'x', config().domain)[:-2]}*"  # /authority/* is valid, although /authority/ is not a name
    if "*" in text:
        raise InvalidRequest("A pattern is an id, a name, a subtree of names such as /authority/a/*, or * for all.")
    return normalise(text, config().domain)


__all__ = ["IssuedToken", "ensure_domain_key", "token_create"]
