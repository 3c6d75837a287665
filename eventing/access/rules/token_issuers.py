"""Other domains whose tokens count here, by name. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TokenIssuers:
    """Other domains by name.

    Attributes:
        accepted: their tokens are.
        suspended: peers that an administrator has suspended: their tokens are not, and the refusal says so.
    """

    accepted: frozenset[str] = field(default=frozenset())
    suspended: frozenset[str] = field(default=frozenset())


def is_domain(issuer: str) -> bool:
    """Whether an issuer is named as domains are, not by an address as those of OpenID Connect."""
    return bool(issuer) and "://" not in issuer
