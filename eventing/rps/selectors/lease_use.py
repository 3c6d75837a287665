"""Time from which the use of an RP renews its lease, for readers of columns instead of rows."""

from __future__ import annotations

import math
from datetime import datetime

from eventing.conf import config
from eventing.sql.leases import renewed_by_use_from


def rp_renewed_from(expires_at: datetime, asked_s: int | None, *, renew_on_use: bool, home: str) -> float:
    """Return `renewed_from` (sql/leases.py) of an RP with these columns."""
    if home or not renew_on_use:
        return math.inf
    return renewed_by_use_from(expires_at, asked_s, config().lease_s_default)
