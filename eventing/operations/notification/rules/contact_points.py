"""Contact points as stated: kinds, bounds, addresses of mail. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eventing.core.errors import InvalidRequest

WEBHOOK, MAIL = "webhook", "mail"
KINDS = (WEBHOOK, MAIL)
CONTACT_POINTS_MAX = 20  # bound: contact points of a domain; the next one is refused
NAME_CHARS_MAX = 64
TARGET_CHARS_MAX = 2048
ADDRESSES_MAX = 10  # bound: addresses of a contact point by mail; the request is refused
GROUP_S_DEFAULT, GROUP_S_MIN, GROUP_S_MAX = 60, 10, 86_400
RETRY_S = (10, 30, 60, 120, 300, 600)
"""Pauses after failed attempts, seconds; the last one is repeated: what is sent is what is so by then, so nothing accumulates."""

_ADDRESS = re.compile(r"(?=.{3,254}\Z)[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_NAME = re.compile(r"[^\x00-\x1f\x7f]+")


def name_checked(name: str) -> str:
    """Return the name without spaces around it. Raises InvalidRequest."""
    name = name.strip()
    if not 0 < len(name) <= NAME_CHARS_MAX or not _NAME.fullmatch(name):
        raise InvalidRequest(f"name has 1 to {NAME_CHARS_MAX} characters, without line breaks.")
    return name


def addresses_checked(addresses: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses of mail, each once. Raises InvalidRequest."""
    found = tuple(dict.fromkeys(one.strip() for one in addresses))
    if not 0 < len(found) <= ADDRESSES_MAX:
        raise InvalidRequest(f"to is a list of 1 to {ADDRESSES_MAX} addresses.")
    for one in found:
        if not _ADDRESS.fullmatch(one):
            raise InvalidRequest(f"{one[:80]!r} is no address of mail such as oncall@example.org.")
    return found


def retry_s(failures: int, jitter: float) -> float:
    """Return the pause after this many failures in a row.

    Args:
        failures: at least 1.
        jitter: from 0 to 1, drawn by the caller: the pause is up to a tenth shorter or longer.
    """
    return RETRY_S[min(failures, len(RETRY_S)) - 1] * (0.9 + 0.2 * jitter)
