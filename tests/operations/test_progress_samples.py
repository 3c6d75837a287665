"""Following readers: whoever makes many subscriptions and looks at them costs the leader no more than a bound."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from eventing.core.events.history import HistoryBounds
from eventing.log import control
from eventing.operations.samples import progress
from eventing.operations.samples.progress_samples import ProgressSamples
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store import keys
from eventing.store.client import client as redis_client
from eventing.subscriptions.services.subscriptions import subscription_create
from tests.replication.homes import ANN

pytestmark = pytest.mark.usefixtures("planes")
RPS = [letter * 26 for letter in "abcd"]


def subscribed(rp: str, count: int) -> None:
    log = control.ensure_log(rp, HistoryBounds(max_events=10, max_bytes=1024, max_age_s=None))
    redis_client().hset(keys.cursors_key(rp), mapping={f"sub_{number}": f"{log.epoch}:0" for number in range(count)})


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

    def made() -> str:
        rp: str = rendezvous_point_create(principal=ANN).id
        for _ in range(4):
            subscription_create(reference=rp, principal=ANN)
        return rp

    rps = sorted([await sync_to_async(made)() for _ in range(4)])
    following = ProgressSamples("g")
    turns = [[one.at.removesuffix(".admin") for one in await following.sample(rps)] for _ in rps]
    assert turns == [[rp] for rp in rps]


def test_rps_beyond_the_bound_are_left_out_and_not_said_to_be_well(monkeypatch: pytest.MonkeyPatch) -> None:
    rps = sorted(rendezvous_point_create(principal=ANN).id for _ in range(3))
    for rp in rps:
        for _ in range(2):
            subscription_create(reference=rp, principal=ANN)
    for most, known in ((6, 3), (5, 2), (4, 2), (1, 0)):
        monkeypatch.setattr(progress, "CURSORS_MAX", most)
        assert sorted(progress.lags(rps)) == rps[:known]
