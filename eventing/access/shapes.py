"""Shapes of tokens, keys and revocations."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from eventing.access.rules.revocations import KINDS
from eventing.access.rules.tokens import PATTERN_CHARS_MAX, PATTERNS_MAX
from eventing.core.principals import OPERATIONS
from eventing.core.shapes import Count, Moment, Shape, doc, one_of, page_of

Operation = Annotated[str, one_of(*OPERATIONS)]


class ScopeAnswer(Shape):
    """A scope of a token: operations at rendezvous points."""

    rps: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=PATTERN_CHARS_MAX)]],
        Meta(min_length=1, max_length=PATTERNS_MAX),
        doc("Patterns: an id, a name /authority/a/b/, all names under one /authority/a/*, or * for all."),
    ]
    ops: Annotated[list[Operation], Meta(min_length=1, max_length=len(OPERATIONS))]


class TokenAnswer(Shape):
    """A signed token."""

    token: Annotated[str, doc("The JWT; shown once.")]
    id: Annotated[str, doc("Its jti.")]
    subject: str
    admin: bool
    ops: list[Operation] | None
    scopes: list[ScopeAnswer] | None
    granted_s: Count
    expires_at: Moment


class IssuedTokenAnswer(Shape):
    """A token that was issued, as the audit records it; not the token itself."""

    id: Annotated[str, doc("Its jti, with which it is revoked.")]
    subject: str
    admin: bool
    ops: Annotated[list[Operation] | None, doc("Operations to which it is narrowed; null: all.")]
    rps: Annotated[list[str] | None, doc("Patterns of rendezvous points that its scopes name, the first 5; null: all.")]
    scopes: Annotated[Count | None, doc("Number of its scopes; null: none.")]
    audience: Annotated[str | None, doc("Domain that accepts it, if another.")]
    issued_by: Annotated[str, doc("Identity of the principal that created it.")]
    issued_at: Moment
    expires_at: Moment
    state: Annotated[str, one_of("valid", "expired", "revoked")]


IssuedTokenPage = page_of(IssuedTokenAnswer)


class BiscuitAnswer(Shape):
    """A signed Biscuit."""

    token: Annotated[str, doc("The Biscuit, biscuit:KEY:BASE64URL; shown once.")]
    id: Annotated[str, doc("The jti of the token from which it was made and with which it is revoked.")]
    subject: str
    admin: bool
    expires_at: Moment


class KeyData(Shape):
    """A signing key; nothing in it is secret."""

    kid: Annotated[str, doc("RFC 7638 thumbprint of the key.")]
    not_before: Annotated[Moment, doc("Time from which the key signs.")]
    not_after: Annotated[Moment | None, doc("Time until which the key verifies; null: no end yet.")]
    created_at: Moment


class KeyAnswer(KeyData):
    """A signing key, and its state."""

    state: Annotated[str, one_of("published", "signing", "verifying", "retired")]


class KeyList(Shape):
    """The domain's signing keys."""

    items: list[KeyAnswer]


class RevocationAnswer(Shape):
    """A revocation."""

    id: str
    kind: Annotated[str, one_of(*KINDS)]
    issuer: str
    value: Annotated[str, doc("The jti, the subject, or the kid.")]
    reason: Annotated[str, doc("For people; may be empty.")]
    by: Annotated[str, doc("Identity of the principal that revoked.")]
    before: Annotated[Moment | None, doc("Of a subject: its tokens issued before this time are revoked.")]
    created_at: Moment
    until: Annotated[Moment, doc("Time after which nothing covered by the revocation can be valid.")]


RevocationPage = page_of(RevocationAnswer)
