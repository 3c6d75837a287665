"""Rendezvous points in administrative events and answers."""

from __future__ import annotations

from typing import Any

from eventing.conf import config
from eventing.core.timestamps import timestamp
from eventing.rest.shapes import HistoryAnswer, LeaseAnswer
from eventing.rps.models import RendezvousPoint
from eventing.rps.shapes import PausedState, RecentRpData, RendezvousPointData


def rp_data(row: RendezvousPoint) -> RendezvousPointData:
    """Describe an RP for its events, without its policy, which may be too long for an event and not visible to every
    reader."""
    return RendezvousPointData.of(row, lease=LeaseAnswer.of(row), **_members(row))


def recent_rp_data(row: RendezvousPoint) -> RecentRpData:
    """Describe an RP for the domain's state; renewals of its lease are reported at the RP only."""
    return RecentRpData.of(row, **_members(row))


def _members(row: RendezvousPoint) -> dict[str, Any]:
    return {
        "home": row.home or config().domain,
        "history": HistoryAnswer.of(row),
        "paused": paused_data(row),
    }


def paused_data(row: RendezvousPoint) -> PausedState | None:
    """Describe since when, by whom and why publishing is paused; None while not paused."""
    if row.paused_at is None:
        return None
    return PausedState(at=timestamp(row.paused_at), by=row.paused_by, reason=row.paused_reason)
