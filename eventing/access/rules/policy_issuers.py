"""The issuers that policy rules name, and the addresses where keys of foreign ones are. Pure."""

from __future__ import annotations

import re

from eventing.core.names import DOMAIN_PATTERN

DOMAIN = "domain"
ANYONE = "anyone"
PEER = "peer:"
ADDRESS_CHARS_MAX = 255  # of an issuer or a JWKS address; what a SQL column of names holds
# An issuer has neither query nor fragment (OpenID Connect Core, section 2), so `#` and `|` never occur in one.
_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(?P<query>\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?"
)
_LOOPBACK = re.compile(r"localhost|\[::1\]|127(?:\.[0-9]{1,3}){3}")


def is_peer(issuer: str) -> bool:
    """Whether `issuer` names a peer domain."""
    return issuer.startswith(PEER) and DOMAIN_PATTERN.fullmatch(issuer.removeprefix(PEER)) is not None


def is_foreign_issuer(issuer: str) -> bool:
    """Whether `issuer` is the address of an OIDC issuer."""
    return is_address(issuer) and "?" not in issuer


def is_address(text: str) -> bool:
    """Whether `text` is an https address that keys may be fetched from; http is for this machine only (tests)."""
    match = _ADDRESS.fullmatch(text) if len(text) <= ADDRESS_CHARS_MAX else None
    if match is None or int(match["port"] or 1) not in range(1, 65_536):
        return False
    return match["scheme"] == "https" or _LOOPBACK.fullmatch(match["host"].lower()) is not None
