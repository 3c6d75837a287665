"""Lease arithmetic: every piece of remote state exists until an expiry, and no lease is perpetual (DESIGN section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from eventing.core.errors import InvalidRequest

WARNING_FRACTION = 0.2  # warn when this part of the lease is left; guess, so that an hour's lease warns 12 min before
WARNING_S_MAX = 3600  # but never earlier than this


@dataclass(frozen=True, slots=True)
class Grant:
    """What a domain granted: duration in seconds, when to warn, when it ends."""

    granted_s: int
    warn_at: datetime
    expires_at: datetime


def grant(asked_s: int | None, now: datetime, *, default_s: int, longest_s: int) -> Grant:
    """Grant a lease that counts from `now`; `asked_s` None means the default. Longer than `longest_s` is shortened.

    Raises InvalidRequest when less than one second is asked.
    """
    wanted = default_s if asked_s is None else asked_s
    if wanted < 1:
        raise InvalidRequest("A lease is at least 1 second.")
    granted_s = min(wanted, longest_s)
    warning_s = min(granted_s * WARNING_FRACTION, WARNING_S_MAX)
    expires_at = now + timedelta(seconds=granted_s)
    return Grant(granted_s, expires_at - timedelta(seconds=warning_s), expires_at)


def renew(running_until: datetime, asked_s: int | None, now: datetime, *, default_s: int, longest_s: int) -> Grant:
    """Renew a lease from `now`. Renewal never breaks the running lease: it does not end earlier than it would have."""
    fresh = grant(asked_s, now, default_s=default_s, longest_s=longest_s)
    if fresh.expires_at >= running_until:
        return fresh
    left_s = int((running_until - now).total_seconds())
    warning_s = min(left_s * WARNING_FRACTION, WARNING_S_MAX)
    return Grant(left_s, running_until - timedelta(seconds=warning_s), running_until)
