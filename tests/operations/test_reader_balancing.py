"""A domain with more than its bounded share of sessions begins moves of readers, and one that is not does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from eventing.membership.shapes import OverlayDomainLoad, SeenDomains
from eventing.operations.services.reader_balancing import readers_balance
from eventing.replication.models import ReplicaAdmission
from eventing.replication.rules.ranking import ReplicaServer
from eventing.replication.services.reader_moves import reader_moves, readers_move
from eventing.store.client import client as redis_client
from eventing.store.keys import GATEWAYS_KEY, gateway_load_key
from eventing.store.overlay_pictures import seen_store

pytestmark = pytest.mark.usefixtures("planes")
NOW = datetime.now(UTC)


@pytest.fixture
def famous(new_rp: Callable[..., Any]) -> str:
    """An RP that b.test serves as well, with 3,000 readers here, as two gateways sampled."""
    rp = str(new_rp().id)
    until = NOW + timedelta(hours=1)
    stated = {"statement": b"", "issued_at_ms": 1, "asked_at_ms": 1, "revoked": False}
    ReplicaAdmission.objects.create(rp_id=rp, domain="b.test", url="https://b.test", expires_at=until, **stated)
    redis = redis_client()
    for gateway in ("g1", "g2"):
        redis.zadd(GATEWAYS_KEY, {gateway: (NOW + timedelta(hours=1)).timestamp()})
        row = {"interval_s": 1.0, "sessions": 1500, "hot": [{"rp": rp, "readings": 1500}]}
        redis.set(gateway_load_key(gateway), json.dumps(row))
    return rp


def others_have(sessions: int) -> None:
    """What the process of the overlay knows of b.test."""
    zeros = dict.fromkeys(OverlayDomainLoad.__struct_fields__, 0)
    load = OverlayDomainLoad(**{**zeros, "sessions": sessions})
    seen_store(msgspec.msgpack.encode(SeenDomains({"b.test": load}, {"b.test": 12.0})), 60.0)


def test_the_excess_moves_in_steps_and_the_next_waits(famous: str) -> None:
    """Of b.test, which is no partner here, only the overlay's figure is known: steps are small and slow."""
    others_have(0)
    assert readers_balance(now=NOW) == 1
    (move,) = reader_moves(now=NOW)
    assert (move.rp, move.share, move.to, move.rooms) == (famous, 0.25, (), (("https://b.test", 1000),))
    assert (move.new_share, move.by) == (1.0, "balancing")
    assert "3000 sessions" in move.reason
    assert readers_balance(now=NOW + timedelta(seconds=30)) == 0, "while a move is under way"


def test_with_fresh_loads_a_step_moves_the_whole_excess_and_the_next_one_replaces_it(
    famous: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    others_have(0)
    stated = [0]

    def answered(rp: str, servers: list[ReplicaServer], own: str) -> list[ReplicaServer]:
        return [one if one.domain == own else one._replace(sessions=stated[0], fresh=True) for one in servers]

    monkeypatch.setattr("eventing.operations.services.reader_balancing.loads_asked", answered)
    assert readers_balance(now=NOW) == 1
    (first,) = reader_moves(now=NOW)
    assert first.share == pytest.approx(0.5)
    assert readers_balance(now=NOW + timedelta(seconds=3)) == 0
    stated[0] = 500
    assert readers_balance(now=NOW + timedelta(seconds=9)) == 1
    (second,) = reader_moves(now=NOW + timedelta(seconds=9))
    assert second.id != first.id
    assert second.share == pytest.approx(1250 / 3000)


def test_readers_who_are_leaving_are_not_moved_again(famous: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others_have(0)
    monkeypatch.setattr(
        "eventing.operations.services.reader_balancing.loads_asked",
        lambda rp, servers, own: [one if one.domain == own else one._replace(fresh=True) for one in servers],
    )
    for gateway in ("g1", "g2"):
        row = {"interval_s": 1.0, "sessions": 1500, "hot": [{"rp": famous, "readings": 1500, "leaving": 700}]}
        redis_client().set(gateway_load_key(gateway), json.dumps(row))
    assert readers_balance(now=NOW) == 1
    (move,) = reader_moves(now=NOW)
    assert move.share == pytest.approx(100 / 1600), "of the excess of 1,500 there are 1,400 on their way"


def test_a_move_that_an_operator_began_is_left_alone(famous: str) -> None:
    others_have(0)
    until = NOW + timedelta(seconds=60)
    move = readers_move(rp=famous, share=0.1, to=["https://b.test"], until=until, reason="mine", now=NOW)
    assert readers_balance(now=NOW) == 0
    assert reader_moves(now=NOW) == [move]


def test_a_domain_within_its_bound_moves_nobody(famous: str) -> None:
    others_have(2000)
    assert readers_balance(now=NOW) == 0
    assert reader_moves(now=NOW) == []


def test_balancing_can_be_switched_off(famous: str, configure: Callable[..., None]) -> None:
    others_have(0)
    configure(reader_balancing=False)
    assert readers_balance(now=NOW) == 0
