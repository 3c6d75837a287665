"""Links of simulated federations: HyParView with the paper's parameters, and links drawn from the directory."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from eventing.overlay import passive_view
from eventing.overlay.directory import RECORDS_MAX
from eventing.overlay.directory_messages import Records
from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.ended_links import ENDED_EVERY_S, ENDED_FREE
from eventing.overlay.links import (
    PAPER,
    REPAIR_DUE,
    SUSPICIOUS,
    Disconnect,
    FindLinks,
    Flapped,
    Leave,
    LinkDown,
    Links,
    LinkUp,
    Neighbor,
    NeighborReply,
    Reason,
)
from eventing.overlay.liveness import Failed
from eventing.overlay.machine import Fired, MessageReceived, SendMessage
from eventing.sim.federation import STARTED_S, PaperMember, member_make, reachable, record_make, sponsor_of, table_make
from eventing.sim.network import SimulatedNetwork
from eventing.sim.world import World


class NoCandidates(passive_view.PassiveView):
    """Candidates of a domain that knows only those that ask; each is a group of its own."""

    def __init__(self) -> None:
        super().__init__(0)

    def draw(self, count: int, but: Any, now: float, chance: Any, *, only_paired: bool = False) -> list[Any]:
        return []

    def note(self, members: Any, chance: Any) -> None:
        pass

    def sample(self, but: Any, chance: Any) -> tuple[Any, ...]:
        return ()

    def group(self, peer: Any) -> Any:
        return peer

    def paired(self, peer: Any, now: float) -> bool:
        return True


def paper_world(count: int, seed: int) -> World:
    chance = Random(seed)
    world = World([PaperMember(number) for number in range(count)], SimulatedNetwork(count, chance), chance)
    for number in range(count):
        contacts = (chance.randrange(number),) if number else ()
        world.later(number, FindLinks(contacts), number * 60 / count)
    return world


def up_of(world: World) -> list[int]:
    return [number for number, is_up in enumerate(world.up) if is_up]


def one_sided(world: World) -> int:
    machines: Any = world.machines
    return sum(1 for me in up_of(world) for peer in machines[me].links.active if me not in machines[peer].links.active)


def test_with_the_papers_parameters_all_views_fill_and_links_stand_on_both_sides() -> None:
    world = paper_world(300, 1)
    world.run(400.0)
    machines: Any = world.machines
    assert {len(node.links.active) for node in machines} == {PAPER.chosen}
    assert {len(node.view.members) for node in machines} == {passive_view.PAPER.size}
    assert one_sided(world) == 0
    assert reachable(dict(enumerate(machines)), up_of(world), world.chance) == 300


def test_views_are_repaired_after_half_of_all_domains_have_crashed() -> None:
    world = paper_world(300, 2)
    world.run(300.0)
    for number in Random(2).sample(range(300), 150):
        world.crash(number)
    world.run(600.0)
    assert reachable(dict(enumerate(world.machines)), up_of(world), world.chance) >= 148


class Federation:
    """Mutually suspicious domains that join through their sponsors."""

    def __init__(self, count: int, seed: int) -> None:
        self.chance = Random(seed)
        table = table_make()
        self.members = [member_make(number, table) for number in range(count)]
        self.events: list[tuple[int, Any, float]] = []
        self.world = World(
            self.members, SimulatedNetwork(count, self.chance), self.chance, lambda *event: self.events.append(event)
        )
        for number in range(count):
            sponsorship = sponsor_of(number)
            contacts = () if sponsorship is None else (sponsorship.sponsor,)
            self.world.later(number, FindLinks(contacts), number * 30 / count)

    def component(self) -> int:
        return reachable(dict(enumerate(self.members)), up_of(self.world), self.chance)


@pytest.fixture(scope="module")
def joined() -> Federation:
    """60 domains, five minutes after they began to join; read only."""
    made = Federation(60, 3)
    made.world.run(300.0)
    return made


def test_domains_that_know_their_sponsor_only_learn_of_all_and_choose_their_links(joined: Federation) -> None:
    assert {member.directory.count for member in joined.members} == {60}
    assert len({member.directory.fingerprint() for member in joined.members}) == 1
    assert {len(member.links.chosen) for member in joined.members} == {SUSPICIOUS.chosen}
    assert max(len(member.links.active) for member in joined.members) <= SUSPICIOUS.chosen + SUSPICIOUS.accepted
    assert joined.component() == 60


def test_near_links_have_shorter_round_trips_than_drawn_ones(joined: Federation) -> None:
    links = [link for member in joined.members for link in member.links.active.values() if link.chosen]
    near = [link.rtt_s for link in links if link.near]
    drawn = [link.rtt_s for link in links if not link.near]
    assert sum(near) / len(near) < 0.7 * sum(drawn) / len(drawn)


def test_a_partition_ends_links_between_the_sides_and_its_end_makes_one_component_again() -> None:
    made = Federation(40, 4)
    made.world.run(240.0)
    made.world.network.conditions.sides = bytearray(number % 2 for number in range(40))
    made.world.run(360.0)
    assert made.component() == 20
    made.world.network.conditions.sides = None
    made.world.run(480.0)
    assert made.component() == 40


def test_a_crashed_peer_is_found_within_15_s_and_stays_in_the_directory() -> None:
    made = Federation(40, 5)
    made.world.run(240.0)
    linked = list(made.members[7].links.active)
    made.world.crash(7)
    made.world.run(256.0)
    ended = {me for me, event, at in made.events if at > 240.0 and isinstance(event, LinkDown) and event.peer == 7}
    assert ended >= set(linked)
    assert all(7 not in made.members[me].links.active for me in linked)
    assert made.members[0].directory.record(7) is not None


def test_domains_without_failures_suspect_nobody(joined: Federation) -> None:
    assert not [event for _, event, _ in joined.events if isinstance(event, Failed)]


def test_the_same_seed_draws_the_same_world() -> None:
    runs = []
    for _ in range(2):
        made = Federation(30, 6)
        made.world.run(120.0)
        runs.append((made.world.handled, [list(member.links.active) for member in made.members], len(made.events)))
    assert runs[0] == runs[1]


def test_a_full_domain_refuses_and_keeps_its_links(joined: Federation) -> None:
    made = Federation(40, 7)
    made.world.run(240.0)
    member = made.members[0]
    accepted = [peer for peer, link in member.links.active.items() if not link.chosen]
    for stranger in range(40):
        if stranger not in member.links.active and len(accepted) < SUSPICIOUS.accepted:
            out = member.links.handle(MessageReceived(stranger, Neighbor()), 240.0, made.chance)
            if LinkUp(stranger, False) in out:
                accepted.append(stranger)
    before = list(member.links.active)
    refused = next(number for number in range(40) if number not in before and number != 0)
    out = member.links.handle(MessageReceived(refused, Neighbor(True)), 240.0, made.chance)
    assert out == [SendMessage(refused, NeighborReply(False))]
    assert list(member.links.active) == before


def test_a_peer_that_ends_its_links_again_and_again_gets_one_in_a_minute() -> None:
    links = Links(0, SUSPICIOUS, NoCandidates())
    chance = Random(1)

    def flapped(now: float) -> list[Any]:
        out = links.handle(MessageReceived(7, Neighbor()), now, chance)
        return out + links.handle(MessageReceived(7, Disconnect(Reason.EVICTED)), now, chance)

    for _ in range(ENDED_FREE):
        assert any(type(event) is LinkUp for event in flapped(100.0))
    refused = flapped(100.0)
    assert Flapped(7, ENDED_FREE) in refused
    assert SendMessage(7, NeighborReply(False)) in refused
    assert not any(type(event) is LinkUp for event in refused)
    assert any(type(event) is LinkUp for event in flapped(100.0 + ENDED_EVERY_S))
    assert not any(type(event) is LinkUp for event in flapped(101.0 + ENDED_EVERY_S))


def test_a_domain_that_leaves_ends_all_its_links() -> None:
    made = Federation(20, 8)
    made.world.run(200.0)
    peers = [peer for peer in made.members[3].links.active if 3 in made.members[peer].links.active]
    made.world.give(3, Leave())
    made.world.crash(3)
    made.world.run(205.0)
    left = {me for me, event, _ in made.events if event == LinkDown(3, Reason.LEAVING)}
    assert left == set(peers)


def test_domains_of_one_sponsor_have_few_links_in_a_large_federation_and_enough_in_a_small_one() -> None:
    made = Federation(9, 9)
    made.world.run(120.0)
    assert min(len(member.links.active) for member in made.members) >= 7
    made = Federation(200, 10)
    records = [record_of(domain) for domain in range(200)]
    for member in made.members:
        for first in range(0, 200, RECORDS_MAX):
            received = MessageReceived(0, Records(tuple(records[first : first + RECORDS_MAX])))
            member.directory.handle(received, 0.0, made.chance, ())
    made.world.run(120.0)
    for member in made.members:
        groups = Counter(member.links.candidates.group(peer) for peer in member.links.active)
        assert max(groups.values()) <= SUSPICIOUS.group_max
    assert sum(len(member.links.chosen) == SUSPICIOUS.chosen for member in made.members) >= 190


def record_of(domain: int) -> DomainRecord:
    return record_make(domain, int(STARTED_S), STARTED_S)


def test_a_domain_without_room_around_it_asks_each_member_once_in_an_attempt() -> None:
    """Without times between domains, a loop of requests and refusals ran as fast as messages do, and the world stood still."""
    node = PaperMember(0)
    chance = Random(1)
    node.handle(FindLinks((1,)), 0.0, chance)
    node.handle(MessageReceived(1, Neighbor()), 0.0, chance)
    node.view.note(range(2, 8), chance)
    asked: list[int] = []
    out = node.links.handle(Fired(REPAIR_DUE), 1.0, chance)
    while targets := [one.peer for one in out if type(one) is SendMessage and type(one.message) is Neighbor]:
        asked += targets
        out = [
            each for peer in targets for each in node.handle(MessageReceived(peer, NeighborReply(False)), 1.0, chance)
        ]
        assert len(asked) <= 6
    assert sorted(asked) == [2, 3, 4, 5, 6, 7]
    again = node.links.handle(Fired(REPAIR_DUE), 1.0 + passive_view.REFUSED_S, chance)
    assert any(type(one) is SendMessage and type(one.message) is Neighbor for one in again)


def test_a_paper_world_without_times_between_domains_comes_to_rest() -> None:
    chance = Random(3)
    world = World([PaperMember(number) for number in range(60)], SimulatedNetwork(60, chance, scale=0.0), chance)
    for number in range(60):
        world.later(number, FindLinks((chance.randrange(number),) if number else ()), number / 2)
    world.run(60.0)
    before = world.sent
    world.run(120.0)
    assert world.sent - before < 60 * 60
