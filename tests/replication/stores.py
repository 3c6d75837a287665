"""Fixtures of the tests that take the part of one domain among others. A module selects its stores by `pytestmark`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from eventing.access.services.keys import ensure_domain_key
from eventing.overlay import announcements
from eventing.peering.services import misbehaviour
from eventing.replication.forwarding import outbound
from eventing.replication.ports import forward_start, forwards_waiting
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer
from tests.replication.homes import Home, begin
from tests.replication.homes import peer as peered
from tests.replication.shared_rp import peer_made


@pytest.fixture
def home_stores(transactional_db: None, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Empty stores, this domain with its key and document, and all misbehaviour written at once: homes.py."""
    begin()
    monkeypatch.setattr(misbehaviour, "WRITES_PER_S", 10_000)
    yield
    misbehaviour.misbehaviour_flush()


@pytest.fixture
def shared_stores(db: None, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Empty stores, nothing remembered of others, all misbehaviour written at once, and no pauses of forwarding: shared_rp.py."""
    redis_client().flushdb()
    ensure_domain_key()
    monkeypatch.setattr(misbehaviour, "WRITES_PER_S", 10_000)
    for pause, seconds in {"LINGER_S": 0.01, "SPACING_S": 0.0, "SOON_S": -math.inf}.items():
        monkeypatch.setattr(outbound, pause, seconds)
    for wait in ("RIDE_S", "ALONE_S", "SECOND_S"):
        monkeypatch.setattr(announcements, wait, 0.0)
    forward_start.connect(None)
    forwards_waiting.connect(None)
    yield
    misbehaviour.misbehaviour_flush()


@pytest.fixture
def started(shared_stores: None) -> list[str]:
    """The peers to which forwarding was started."""
    made: list[str] = []
    forward_start.connect(made.append)
    return made


@pytest.fixture
def a() -> Home:
    """A peer that is a home."""
    home = Home()
    peered(home)
    return home


@pytest.fixture
def b() -> OtherDomain:
    """A peer that holds nothing."""
    domain = OtherDomain("b.test")
    peer_made(domain)
    return domain


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> FakePeer:
    """Who answers when we call a peer."""
    made = FakePeer()
    monkeypatch.setattr(outbound, "begin", made.begin)
    return made
