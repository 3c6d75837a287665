"""Lease arithmetic: every piece of remote state exists until an expiry, and no lease is perpetual (DESIGN section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from eventing.core.errors import InvalidRequest

WARNING_FRACTION = 0.2  # warn when this part of the lease is left; guess, so that an hour's lease warns 12 min before
WARNING_S_MAX = 3600  # but never earlier than this

# Use renews a lease once this part of it has passed, or this long: what is in use has the rest left, at least three
# quarters, so that no single renewal that is lost with a gateway ends it, and renewals are rare.
USE_FRACTION = 0.25
USE_STEP_S_MAX = 3600
USE_LEASE_S_MIN = 60  # shorter leases are renewed by request only: the sweep that renews them would come too late


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


def renewed_by_use_from(
    expires_at: datetime, asked_s: int | None, *, default_s: int, longest_s: int
) -> datetime | None:
    """When use begins to renew a lease; None for one that is too short for it.

    Args:
        asked_s: the duration that the owner asked for last, which a renewal by use asks for again; None means the default.
    """
    lease_s = min(default_s if asked_s is None else asked_s, longest_s)
    if lease_s < USE_LEASE_S_MIN:
        return None
    return expires_at - timedelta(seconds=lease_s - min(lease_s * USE_FRACTION, USE_STEP_S_MAX))
