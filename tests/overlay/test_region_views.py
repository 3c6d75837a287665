"""Regions: one view for all RPs that the same domains share, links within it, and what its participants do to each other."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.overlay.links import Disconnect, Neighbor, NeighborReply, Reason
from eventing.overlay.region_views import QUARANTINED_S, RegionMembers, RegionMessage, RegionViews
from eventing.overlay.regions import MESH_MAX, region_id

REGION = "r"


class World:
    """Domains with views, whose messages arrive within a step; those in `dead` neither send nor receive."""

    def __init__(self, regions: Mapping[str, Collection[str]], peers: Collection[frozenset[str]] = (), seed: int = 1):
        self.regions, self.peers = {region: sorted(names) for region, names in regions.items()}, set(peers)
        names = sorted({name for names in self.regions.values() for name in names})
        self.views = {name: RegionViews(name, random.Random(f"{seed} {name}")) for name in names}
        self.dead: set[str] = set()
        self.now = 0.0
        self.messages = 0
        for name in names:
            self.update(name)

    def update(self, name: str, standing: Collection[str] = ()) -> None:
        found = {}
        for region, names in self.regions.items():
            if name in names:
                others = [one for one in names if one != name]
                peers = [one for one in others if frozenset({one, name}) in self.peers]
                found[region] = RegionMembers({one: None for one in others if one not in peers}, len(peers))
        self.views[name].update(found, standing, self.now)

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            for name, views in self.views.items():
                if name not in self.dead:
                    views.tick(self.now)
            while any(views.outbox for views in self.views.values()):
                for name, views in self.views.items():
                    sent, views.outbox = views.outbox, []
                    for one in sent if name not in self.dead else ():
                        self.messages += 1
                        if one.peer in self.dead:
                            views.down(one.peer, self.now)
                        else:
                            self.views[one.peer].received(one.region, name, one.message, self.now)

    def links(self, name: str) -> set[str]:
        return self.views[name].linked()

    def joined(self) -> bool:
        """Whether all living domains reach each other over links and peerings."""
        living = [name for name in self.views if name not in self.dead]
        reached, waiting = {living[0]}, [living[0]]
        while waiting:
            one = waiting.pop()
            near = self.links(one) | {other for other in living if frozenset({one, other}) in self.peers}
            for other in sorted(near - reached - self.dead):
                reached.add(other)
                waiting.append(other)
        return reached == set(living)


def named(count: int) -> list[str]:
    return [f"d{number:02d}" for number in range(count)]


def test_participants_compute_the_same_id_in_whatever_order_they_know_each_other() -> None:
    assert region_id(["b", "a", "b"]) == region_id(["a", "b"]) != region_id(["a", "c"])
    assert region_id(["ab", "c"]) != region_id(["a", "bc"])


@pytest.mark.parametrize("count", range(2, MESH_MAX + 1))
def test_a_small_region_is_a_full_mesh_within_seconds(count: int) -> None:
    world = World({REGION: named(count)})
    world.run(10)
    for name in world.views:
        assert world.links(name) == set(named(count)) - {name}


@given(count=st.integers(MESH_MAX + 1, 48), seed=st.integers(0, 1000))
def test_links_of_a_larger_region_are_symmetric_few_and_join_all(count: int, seed: int) -> None:
    world = World({REGION: named(count)}, seed=seed)
    world.run(60)
    fanout = math.ceil(math.log(count)) + 1
    for name in world.views:
        assert fanout <= len(world.links(name)) <= 3 * fanout
        assert all(name in world.links(other) for other in world.links(name))
    assert world.joined()


def test_a_star_of_peers_stays_joined_when_its_centre_is_gone() -> None:
    names = named(12)
    world = World({REGION: names}, peers=[frozenset({names[0], name}) for name in names[1:]])
    world.run(30)
    assert not world.links(names[0]), "peers need no link"
    world.dead.add(names[0])
    assert world.joined()


def test_links_replace_those_that_die_and_the_dead_are_asked_again_when_they_are_back() -> None:
    names = named(12)
    world = World({REGION: names})
    world.run(30)
    world.dead |= set(names[:3])
    for name in names[3:]:
        for gone in names[:3]:
            world.views[name].down(gone, world.now)
    world.run(15)
    assert world.joined()
    assert all(len(world.links(name)) >= 3 for name in names[3:])
    world.dead.clear()
    world.run(120)
    assert world.joined()


def test_overlapping_regions_share_links() -> None:
    names = named(8)
    alone, both = World({REGION: names}), World({"q": names[:7], REGION: names})
    alone.run(60)
    both.run(60)
    links = [sum(len(world.links(name)) for name in names) for world in (alone, both)]
    assert links[1] < 2 * links[0]
    assert both.joined()


def test_a_region_whose_participants_change_keeps_the_links_of_those_that_stay_without_a_message() -> None:
    names = named(5)
    world = World({REGION: names})
    world.run(10)
    before, world.messages = {name: world.links(name) for name in names}, 0
    world.regions = {"next": names[:4]}
    for name in names:
        world.update(name)
    world.run(20)
    for name in names[:4]:
        assert world.links(name) == before[name] - {names[4]}
    assert world.messages == 0


def test_links_from_before_a_restart_stand_without_a_message() -> None:
    world = World({REGION: named(3)})
    world.run(10)
    world.messages = 0
    world.views["d00"] = RegionViews("d00", random.Random(7))
    world.update("d00", standing=["d01", "d02"])
    world.run(20)
    assert (world.links("d00"), world.messages) == ({"d01", "d02"}, 0)


def test_a_candidate_that_becomes_a_peer_leaves_the_view() -> None:
    world = World({REGION: named(3)})
    world.run(10)
    world.peers.add(frozenset({"d00", "d01"}))
    world.update("d00")
    world.update("d01")
    assert (world.links("d00"), world.links("d01")) == ({"d02"}, {"d02"})


def test_who_is_no_participant_gets_no_link() -> None:
    views = RegionViews("a", random.Random(1))
    views.update({REGION: RegionMembers({"b": None}, 0)}, (), 0.0)
    views.outbox.clear()
    views.received(REGION, "stranger", Neighbor(True), 1.0)
    views.received("elsewhere", "stranger", Neighbor(True), 1.0)
    views.received(REGION, "stranger", NeighborReply(True), 1.0)
    assert views.outbox == [RegionMessage(REGION, "stranger", NeighborReply(False))]
    assert views.linked() == set()


def test_a_domain_that_misbehaved_gets_no_link_until_its_quarantine_is_over() -> None:
    world = World({REGION: named(3)})
    world.run(10)
    world.views["d00"].quarantine("d01", world.now)
    world.run(60)
    assert world.links("d00") == {"d02"}
    assert "d00" not in world.links("d01")
    world.now += QUARANTINED_S
    world.update("d00")
    world.run(30)
    assert world.links("d00") == {"d01", "d02"}


def test_the_reason_of_an_end_is_kept() -> None:
    world = World({REGION: named(2)})
    world.run(10)
    world.views["d00"].received(REGION, "d01", Disconnect(Reason.LEAVING), world.now)
    assert world.views["d00"].reasons["d01"] is Reason.LEAVING
    world.views["d01"].down("d00", world.now)
    assert world.views["d01"].reasons["d00"] is Reason.TRANSPORT
