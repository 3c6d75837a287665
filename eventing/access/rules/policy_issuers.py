"""Issuers in policy rules, and the addresses of foreign issuers' keys. Pure."""

from __future__ import annotations

import re

from eventing.core.names import DOMAIN_PATTERN

DOMAIN = "domain"
ANYONE = "anyone"
PEER = "peer:"
# Width of the SQL columns; also the bound of a JWKS address.
ADDRESS_CHARS_MAX = 255  # bound: characters of an issuer's address; the policy is refused
# An issuer has neither query nor fragment (OpenID Connect Core, section 2), so `#` and `|` never occur in one.
_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(?P<query>\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?"
)
_LOOPBACK = re.compile(r"localhost|\[::1\]|127(?:\.[0-9]{1,3}){3}")


def is_peer(issuer: str) -> bool:
    """Return True if `issuer` names a peer domain."""
    return issuer.startswith(PEER) and DOMAIN_PATTERN.fullmatch(issuer.removeprefix(PEER)) is not None


def is_foreign_issuer(issuer: str) -> bool:
    """Return True if `issuer` is the address of an OIDC issuer."""
    return is_address(issuer) and "?" not in issuer


def is_address(text: str) -> bool:
    """Return True if `text` is an https address from which keys may be fetched; http only on this machine (tests)."""
    match = _ADDRESS.fullmatch(text) if len(text) <= ADDRESS_CHARS_MAX else None
    if match is None or int(match["port"] or 1) not in range(1, 65_536):
        return False
    return match["scheme"] == "https" or _LOOPBACK.fullmatch(match["host"].lower()) is not None
