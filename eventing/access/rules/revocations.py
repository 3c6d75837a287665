"""Coverage of revocations, as arithmetic and in memory. Pure: rows and the time are arguments.

A revocation names a token by its id, a key by its id, or a subject: of a subject, all tokens issued before a time are
revoked, including those without an issue time. Ids and subjects are meaningful only together with their issuer:
otherwise a client of a foreign issuer could choose the id of another bearer's token for its own, and revoke it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from eventing.access.rules.tokens import SKEW_S
from eventing.core.principals import Principal

Kind = Literal["token", "subject", "key"]
KINDS: Final[tuple[Kind, ...]] = ("token", "subject", "key")

TOKEN_REVOKED = "The token has been revoked; ask for a new one."  # noqa: S105 - a sentence
SUBJECT_REVOKED = "The tokens of this subject were revoked; ask for a new one."
KEY_REVOKED = "The key that signed the token has been revoked; ask for a new token."


@dataclass(frozen=True, slots=True)
class RevocationEntry:
    """One revocation in a process's memory.

    Attributes:
        serial: increases with every change; of two entries for the same thing the one with the larger serial prevails.
        kind, issuer, value: the revoked token id, subject or key id `value` of `issuer`.
        before: of a subject, tokens issued before this Unix time in seconds are revoked; 0 for other kinds.
        until: Unix time in seconds after which nothing that it covers can be valid any more.
        lifted: whether the entry lifts the revocation.
    """

    serial: int
    kind: Kind
    issuer: str
    value: str
    before: float
    until: float
    lifted: bool = False


def moment(now: float, *, local: bool) -> int:
    """Return the time before which a subject's tokens count as issued by now, Unix seconds.

    `iat` is in whole seconds, so tokens of the current second are covered; a foreign issuer's clock may be ahead by the
    tolerance for its tokens.
    """
    return math.floor(now) + 1 + (0 if local else SKEW_S)


def issuer_of(principal: Principal) -> str:
    """Return the namespace of the principal's ids: its issuer, or ISSUER|JWKS where a policy named the keys (see Principal)."""
    return f"{principal.issuer}|{principal.keys_from}" if principal.keys_from else principal.issuer


class RevocationSet:
    """Revocations with look-up in constant time. Single operations are thread-safe.

    Memory: about 400 bytes for each entry (measured).
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[RevocationEntry] = ()) -> None:
        self._entries: dict[tuple[Kind, str, str], RevocationEntry] = {}
        for entry in entries:
            self.apply(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def apply(self, entry: RevocationEntry) -> bool:
        """Apply an entry, in any order; harmless when repeated. Return True if anything changed."""
        key = (entry.kind, entry.issuer, entry.value)
        known = self._entries.get(key)
        if known is not None and known.serial >= entry.serial:
            return False
        if not entry.lifted:
            self._entries[key] = entry
        elif known is not None:
            del self._entries[key]
        else:
            return False
        return True

    def covers_key(self, issuer: str, key_id: str) -> str | None:
        """Return the reason why everything that the key signed is revoked; None if it is not."""
        return KEY_REVOKED if ("key", issuer, key_id) in self._entries else None

    def covers(self, principal: Principal) -> str | None:
        """Return the reason why the principal's token is revoked, as a sentence for its bearer; None if it is not."""
        entries = self._entries
        if not entries:
            return None
        issuer = issuer_of(principal)
        if principal.token_id and ("token", issuer, principal.token_id) in entries:
            return TOKEN_REVOKED
        if principal.key_id and ("key", issuer, principal.key_id) in entries:
            return KEY_REVOKED
        subject = entries.get(("subject", issuer, principal.subject))
        if subject is not None and not _issued_since(principal, subject.before):
            return SUBJECT_REVOKED
        return None


def _issued_since(principal: Principal, begin: float) -> bool:
    issued_at = principal.claims.get("iat")
    if isinstance(issued_at, bool) or not isinstance(issued_at, int | float):
        return False
    return issued_at >= begin
