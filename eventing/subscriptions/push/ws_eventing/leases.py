"""Leases of WS-Eventing on the domain's leases: what is asked of the lease engine, and how the grant is stated. Pure.

The domain grants no lease without end. In 2004 the source may grant more or less than requested. In 2011 it grants exactly what
was requested, unless BestEffort is true; without Expires, or with a duration of zero, no end is requested: then the domain's
default is granted for the first, and the longest lease for the second, if BestEffort is true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from eventing.subscriptions.push.ws_eventing.dialects import EventingDialect
from eventing.subscriptions.push.ws_eventing.durations import date_time, date_time_text, duration_s, duration_text
from eventing.subscriptions.push.ws_eventing.faults import (
    EXPIRATION_TYPE,
    EXPIRATION_VALUE,
    INVALID_EXPIRATION,
    FaultRaised,
)
from eventing.subscriptions.push.ws_eventing.requests import Expires


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Request to the lease engine.

    Attributes:
        lease_s: seconds; None for the domain's default.
        absolute: whether the grant is stated as a date and time.
    """

    lease_s: int | None
    absolute: bool = False

    def stated(self, granted_s: float, now: datetime) -> str:
        """Write the granted lease in the type of the request; a duration if it had none."""
        return date_time_text(now, granted_s) if self.absolute else duration_text(granted_s)


def lease_request(dialect: EventingDialect, expires: Expires | None, *, now: datetime, longest_s: int) -> LeaseRequest:
    """Decide about a requested lease. Raises FaultRaised.

    Args:
        longest_s: the longest lease that the domain grants, seconds.
    """
    if expires is None:
        return LeaseRequest(None)
    moment = date_time(expires.text)
    wanted_s = (moment - now).total_seconds() if moment is not None else duration_s(expires.text, now)
    if wanted_s is None:
        raise FaultRaised(
            EXPIRATION_TYPE if dialect.exact else INVALID_EXPIRATION, "Expires is a duration or an instant."
        )
    if wanted_s == 0 and moment is None and dialect.zero_is_endless:
        if not expires.best_effort:
            raise FaultRaised(EXPIRATION_VALUE, f"A subscription ends after {longest_s} s at the latest.")
        return LeaseRequest(longest_s)
    lease_s = math.floor(wanted_s) if math.isfinite(wanted_s) else longest_s + 1
    if lease_s < 1:
        raise FaultRaised(INVALID_EXPIRATION, "The requested lease has ended already, or lasts less than a second.")
    if dialect.exact and lease_s > longest_s and not expires.best_effort:
        raise FaultRaised(
            EXPIRATION_VALUE, f"A subscription lasts at most {longest_s} s; send BestEffort to be granted that."
        )
    return LeaseRequest(min(lease_s, longest_s), moment is not None)
