"""Other domains whose tokens are accepted here, by name. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TokenIssuers:
    """Other domains by name.

    Attributes:
        accepted: domains whose tokens are accepted.
        suspended: peers that an administrator has suspended: their tokens are refused, with that reason.
    """

    accepted: frozenset[str] = field(default=frozenset())
    suspended: frozenset[str] = field(default=frozenset())


def is_domain(issuer: str) -> bool:
    """Return True if an issuer is named as domains are, not by an address as in OpenID Connect."""
    return bool(issuer) and "://" not in issuer
