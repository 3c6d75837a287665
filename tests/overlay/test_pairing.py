"""Places for links: each domain has some at few others, however often it asks, and nobody can foresee where."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from eventing.overlay.directory import DomainDirectory
from eventing.overlay.directory_candidates import DirectoryCandidates
from eventing.overlay.directory_table import DirectoryTable
from eventing.overlay.links import SUSPICIOUS, Disconnect, Links, LinkUp, Neighbor, NeighborReply, Reason
from eventing.overlay.machine import MessageReceived, SendMessage
from eventing.overlay.pairing import GRACE_S, PAIRED, Pairing
from eventing.sim.federation import STARTED_S, directory_make, record_make, table_make

COUNT = 400
CHANCE = Random(1)


@pytest.fixture
def table() -> DirectoryTable:
    return table_make()


def full(domain: int, table: DirectoryTable, count: int = COUNT) -> DomainDirectory:
    made = directory_make(domain, table)
    made.fill(record_make(one, int(STARTED_S), STARTED_S) for one in range(count))
    return made


def all_full(table: DirectoryTable) -> list[DomainDirectory]:
    first = full(0, table)
    made = [directory_make(domain, table) for domain in range(COUNT)]
    for directory in made:
        directory.copy_records(first)
    return made


def renew_founder(directory: DomainDirectory, after_s: float) -> None:
    directory.fill([record_make(0, int(STARTED_S + after_s), STARTED_S + after_s)])


def test_both_ends_of_a_pair_compute_it(table: DirectoryTable) -> None:
    pairings = [Pairing(directory) for directory in all_full(table)[:40]]
    for asker in range(40):
        targets = pairings[asker].targets(0.0)
        for other in range(40):
            assert pairings[other].has_place(asker, 0.0) == (other in targets)


def test_a_domain_has_few_places_and_all_domains_have_about_as_many(table: DirectoryTable) -> None:
    targets = [Pairing(directory).targets(0.0) for directory in all_full(table)]
    assert sum(map(len, targets)) / COUNT == pytest.approx(PAIRED, rel=0.05)
    assert max(map(len, targets)) <= 2.5 * PAIRED
    places = [sum(1 for of in targets if domain in of) for domain in range(COUNT)]
    assert max(places) <= 2.5 * PAIRED


def test_in_a_small_federation_all_are_paired(table: DirectoryTable) -> None:
    directory = full(3, table, PAIRED)
    assert sorted(Pairing(directory).targets(0.0)) == list(range(PAIRED))


def test_each_record_of_the_founder_draws_the_pairs_anew_and_the_ones_before_hold_for_a_while(
    table: DirectoryTable,
) -> None:
    directory, other = full(3, table), full(4, table)
    pairing = Pairing(directory)
    before = pairing.targets(0.0)
    askers = [one for one in range(COUNT) if pairing.has_place(one, 0.0)]
    renew_founder(directory, 60.0)
    after = pairing.targets(61.0)
    assert len(set(before) & set(after)) < len(before) / 3
    assert all(pairing.has_place(asker, 61.0 + GRACE_S / 2) for asker in askers)
    assert sum(pairing.has_place(asker, 61.0 + GRACE_S) for asker in askers) < len(askers) / 3
    assert Pairing(other).targets(61.0) != before  # the table is shared, the directory is not: it holds the old record
    renew_founder(other, 60.0)
    assert Pairing(other).has_place(3, 61.0) == (4 in after)


def test_names_that_were_chosen_for_their_pairs_have_no_more_than_others_after_the_next_record(
    table: DirectoryTable,
) -> None:
    directory = full(3, table, 4000)
    pairing = Pairing(directory)
    chosen = pairing.targets(0.0)  # as if a liar had made names until so many were paired with its victim
    renew_founder(directory, 60.0)
    assert len(set(chosen) & set(pairing.targets(61.0))) <= 2


def test_unknown_domains_have_no_place(table: DirectoryTable) -> None:
    assert not Pairing(full(3, table, PAIRED)).has_place(77, 0.0)


class AskedDomain:
    """A domain that others ask for links; of `COUNT` domains, none with the same sponsor counts as a group."""

    def __init__(self, table: DirectoryTable) -> None:
        self.candidates = DirectoryCandidates(full(3, table))
        self.links = Links(3, msgspec.structs.replace(SUSPICIOUS, group_max=0), self.candidates)
        self.paired = [one for one in range(COUNT) if one != 3 and self.candidates.paired(one, 0.0)]
        self.unpaired = [one for one in range(COUNT) if one != 3 and one not in self.paired]

    def ask(self, peer: int, now: float = 0.0) -> list[Any]:
        return self.links.handle(MessageReceived(peer, Neighbor(True)), now, CHANCE)


def test_a_domain_without_a_place_gets_one_of_the_few_that_are_left_for_all(table: DirectoryTable) -> None:
    asked = AskedDomain(table)
    accepted = [peer for peer in asked.unpaired if LinkUp(peer, False) in asked.ask(peer)]
    assert accepted == asked.unpaired[: SUSPICIOUS.unpaired]
    assert asked.ask(asked.unpaired[-1]) == [SendMessage(asked.unpaired[-1], NeighborReply(False))]


def test_those_with_a_place_get_a_link_however_many_asked_before(table: DirectoryTable) -> None:
    asked = AskedDomain(table)
    for peer in asked.unpaired:
        asked.ask(peer)
    for peer in asked.paired:
        assert LinkUp(peer, False) in asked.ask(peer)


def test_a_domain_that_is_full_makes_room_by_the_oldest_link_without_a_place(table: DirectoryTable) -> None:
    asked = AskedDomain(table)
    asked.links.parameters = msgspec.structs.replace(asked.links.parameters, accepted=6)
    first, *others = asked.unpaired[:4]
    for peer in (first, *others, *asked.paired[:2]):
        asked.ask(peer)
    out = asked.ask(asked.paired[2])
    assert SendMessage(first, Disconnect(Reason.EVICTED)) in out
    assert list(asked.links.active) == [*others, *asked.paired[:3]]
    for peer in asked.paired[3:9]:
        asked.ask(peer)
    assert len(asked.links.active) == 6
    assert asked.paired[:6] == list(asked.links.active)  # none with a place was dropped for another


def test_links_that_a_domain_chose_are_never_dropped_for_those_who_ask(table: DirectoryTable) -> None:
    asked = AskedDomain(table)
    asked.links.parameters = msgspec.structs.replace(asked.links.parameters, accepted=2)
    out: list[Any] = []
    asked.links.ask(asked.unpaired[0], 0.0, out)
    asked.links.handle(MessageReceived(asked.unpaired[0], NeighborReply(True)), 0.1, CHANCE)
    for peer in asked.paired:
        asked.ask(peer)
    assert asked.links.chosen == [asked.unpaired[0]]


def test_draws_are_of_domains_with_a_place_first_and_of_all_where_these_are_too_few(table: DirectoryTable) -> None:
    candidates = DirectoryCandidates(full(3, table))
    places = Pairing(full(3, table)).targets(0.0)
    assert set(candidates.draw(6, (), 0.0, CHANCE)) <= set(places)
    assert len(candidates.draw(6, places, 0.0, CHANCE)) == 6
    assert candidates.draw(6, places, 0.0, CHANCE, only_paired=True) == []
    drawn = candidates.draw(len(places) + 3, (), 0.0, CHANCE)
    assert len(set(drawn)) == len(places) + 3 - (3 in places)
