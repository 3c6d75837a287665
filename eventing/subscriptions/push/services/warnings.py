"""Warnings to owners about endpoints that are paused or gone: those that are due, and their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from eventing.core.timestamps import timestamp
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import EndpointState

WARNED_OF = (EndpointState.PAUSED, EndpointState.GONE)
"""States of which an owner is warned, unless the owner caused them."""
PAUSES_S = (10, 60, 600, 3600, 21_600)
"""Pauses between attempts to warn; after the last one no further attempt is made: the administrative event remains."""
_COLUMNS = (
    "subscription_id", "subscription__at", "subscription__owner", "subscription__deliver", "sealed", "state", "state_at",
    "reason", "failures", "failing_since", "warnings",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OwnerWarning:
    """A warning that is due.

    Attributes:
        number: attempts before.
        at: Unix seconds of the state's begin; with the subscription it identifies the warning.
        data: of the event.
    """

    subscription: str
    rp: str
    owner: str
    signature: str
    sealed: bytes
    at: int
    number: int
    data: dict[str, Any]


def warnings_due(without: Sequence[str], count: int, *, now: datetime | None = None) -> list[OwnerWarning]:
    """Return up to `count` warnings that are due, the oldest first, without those of these subscriptions."""
    rows = PushEndpoint.objects.filter(warn_at__lte=now or timezone.now(), state__in=WARNED_OF).exclude(pk__in=without)
    return [
        _warning(dict(zip(_COLUMNS, row, strict=True)))
        for row in rows.order_by("warn_at").values_list(*_COLUMNS)[:count]
    ]


def warning_done(warning: OwnerWarning) -> None:
    """Note that an owner was warned."""
    PushEndpoint.objects.filter(pk=warning.subscription, warnings=warning.number).update(warn_at=None)


def warning_failed(warning: OwnerWarning, *, now: datetime | None = None) -> None:
    """Note a failed attempt to warn; there is another one unless the schedule is exhausted."""
    left = warning.number < len(PAUSES_S)
    at = (now or timezone.now()) + timedelta(seconds=PAUSES_S[warning.number]) if left else None
    rows = PushEndpoint.objects.filter(pk=warning.subscription, warnings=warning.number, warn_at__isnull=False)
    rows.update(warn_at=at, warnings=warning.number + 1)


def _warning(row: dict[str, Any]) -> OwnerWarning:
    deliver, since = row["subscription__deliver"], row["failing_since"]
    return OwnerWarning(
        subscription=row["subscription_id"],
        rp=row["subscription__at"],
        owner=row["subscription__owner"],
        signature=str(deliver.get("signature", "v1a")),
        sealed=bytes(row["sealed"]),
        at=int(row["state_at"].timestamp()),
        number=row["warnings"],
        data={
            "subscription": row["subscription_id"],
            "endpoint": deliver.get("url", ""),
            "state": row["state"],
            "state_at": timestamp(row["state_at"]),
            "reason": row["reason"],
            "failures": row["failures"],
            "failing_since": timestamp(since) if since else None,
        },
    )
