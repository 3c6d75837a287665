"""Principals: the verified claims of a token. Pure; made by the verification of tokens, read everywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

OPERATIONS = ("describe", "publish", "subscribe", "history", "administer", "replicate")
"""Operations that a policy rule, a scope or a role allows."""


@dataclass(frozen=True, slots=True)
class Scope:
    """RPs and operations to which a token is narrowed.

    Attributes:
        rps: patterns: an RP's id, a name `/authority/a/b/`, a prefix of names `/authority/a/*`, or `*` for all.
        operations: of OPERATIONS.
    """

    rps: tuple[str, ...]
    operations: frozenset[str]

    def covers(self, operation: str, rp: str, name: str) -> bool:
        """Return True if the scope grants `operation` at the RP of this id and name (empty: the RP has no name)."""
        return operation in self.operations and any(_covers(pattern, rp, name) for pattern in self.rps)


def _covers(pattern: str, rp: str, name: str) -> bool:
    if pattern in ("*", rp):
        return True
    if not name:
        return False
    return name.startswith(pattern[:-1]) if pattern.endswith("/*") else name == pattern


class Restriction(Protocol):
    """Conditions that narrow a principal beyond its scopes and are evaluated at each use (those of a delegated token)."""

    def permits(self, operation: str, rp: str, name: str) -> bool:
        """Return True if the conditions hold now for `operation` at this RP; `rp` is empty for operations of the domain."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Verified claims of a token.

    Attributes:
        issuer: issuer of the token: this domain's name, or a foreign issuer; empty for a stranger without token.
        subject: the `sub` claim.
        admin: whether the token administers this domain; only this domain's own tokens can.
        expires_at: Unix time in seconds at which the token expires.
        claims: all verified claims, for predicates.
        scopes: RPs and operations to which the token is narrowed; None for no narrowing.
        local: whether this domain issued the token.
        token_id: the `jti` claim; empty if it has none.
        key_id: the `kid` of the key that signed it.
        restriction: conditions that are evaluated at each use; None for none.
        keys_from: JWKS address whose key signed a foreign token, if a policy names one; empty for the keys that the
            issuer itself publishes. The author of a policy can name any address, so a bearer by such a key is never the
            same as a bearer by the issuer's own keys.
    """

    issuer: str
    subject: str
    admin: bool
    expires_at: float
    claims: Mapping[str, Any]
    scopes: tuple[Scope, ...] | None = None
    local: bool = True
    token_id: str = ""
    key_id: str = ""
    restriction: Restriction | None = None
    keys_from: str = ""

    @property
    def identity(self) -> str:
        """One name for the bearer across issuers, as kept in SQL: the subject, or ISSUER#SUBJECT from elsewhere.

        No local subject contains `#`, and no issuer `#` or `|`, so nobody can take another's name. A bearer by keys
        from a policy's own JWKS address is ISSUER|JWKS#SUBJECT.
        """
        if self.local:
            return self.subject
        return f"{self.issuer}{'|' if self.keys_from else ''}{self.keys_from}#{self.subject}"

    @property
    def anonymous(self) -> bool:
        """True if the request carried no credential."""
        return not self.issuer

    @property
    def narrowed(self) -> bool:
        """True if the token grants less than its bearer's roles and policies allow."""
        return self.scopes is not None or self.restriction is not None

    def permits(self, operation: str, rp: str = "", name: str = "") -> bool:
        """Return True if the token itself grants `operation` at the RP of this id and name; the policy is checked apart."""
        if self.scopes is not None and not any(scope.covers(operation, rp, name) for scope in self.scopes):
            return False
        return self.restriction is None or self.restriction.permits(operation, rp, name)


def identity_seen_from(domain: str, home: str, identity: str) -> str:
    """Translate an identity as kept at `home` into the name of the same bearer at `domain` (Principal.identity)."""
    if domain == home:
        return identity
    issuer, separator, subject = identity.partition("#")
    if not separator:
        return f"{home}#{identity}"
    return subject if issuer == domain else identity


ANONYMOUS = Principal("", "", False, float("inf"), {}, local=False)
