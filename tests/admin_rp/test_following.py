"""Following readers: whoever makes many subscriptions and looks at them costs the leader no more than a bound."""

from __future__ import annotations

import pytest

from admin_rp import progress
from admin_rp.following import Following
from eventing.core.events.history import HistoryBounds
from eventing.log import control, keys

pytestmark = pytest.mark.usefixtures("planes")
RPS = [letter * 26 for letter in "abcd"]


def subscribed(rp: str, count: int) -> None:
    log = control.ensure_log(rp, HistoryBounds(max_events=10, max_bytes=1024, max_age_s=None))
    control.client().hset(keys.cursors_key(rp), mapping={f"sub_{number}": f"{log.epoch}:0" for number in range(count)})


def test_what_can_be_looked_at_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "CURSORS_MAX", 5)
    for rp, count in zip(RPS, (3, 2, 1, 1), strict=True):
        subscribed(rp, count)
    assert progress.affordable(RPS) == 2
    assert progress.affordable(RPS[1:]) == 3
    subscribed(RPS[3], 9)
    assert progress.affordable(RPS[3:]) == 1, "one that has too many for ever holds up nobody"
    assert progress.affordable([]) == 0


async def test_rps_with_many_subscriptions_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "CURSORS_MAX", 5)
    for rp in RPS:
        subscribed(rp, 4)
    following = Following("g")
    turns = [[one.at.removesuffix(".admin") for one in await following.look(RPS)] for _ in RPS]
    assert turns == [[rp] for rp in RPS]
