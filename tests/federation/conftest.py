"""What the tests of federation begin with. A module says by `pytestmark` which stores it wants."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from eventing.access.services.keys import ensure_domain_key
from eventing.log import control
from eventing.peering.selectors.peers import peers_forget
from eventing.peering.selectors.recent_keys import recent_keys_forget
from eventing.peering.services import misbehaviour, quarantines
from eventing.replication.forwarding import inbound, outbound, wakeups
from eventing.replication.selectors.forwarding import participations_forget
from tests.federation.answering import FakePeer
from tests.federation.homes import Home, begin
from tests.federation.homes import peer as peered
from tests.federation.other_domain import OtherDomain
from tests.federation.shared_rp import peer_made


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
    control.client().flushdb()
    ensure_domain_key()
    inbound._rates.clear()
    for forget in (recent_keys_forget, participations_forget, peers_forget, quarantines._look_again):
        forget()
    monkeypatch.setattr(misbehaviour, "WRITES_PER_S", 10_000)
    for pause, seconds in {"LINGER_S": 0.01, "SPACING_S": 0.0, "LAZY_S": 0.0, "SOON_S": -math.inf}.items():
        monkeypatch.setattr(outbound, pause, seconds)
    wakeups.sender_set(None)
    yield
    wakeups.sender_set(None)
    misbehaviour.misbehaviour_flush()
    quarantines._look_again()


@pytest.fixture
def configure(settings: Any) -> Callable[..., None]:
    """Changes settings for one test."""

    def change(**values: Any) -> None:
        settings.HERALD = dataclasses.replace(settings.HERALD, **values)

    return change


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
