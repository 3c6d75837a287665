"""Whole members that gossip and suspect, over links and directory as they are."""

from __future__ import annotations

from random import Random
from typing import Any

from eventing.overlay.gossip import Contribute, Gossip
from eventing.overlay.gossip_object import GossipObject, SignedRow
from eventing.overlay.links import SUSPICIOUS, FindLinks
from eventing.overlay.member import OverlayMember
from eventing.overlay.monitors import MonitorRing
from eventing.overlay.suspicion import Suspected, Suspicion
from eventing.overlay.suspicion_rows import Accusations, Rebuttals
from eventing.sim.federation import STARTED_S, member_make, mixed, sponsor_of, table_make
from eventing.sim.network import SimulatedNetwork
from eventing.sim.world import World

COUNT = 30


class Colour(GossipObject):
    name = "colour"


def whole_member(me: int, table: Any) -> OverlayMember:
    """A member with directory, links, liveness, gossip and suspicion."""
    directory = member_make(me, table).directory
    gossips = Gossip(
        me,
        [Accusations(), Rebuttals(), Colour()],
        issue=lambda name, version, expires_s, payload: SignedRow(me, version, expires_s, payload, b"s" * 64),
        genuine=lambda name, row: True,
        known=lambda domain: directory.record(domain) is not None,
        key_hash=mixed,
        started_s=STARTED_S,
    )
    suspects = Suspicion(
        me,
        gossips.sets["accusations"],
        gossips.sets["rebuttals"],
        ring=lambda epoch: MonitorRing(directory.domains(), epoch, mixed),
        group=lambda domain: domain // 4,
        started_s=STARTED_S,
    )
    return OverlayMember(me, directory, SUSPICIOUS, gossips=gossips, suspects=suspects)


def test_members_hold_each_others_rows_and_find_a_crashed_one() -> None:
    chance = Random(1)
    table = table_make()
    members = [whole_member(me, table) for me in range(COUNT)]
    events: list[tuple[int, Any, float]] = []
    world = World(members, SimulatedNetwork(COUNT, chance), chance, lambda *event: events.append(event))
    for me in range(COUNT):
        sponsorship = sponsor_of(me)
        world.later(me, FindLinks(() if sponsorship is None else (sponsorship.sponsor,)), me * 10 / COUNT)
        world.later(me, Contribute("colour", b"%d" % me), 30.0)
    world.run(400.0)
    for member in members:
        assert member.gossip is not None
        assert sorted(member.gossip.sets["colour"].rows) == list(range(COUNT))
    assert not [event for _, event, _ in events if isinstance(event, Suspected)]
    world.crash(7)
    world.run(520.0)
    suspecting = {me for me, event, _ in events if isinstance(event, Suspected) and event.domain == 7}
    assert suspecting == set(range(COUNT)) - {7}
    assert members[0].directory.record(7) is not None
