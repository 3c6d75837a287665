"""Requests of a hub to a subscriber's callback by GET: verification of intent, denial (sections 5.2 and 5.3). Pure."""

from __future__ import annotations

import hmac
from typing import Literal
from urllib.parse import quote

CHALLENGE_CHARS = 43  # 256 random bits in base64url
LEASE_S_DEFAULT = 10 * 86_400  # suggested by the Recommendation, section 5.1

Mode = Literal["subscribe", "unsubscribe"]


def granted_lease_s(wanted_s: int | None, *, longest_s: int) -> int:
    """Return the lease that a hub grants, in seconds. It is never without end."""
    return max(1, min(LEASE_S_DEFAULT if wanted_s is None else wanted_s, longest_s))


def verification_url(callback: str, mode: Mode, topic: str, challenge: str, lease_s: int) -> str:
    """Return the address that verifies the intent of a subscriber: the callback with its own query parameters kept.

    `callback` may also be the target of a request line, path and query.

    Args:
        challenge: random text, used once.
        lease_s: the granted lease, from the moment of this request; stated for `subscribe` only.
    """
    stated = {"hub.mode": mode, "hub.topic": topic, "hub.challenge": challenge}
    if mode == "subscribe":
        stated["hub.lease_seconds"] = str(lease_s)
    return _appended(callback, stated)


def is_verified(status: int, body: bytes, challenge: str) -> bool:
    """Return True if the answer confirms the intent: 2xx, and the challenge as the whole body."""
    return 200 <= status < 300 and hmac.compare_digest(body, challenge.encode())


def denial_url(callback: str, topic: str, reason: str) -> str:
    """Return the address that notifies a subscriber of the denial or the end of its subscription; `reason` may be empty."""
    return _appended(callback, {"hub.mode": "denied", "hub.topic": topic, **({"hub.reason": reason} if reason else {})})


def _appended(url: str, parameters: dict[str, str]) -> str:
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
    if "?" not in url:
        return f"{url}?{query}"
    return f"{url}{query}" if url.endswith(("?", "&")) else f"{url}&{query}"
