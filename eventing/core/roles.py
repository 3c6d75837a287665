"""Roles of the console's users, and the rights of each. Pure.

An administrator may do everything. An operator acts on everything in the domain (rendezvous points, subscriptions,
leases), but not on the domain itself: no users, keys, tokens for others. A viewer sees the same as an administrator and
changes nothing. A user without a role is an ordinary principal of the domain: policies decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from eventing.core.errors import ConfigError
from eventing.core.principals import OPERATIONS, Principal, Scope

VIEWER, OPERATOR, ADMINISTRATOR = "viewer", "operator", "administrator"
ROLES = (VIEWER, OPERATOR, ADMINISTRATOR)
"""All roles, weakest first."""

READING = frozenset({"describe", "subscribe", "history"})
MAPPINGS_MAX = 64
"""Most values of an OIDC claim that are mapped to roles: a setting, not a directory."""

_OPERATIONS: Mapping[str, frozenset[str] | None] = MappingProxyType(
    {VIEWER: READING, OPERATOR: frozenset(OPERATIONS), ADMINISTRATOR: None}
)


def scopes_of(role: str) -> tuple[Scope, ...] | None:
    """Scopes of a principal of this role; None for no narrowing. The empty role is not narrowed: policies decide."""
    operations = _OPERATIONS.get(role)
    return None if operations is None else (Scope(("*",), operations),)


def reads_only(principal: Principal) -> bool:
    """Return True if `principal` administers the domain but is narrowed to reading, as a viewer is.

    Such a principal may subscribe, but keeps no durable subscriptions and moves nobody's cursor.
    """
    return principal.admin and principal.scopes is not None and all(s.operations <= READING for s in principal.scopes)


def oversees(principal: Principal) -> bool:
    """Return True if `principal` may see all of the domain, including its audit: an administrator, operator or viewer."""
    return _granted_everywhere(principal, READING)


def operates(principal: Principal) -> bool:
    """Return True if `principal` may act on everything in the domain: an administrator or operator."""
    return _granted_everywhere(principal, frozenset(OPERATIONS))


def _granted_everywhere(principal: Principal, operations: frozenset[str]) -> bool:
    if not principal.admin or not principal.local or principal.restriction is not None:
        return False
    if principal.scopes is None:
        return True
    return any("*" in scope.rps and operations <= scope.operations for scope in principal.scopes)


def strongest(roles: set[str]) -> str:
    """Return the strongest of `roles`; empty for none."""
    return max(roles & set(ROLES), key=ROLES.index, default="")


def parse_role_mapping(text: str) -> dict[str, str]:
    """Parse `value=role,value=role`, which maps values of a claim to roles. Raises ConfigError."""
    mapping: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        value, _, role = item.rpartition("=")
        if not value or role not in ROLES:
            raise ConfigError(
                f"HERALD_OIDC_ROLES has {item[:80]!r}; write VALUE=ROLE, separated by commas, with a role of {', '.join(ROLES)}."
            )
        mapping[value] = role
    if len(mapping) > MAPPINGS_MAX:
        raise ConfigError(f"HERALD_OIDC_ROLES maps at most {MAPPINGS_MAX} values.")
    return mapping
