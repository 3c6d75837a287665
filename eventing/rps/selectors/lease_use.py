"""From when on the use of something renews its lease."""

from __future__ import annotations

import math
from datetime import datetime

from eventing.conf import config
from eventing.core import leases
from eventing.rps.models import RendezvousPoint
from eventing.subscriptions.models import Subscription


def rp_renewed_from(expires_at: datetime, asked_s: int | None, *, renew_on_use: bool, home: str) -> float:
    """From when on use renews the lease of an RP, Unix seconds; infinity for never: switched off, too short, or a replica.

    The lease of a replica is its admission, which the replica's domain renews by itself.
    """
    if home or not renew_on_use:
        return math.inf
    return _seconds(expires_at, asked_s, config().lease_s_default)


def renewed_from(row: RendezvousPoint | Subscription) -> float:
    """From when on use renews the lease of a row, Unix seconds; infinity for never."""
    if isinstance(row, RendezvousPoint):
        return rp_renewed_from(row.expires_at, row.asked_s, renew_on_use=row.renew_on_use, home=row.home)
    return _seconds(row.expires_at, asked_again(row), config().subscription_lease_s)


def asked_again(row: RendezvousPoint | Subscription) -> int | None:
    """How long a lease a renewal by use asks for, seconds; None for the default.

    What the owner of a shared subscription asked for is known at its keeper only: elsewhere it is as long as it was granted.
    """
    if isinstance(row, Subscription) and row.keeper not in ("", config().domain):
        return row.granted_s
    return row.asked_s


def _seconds(expires_at: datetime, asked_s: int | None, default_s: int) -> float:
    begin = leases.renewed_by_use_from(expires_at, asked_s, default_s=default_s, longest_s=config().lease_s_max)
    return math.inf if begin is None else begin.timestamp()
