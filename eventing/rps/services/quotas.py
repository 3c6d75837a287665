"""Quotas of principals, checked under a lock in the transaction that creates the limited thing: exact under
concurrency.

Administrators are exempt: the domain's own quotas bound what they create, and they could sign tokens for any number of
subjects.
"""

from __future__ import annotations

from eventing.conf import config
from eventing.core.errors import QuotaExceeded
from eventing.core.principals import Principal
from eventing.rps.selectors import quotas
from eventing.rps.selectors.rendezvous_points import reserved_bytes


def require_rp_quota(principal: Principal, owner: str, more_bytes: int, *, rps: int = 0) -> None:
    """Raise QuotaExceeded if `owner` may not reserve `more_bytes` more, or have `rps` more. Under the domain's lock.

    Args:
        principal: the requesting principal; an administrator may grant others more than their quota.
        owner: identity of the creator whose quota is used.
    """
    rps_max, bytes_max = config().rps_per_principal, config().history_bytes_per_principal
    if principal.admin or not (rps_max or bytes_max):
        return
    has_rps, has_bytes = quotas.rps_of(owner)
    if rps_max and rps and has_rps + rps > rps_max:
        raise QuotaExceeded(
            f"You may have at most {rps_max} rendezvous points here. Delete one that you do not need.", limit=rps_max
        )
    free = max(bytes_max - has_bytes, 0)
    if bytes_max and more_bytes > free:
        raise QuotaExceeded(
            f"The history would reserve {more_bytes} bytes; you have {free} left of your quota. Request less.",
            limit=bytes_max,
            free=free,
        )


def require_domain_quota(more_bytes: int, *, rps: int = 0) -> None:
    """Raise QuotaExceeded if the domain cannot reserve `more_bytes` or hold `rps` more. Under the domain's lock."""
    if rps and quotas.rps_in_domain() + rps > config().rps_max:
        raise QuotaExceeded(
            f"This domain has reached its limit of {config().rps_max} rendezvous points.", limit=config().rps_max
        )
    free = domain_bytes_free()
    if more_bytes > max(free, 0):
        raise QuotaExceeded(
            f"The history would reserve {more_bytes} bytes; the domain has {max(free, 0)} left. Request less.",
            limit=config().history_quota_bytes,
            free=max(free, 0),
        )


def domain_bytes_free() -> int:
    """Bytes of the domain's quota that are not reserved; negative if the quota was lowered below the reservations."""
    return config().history_quota_bytes - reserved_bytes()
