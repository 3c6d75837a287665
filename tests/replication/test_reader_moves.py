"""Moves of readers as draining, placement and balancing begin and end them: bounds, events, what is under way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from admin_rp.catalogue import CATALOGUE
from eventing.core.errors import ApplicationError
from eventing.core.ids import DOMAIN_ADMIN, admin_id
from eventing.outbox import administrative_events as events
from eventing.replication.services.reader_moves import reader_moves, readers_move, readers_move_end
from tests.planes import events_at

pytestmark = pytest.mark.usefixtures("planes")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(seconds=60)


def test_a_move_is_under_way_until_its_end_and_each_is_an_event_with_its_reason(new_rp: Callable[..., Any]) -> None:
    rp = new_rp().id
    move = readers_move(rp=rp, share=0.5, until=LATER, to=["https://b.example"], reason="drained", now=NOW)
    assert reader_moves(now=NOW) == [move]
    assert reader_moves(now=LATER) == [], "over"
    other = readers_move(rp=rp, share=1.0, until=LATER, reason="load", now=NOW)
    assert readers_move_end(move=other.id, now=NOW)
    assert not readers_move_end(move=other.id, now=NOW)
    assert reader_moves(now=NOW) == []
    told = [event for event in events_at(admin_id(rp)) if "readers" in event["type"]]
    assert [event["type"] for event in told] == [
        events.READERS_MOVING,
        events.READERS_MOVING,
        events.READERS_MOVE_ENDED,
    ]
    for event in told:
        assert event["data"].keys() == CATALOGUE[event["type"]].data.keys()
        assert event in events_at(DOMAIN_ADMIN)
    assert [event["data"]["reason"] for event in told] == ["drained", "load", "load"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"share": 0.0},
        {"share": 1.1},
        {"share": float("nan")},
        {"until": NOW},
        {"until": NOW + timedelta(days=2)},
        {"spread_s": -1.0},
        {"spread_s": float("inf")},
        {"to": ["ftp://b.example"]},
        {"to": ["https://b.example?x=1"]},
        {"to": ["https://[b"]},
        {"to": ["https://b.example"] * 17},
        {"reason": "x" * 501},
        {"rp": "none"},
    ],
)
def test_a_move_out_of_bounds_is_refused(wrong: dict[str, Any], new_rp: Callable[..., Any]) -> None:
    right = {"rp": new_rp().id, "share": 0.5, "until": LATER, "reason": "", "now": NOW}
    with pytest.raises(ApplicationError):
        readers_move(**{**right, **wrong})
    assert reader_moves(now=NOW) == []
