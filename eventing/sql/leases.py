"""Grant and renewal of a row's lease by the domain's settings; the caller saves."""

from __future__ import annotations

import math
from datetime import datetime

from eventing.conf import config
from eventing.core import leases
from eventing.core.errors import InvalidRequest
from eventing.core.leases import Grant
from eventing.sql.columns import LeaseColumns
from eventing.sql.remembered import remembered

ASKED_S_MAX = 2**53 - 1  # exact in every JSON reader, and fits the column
LEASE_COLUMNS = ["asked_s", "granted_s", "warn_at", "warned_at", "expires_at"]


def is_due(first: datetime | None, now: datetime) -> bool:
    """Return whether the first of some times is over; None: there are none."""
    return first is not None and first <= now


@remembered
def expires_first(model: type[LeaseColumns]) -> datetime | None:
    """Return when the first lease of these rows ends or has ended; None: there are none."""
    rows = model._default_manager.filter(expires_at__isnull=False).order_by("expires_at")
    return rows.values_list("expires_at", flat=True).first()


@remembered
def warns_first(model: type[LeaseColumns]) -> datetime | None:
    """Return when the first lease of these rows is to be warned of; None: of none."""
    rows = model._default_manager.filter(warned_at=None).order_by("warn_at")
    return rows.values_list("warn_at", flat=True).first()


def lease_grant(row: LeaseColumns, asked_s: int | None, now: datetime) -> None:
    """Grant the lease of a new row; `asked_s` None means the domain's default. Raises InvalidRequest for less than 1 s."""
    granted = leases.grant(asked_s, now, default_s=row.lease_s_default, longest_s=config().lease_s_max)
    _take(row, asked_s, granted)


def lease_renew(row: LeaseColumns, asked_s: int | None, now: datetime) -> None:
    """Renew the lease from now; it never ends earlier than before. Raises InvalidRequest for less than 1 s."""
    granted = leases.renew(row.expires_at, asked_s, now, default_s=row.lease_s_default, longest_s=config().lease_s_max)
    _take(row, asked_s, granted)


def renewed_from(row: LeaseColumns) -> float:
    """Time from which use renews the lease of a row, Unix seconds; infinity for never: switched off, too short, or not by use."""
    if not row.renewed_by_use:
        return math.inf
    return renewed_by_use_from(row.expires_at, row.asked_again_s, row.lease_s_default)


def renewed_by_use_from(expires_at: datetime, asked_s: int | None, default_s: int) -> float:
    """Return `renewed_from` for a lease that use renews by `asked_s` seconds; None: by `default_s`."""
    begin = leases.renewed_by_use_from(expires_at, asked_s, default_s=default_s, longest_s=config().lease_s_max)
    return math.inf if begin is None else begin.timestamp()


def _take(row: LeaseColumns, asked_s: int | None, granted: Grant) -> None:
    if asked_s is not None and asked_s > ASKED_S_MAX:
        raise InvalidRequest(f"A lease is at most {ASKED_S_MAX} seconds, even as a request.")
    row.asked_s, row.granted_s = asked_s, max(granted.granted_s, 1)
    row.warn_at, row.warned_at, row.expires_at = granted.warn_at, None, granted.expires_at
