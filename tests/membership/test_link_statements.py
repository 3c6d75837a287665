"""Measured links in gossip: stated while this domain takes part in an RP with a target, and stored as others state theirs."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from eventing.membership import ports
from eventing.membership.process.link_statements import LINKS_S, LinkStatements
from eventing.overlay.gossip import Contribute, Withdraw
from eventing.overlay.link_rows import LinkMeasurements, MeasuredLink, links_of, links_payload
from eventing.store.client import client
from eventing.store.link_rows import link_rows_stored
from tests.overlay.gossiping import GossipWorld


@pytest.fixture(autouse=True)
def store(redis_url: str) -> Iterator[None]:
    client().flushdb()
    before = (ports.links_measured.provider, ports.route_participants.provider)
    yield
    ports.links_measured.connect(before[0])
    ports.route_participants.connect(before[1])


def test_links_are_stated_when_they_change_withdrawn_with_the_last_target_and_those_of_participants_are_stored() -> (
    None
):
    world = GossipWorld(3, 1, [LinkMeasurements()])
    me, other, stranger = world.nodes
    for node in (other, stranger):
        row = links_payload([MeasuredLink(str(me.me), 990_000, 20, 5, 512)])
        world.world.give(node.me, Contribute("links", row))
    world.world.run(120.0)
    own = [links_payload([MeasuredLink(str(other.me), 900_000)])]
    ports.links_measured.connect(lambda: own[0])
    ports.route_participants.connect(lambda: [other.me])  # type: ignore[list-item]  # domains of the world are numbers
    taken: list[Any] = []
    statements = LinkStatements(SimpleNamespace(gossip=me.gossip), 1000.0, taken.append)  # type: ignore[arg-type]
    for turn in range(1, 4):
        statements.due(turn * LINKS_S)
    assert taken == [Contribute("links", own[0])], "once, while nothing changes"
    (stored,) = link_rows_stored()
    assert stored.domain == str(other.me)
    assert links_of(stored.payload) == [MeasuredLink(str(me.me), 990_000, 20, 5, 512)]
    own[0] = b""
    statements.due(4 * LINKS_S)
    assert taken[1:] == [Withdraw("links")]
