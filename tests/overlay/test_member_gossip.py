"""Whole members that gossip and suspect, over links and directory as they are."""

from __future__ import annotations

from random import Random
from typing import Any

from eventing.overlay.aggregates import LoadMeasured
from eventing.overlay.gossip import Contribute
from eventing.overlay.gossip_object import GossipObject, SignedRow
from eventing.overlay.links import FindLinks
from eventing.overlay.load_rows import DomainLoad
from eventing.overlay.member import OverlayMember
from eventing.overlay.suspicion import Suspected
from eventing.overlay.whole_member import whole_member
from eventing.sim.federation import STARTED_S, member_make, mixed, sponsor_of, table_make
from eventing.sim.network import SimulatedNetwork
from eventing.sim.world import World

COUNT = 30


class Colour(GossipObject):
    name = "colour"


def member(me: int, table: Any) -> OverlayMember:
    """A member with all machines and one more object."""
    return whole_member(
        me,
        member_make(me, table).directory,
        issue=lambda name, version, expires_s, payload: SignedRow(me, version, expires_s, payload, b"s" * 64),
        genuine=lambda name, row: True,
        key_hash=mixed,
        objects=[Colour()],
        started_s=STARTED_S,
    )


def test_members_hold_each_others_rows_and_find_a_crashed_one() -> None:
    chance = Random(1)
    table = table_make()
    members = [member(me, table) for me in range(COUNT)]
    events: list[tuple[int, Any, float]] = []
    world = World(members, SimulatedNetwork(COUNT, chance), chance, lambda *event: events.append(event))
    for me in range(COUNT):
        sponsorship = sponsor_of(me)
        world.later(me, FindLinks(() if sponsorship is None else (sponsorship.sponsor,)), me * 10 / COUNT)
        world.later(me, LoadMeasured(DomainLoad(100)), 30.0)
        world.later(me, Contribute("colour", b"%d" % me), 30.0)
    world.run(400.0)
    for one in members:
        assert one.gossip is not None
        assert one.aggregates is not None
        assert sorted(one.gossip.sets["colour"].rows) == list(range(COUNT))
        assert one.aggregates.total("sessions", 400.0)[:2] == (100 * COUNT, 1.0)
    assert not [event for _, event, _ in events if isinstance(event, Suspected)]
    world.crash(7)
    world.run(520.0)
    suspecting = {me for me, event, _ in events if isinstance(event, Suspected) and event.domain == 7}
    assert suspecting == set(range(COUNT)) - {7}
    assert members[0].directory.record(7) is not None
