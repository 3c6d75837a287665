"""The last day of the overlay, from samples in the history of `overlay.admin`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from eventing.core.events.cloudevents import Event
from eventing.core.events.history import HistoryBounds
from eventing.core.ids import OVERLAY_ADMIN
from eventing.log import control
from eventing.outbox.administrative_events import OVERLAY_MAP_CHANGED, OVERLAY_SAMPLED
from portal.console import overlay_history
from portal.console.overlay_history import OverlayHistory

pytestmark = pytest.mark.usefixtures("planes")
BOUNDS = HistoryBounds(20_000, 1 << 24, None)


def sampled(at: float, interval_s: float = 60.0, **figures: Any) -> None:
    data = {
        **{"at": datetime.fromtimestamp(at, UTC).isoformat(), "interval_s": interval_s},
        **{"domains": 3, "live": 3, "chosen": 2, "accepted": 1, "rtt_p50_ms": 4.0, "rtt_p90_ms": None},
        **{"suspected_count": 0, "events": 120, "copies": 6, "sent": 0, **figures},
    }
    tell(OVERLAY_SAMPLED, f"s{at}", data)


def tell(kind: str, name: str, data: dict[str, Any]) -> None:
    body = json.dumps({"specversion": "1.0", "id": name, "source": "/localhost", "type": kind, "data": data})
    control.append(OVERLAY_ADMIN, [Event("/localhost", name, kind, body.encode())], BOUNDS)


def test_samples_are_points_and_counts_are_rates() -> None:
    history = OverlayHistory()
    assert history.read()["at"] == []
    sampled(1_000, interval_s=0)
    tell(OVERLAY_MAP_CHANGED, "other", {"domains": []})
    sampled(1_060, domains=4)
    told = history.read()
    assert told["at"] == [1_000, 1_060]
    assert told["series"]["domains"] == [3, 4]
    assert told["series"]["events"] == [None, 2.0]
    assert told["series"]["copies"] == [None, 0.1]
    assert told["series"]["rtt_p90_ms"] == [None, None]
    sampled(1_120)
    assert history.read()["at"] == [1_000, 1_060, 1_120], "what was read is remembered"


def test_another_numbering_is_read_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    history = OverlayHistory()
    sampled(1_000)
    assert len(history.read()["at"]) == 1
    control.delete_log(OVERLAY_ADMIN)
    sampled(2_000)
    sampled(2_060)
    assert history.read()["at"] == [2_000, 2_060]


def test_a_day_is_kept_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay_history, "POINTS_MAX", 3)
    history = OverlayHistory()
    for minute in range(5):
        sampled(60.0 * minute)
    assert history.read()["at"] == [120, 180, 240]
