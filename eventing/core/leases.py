"""Lease arithmetic: every piece of remote state exists until an expiry, and no lease is perpetual."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from eventing.core.errors import InvalidRequest

WARNING_FRACTION = 0.2  # warn when this part of the lease is left; guess, so that an hour's lease warns 12 min before
WARNING_S_MAX = 3600  # bound: seconds from a lease's warning to its end; warnings are never earlier

# Use renews a lease after this part of it, or after this time. A lease in use thus always has the rest left, at least
# three quarters: the loss of a single renewal with a gateway does not end it, and renewals are rare.
USE_FRACTION = 0.25
USE_STEP_S_MAX = 3600  # bound: seconds between two renewals by use; a quarter of the lease where that is less
# The sweep that renews leases by use would be too late for shorter ones.
USE_LEASE_S_MIN = 60  # bound: seconds of a lease that use renews; a shorter lease is renewed only on request


@dataclass(frozen=True, slots=True)
class Grant:
    """Granted lease: duration in seconds, time of the warning, time of the end."""

    granted_s: int
    warn_at: datetime
    expires_at: datetime


def grant(asked_s: int | None, now: datetime, *, default_s: int, longest_s: int) -> Grant:
    """Grant a lease from `now`. `asked_s` None means the default; a duration above `longest_s` is shortened.

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
    """Renew a lease from `now`; arguments as for `grant`. The lease never ends before `running_until`, its present end."""
    fresh = grant(asked_s, now, default_s=default_s, longest_s=longest_s)
    if fresh.expires_at >= running_until:
        return fresh
    left_s = int((running_until - now).total_seconds())
    warning_s = min(left_s * WARNING_FRACTION, WARNING_S_MAX)
    return Grant(left_s, running_until - timedelta(seconds=warning_s), running_until)


def renewed_by_use_from(
    expires_at: datetime, asked_s: int | None, *, default_s: int, longest_s: int
) -> datetime | None:
    """Compute when use begins to renew a lease; None for a lease that is too short for renewal by use.

    Args:
        asked_s: duration of the owner's last request, which a renewal by use repeats; None means the default.
    """
    lease_s = min(default_s if asked_s is None else asked_s, longest_s)
    if lease_s < USE_LEASE_S_MIN:
        return None
    return expires_at - timedelta(seconds=lease_s - min(lease_s * USE_FRACTION, USE_STEP_S_MAX))
