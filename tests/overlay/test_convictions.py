"""Contradictory records and sponsorships: noticed at the first contact of two sides, proved to everybody, and the same record held by all."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from eventing.overlay.convictions import PROOFS_MAX, Convictions
from eventing.overlay.directory import DomainDirectory, accused
from eventing.overlay.directory_candidates import DirectoryCandidates
from eventing.overlay.directory_messages import (
    ANNOUNCE_DUE,
    EXPIRE_DUE,
    Compare,
    Equivocated,
    Equivocation,
    News,
    RangeEntries,
    Records,
    Refused,
    Want,
)
from eventing.overlay.directory_records import EXPIRY_S, DomainRecord
from eventing.overlay.directory_table import DirectoryTable
from eventing.overlay.machine import Fired, Id, MessageReceived, SendMessage
from eventing.sim.federation import mixed
from tests.overlay.test_directory import CHANCE, STARTED_S, given, record

ONE, OTHER = record(2, number=1), record(2, number=1, url="https://other.example")


def directory_of(me: int, table: DirectoryTable, *records: DomainRecord) -> DomainDirectory:
    made = DomainDirectory(
        me,
        table,
        issue=lambda version, wall_s: record(me, version=version, number=me % 8),
        genuine=lambda one: one.signature != b"forged",
        founders=frozenset({0}),
        started_s=STARTED_S,
    )
    given(made, record(0, None), *records)
    return made


@pytest.fixture
def sides() -> tuple[DomainDirectory, DomainDirectory]:
    """Two domains, 5 and 6, to which domain 2 has shown different records."""
    table = DirectoryTable(mixed)
    return directory_of(5, table, ONE), directory_of(6, table, OTHER)


def passed(one: DomainDirectory, other: DomainDirectory, out: list[Any], links: tuple[Id, ...] = ()) -> list[Any]:
    """Deliver what `one` sends to `other` and the answers, until nobody answers; the events."""
    events, queue = [], [(one, other, out)]
    while queue:
        sender, receiver, sent = queue.pop(0)
        for each in sent:
            if isinstance(each, SendMessage):
                answers = receiver.handle(MessageReceived(sender.me, each.message), 1.0, CHANCE, links)
                queue.append((receiver, sender, answers))
            else:
                events.append(each)
    return events


def convicted(events: list[Any]) -> list[Id]:
    return [event.domain for event in events if isinstance(event, Equivocated)]


def test_a_comparison_finds_two_records_of_one_version(sides: tuple[DomainDirectory, DomainDirectory]) -> None:
    one, other = sides
    assert one.record(2) == ONE
    assert other.record(2) == OTHER
    assert one.fingerprint() != other.fingerprint()
    out: list[Any] = []
    one.compare(other.me, out)
    assert convicted(passed(one, other, out)) == [2, 2]
    assert one.record(2) == other.record(2)
    assert one.fingerprint() == other.fingerprint()


def test_an_announcement_is_enough_to_find_two_records_of_one_version(
    sides: tuple[DomainDirectory, DomainDirectory],
) -> None:
    one, other = sides
    out = one.handle(Fired(ANNOUNCE_DUE), 1.0, CHANCE, (6,))
    assert [each.message for each in out if isinstance(each.message, News)]
    assert convicted(passed(one, other, out))


def test_a_proof_is_sent_on_once_and_not_to_its_sender(sides: tuple[DomainDirectory, DomainDirectory]) -> None:
    one, _ = sides
    one.handle(Fired(ANNOUNCE_DUE), 0.5, CHANCE, ())
    proof = Equivocation(ONE, OTHER)
    assert convicted(one.handle(MessageReceived(9, proof), 1.0, CHANCE, ())) == [2]
    sent = one.handle(Fired(ANNOUNCE_DUE), 2.0, CHANCE, (7, 8, 9))
    assert [each.peer for each in sent if each.message == proof] == [7, 8]
    assert not convicted(one.handle(MessageReceived(8, proof), 3.0, CHANCE, ()))
    assert not one.handle(Fired(ANNOUNCE_DUE), 4.0, CHANCE, (7, 8, 9))


def test_a_domain_that_asks_for_a_record_gets_the_proof_against_its_domain(
    sides: tuple[DomainDirectory, DomainDirectory],
) -> None:
    one, _ = sides
    given(one, OTHER)
    sent = one.handle(MessageReceived(7, Want((2,))), 1.0, CHANCE, ())
    newcomer = directory_of(7, DirectoryTable(mixed))
    events = [event for each in sent for event in newcomer.handle(MessageReceived(5, each.message), 1.0, CHANCE, ())]
    assert convicted(events) == [2]
    assert newcomer.record(2) == one.record(2)


FALSE = {
    "forged": Equivocation(ONE, msgspec.structs.replace(OTHER, signature=b"forged")),
    "the same record": Equivocation(ONE, ONE),
    "two versions": Equivocation(ONE, record(2, number=1, version=ONE.version + 1)),
    "two numbers": Equivocation(record(2, number=1), record(3, number=2)),
    "two sponsors": Equivocation(record(2, number=1), record(3, sponsor=5, number=1)),
    "another's sponsorship": Equivocation(record(2, number=1), record(4, sponsorship=record(3, number=1).sponsorship)),
}


@pytest.mark.parametrize("proof", FALSE.values(), ids=FALSE)
def test_what_proves_nothing_convicts_nobody(
    proof: Equivocation, sides: tuple[DomainDirectory, DomainDirectory]
) -> None:
    out = sides[0].handle(MessageReceived(9, proof), 1.0, CHANCE, ())
    assert not convicted(out)
    assert all(isinstance(event, Refused) for event in out)
    assert len(sides[0].convictions) == 0


def test_of_two_newcomers_with_one_number_all_directories_hold_the_same_one() -> None:
    table = DirectoryTable(mixed)
    first, second = record(3, number=1), record(4, number=1)
    one, other = directory_of(5, table, first, second), directory_of(6, table, second, first)
    assert accused(Equivocation(first, second)) == 0
    assert 0 in one.convictions
    assert 0 in other.convictions
    assert one.fingerprint() == other.fingerprint()
    assert {one.record(3) is None, one.record(4) is None} == {True, False}


def test_three_records_of_one_version_end_as_one_everywhere() -> None:
    table = DirectoryTable(mixed)
    third = record(2, number=1, url="https://third.example")
    one, other = directory_of(5, table, ONE, OTHER), directory_of(6, table, third)
    out: list[Any] = []
    one.compare(other.me, out)
    passed(one, other, out)
    assert one.record(2) == other.record(2)
    assert one.fingerprint() == other.fingerprint()


def test_a_convicted_domain_is_drawn_for_no_link_and_gets_none() -> None:
    directory = directory_of(5, DirectoryTable(mixed), ONE, OTHER)
    candidates = DirectoryCandidates(directory)
    assert candidates.group(2) is None
    assert {peer for _ in range(50) for peer in candidates.draw(3, (5,), 0.0, CHANCE)} == {0}


def test_a_conviction_ends_with_the_convicted_domains_record() -> None:
    directory = directory_of(5, DirectoryTable(mixed), ONE, OTHER)
    directory.handle(Fired(EXPIRE_DUE), EXPIRY_S + 1, CHANCE, ())
    assert 2 not in directory.convictions


def test_proofs_are_bounded() -> None:
    convictions: Convictions[Equivocation] = Convictions()
    added = [convictions.add(domain, Equivocation(ONE, OTHER), 0) for domain in range(PROOFS_MAX + 10)]
    assert added.count(True) == len(convictions) == PROOFS_MAX


def test_a_record_of_a_domain_itself_with_its_version_makes_it_issue_a_newer_one() -> None:
    directory = directory_of(5, DirectoryTable(mixed))
    directory.begin(0.0, CHANCE)
    before = directory.record(5)
    assert before is not None
    given(directory, msgspec.structs.replace(before, url="https://copy.example"))
    after = directory.record(5)
    assert after is not None
    assert after.version > before.version


def test_entries_and_ranges_without_sense_are_ignored() -> None:
    directory = directory_of(5, DirectoryTable(mixed), ONE)
    for message in (
        RangeEntries((-1, 2**40, 2**64 - 1), ((2, -7, -1), (3, 2**64 - 1, 0))),
        Compare(((-1, 0), (2**64 - 1, 7), (0, -1))),
        News(((2, -1, 0), (2**64 - 1, 2**64 - 1, 2**64 - 1))),
        Want((-1, 2**64)),
        Records((record(2**63, version=-(2**63)), record(3, number=-1), record(3, sponsor=2**64))),
    ):
        directory.handle(MessageReceived(9, message), 1.0, CHANCE, ())
    assert directory.count == 2


def test_no_id_is_drawn_more_often_however_it_was_chosen() -> None:
    """A newcomer that grinds ids until their hashes are extreme gains nothing: draws read places in the own list, not hashes."""
    ground = sorted(range(1_000, 41_000), key=mixed)[:20] + sorted(range(1_000, 41_000), key=mixed)[-20:]
    others = list(range(100, 460))
    directory = directory_of(5, DirectoryTable(mixed))
    directory.fill(record(domain, sponsor=0) for domain in [*ground, *others])
    draws = [directory.draw(CHANCE) for _ in range(20_000)]
    share = sum(domain in ground for domain in draws) / len(draws)
    assert abs(share - 40 / 401) < 0.01
