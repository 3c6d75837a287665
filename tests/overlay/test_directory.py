"""The directory of domains: admission by sponsorship, versions, proofs of equivocation, expiry."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from eventing.overlay.directory import LISTED_MAX, ORPHANS_MAX, WANT_S, WANTED_MAX, DomainDirectory
from eventing.overlay.directory_messages import (
    EXPIRE_DUE,
    DomainAdmitted,
    DomainExpired,
    Equivocated,
    News,
    Records,
    Refused,
    Want,
)
from eventing.overlay.directory_records import AHEAD_S, EXPIRY_S, QUOTA_PER_DAY, DomainRecord, Sponsorship
from eventing.overlay.directory_table import DirectoryTable
from eventing.overlay.machine import Fired, MessageReceived, SendMessage
from eventing.sim.federation import URL, mixed

STARTED_S = 1_000_000.0
CHANCE = Random(1)


def record(
    domain: int, sponsor: int | None = 0, *, version: int = int(STARTED_S), number: int = 0, **changes: Any
) -> DomainRecord:
    sponsorship = None if sponsor is None else Sponsorship(sponsor, domain, 11, number)
    made = DomainRecord(domain, version, STARTED_S, STARTED_S + EXPIRY_S, url=URL, sponsorship=sponsorship)
    return msgspec.structs.replace(made, **changes)


@pytest.fixture
def directory() -> DomainDirectory:
    """The directory of domain 1, which holds the founder, 0, and itself."""
    made = DomainDirectory(
        1,
        DirectoryTable(mixed),
        issue=lambda version, wall_s: record(1, version=version, number=7),
        genuine=lambda one: one.signature != b"forged",
        founders=frozenset({0}),
        started_s=STARTED_S,
    )
    given(made, record(0, None))
    made.begin(0.0, CHANCE)
    return made


def given(directory: DomainDirectory, *records: DomainRecord, peer: int = 0, now: float = 0.0) -> list[Any]:
    return directory.handle(MessageReceived(peer, Records(records)), now, CHANCE, ())


def test_a_sponsored_domain_is_admitted_once(directory: DomainDirectory) -> None:
    assert DomainAdmitted(2) in given(directory, record(2))
    assert not [event for event in given(directory, record(2)) if isinstance(event, DomainAdmitted)]
    assert directory.count == 3


def test_a_record_that_arrives_before_its_sponsors_is_admitted_after_it(directory: DomainDirectory) -> None:
    assert directory.record(3) is None
    given(directory, record(3, sponsor=2))
    assert directory.record(3) is None
    out = given(directory, record(2))
    assert [event.domain for event in out if isinstance(event, DomainAdmitted)] == [2, 3]


def test_records_without_a_sponsor_are_bounded(directory: DomainDirectory) -> None:
    for first in range(0, 3 * ORPHANS_MAX, 64):
        given(directory, *(record(10_000 + first + at, sponsor=9999) for at in range(64)))
    assert directory.count == 2
    assert len(directory._orphans) == ORPHANS_MAX


@pytest.mark.parametrize(
    ("false", "why"),
    [
        (record(2, signature=b"forged"), "signature"),
        (record(2, None), "no sponsor"),
        (record(2, number=QUOTA_PER_DAY), "false sponsorship"),
        (record(2, sponsorship=Sponsorship(0, 5, 11, 0)), "false sponsorship"),
        (record(2, issued_s=STARTED_S + AHEAD_S + 1, expires_s=STARTED_S + EXPIRY_S), "ahead of time"),
        (record(2, version=2**31), "ahead of time"),
        (record(2, expires_s=STARTED_S), "expired"),
        (record(2, expires_s=STARTED_S + EXPIRY_S + 1), "expired"),
        (record(2, expires_s=float("nan")), "expired"),
        (record(2, issued_s=float("nan")), "ahead of time"),
    ],
    ids=["forged", "unsponsored", "quota", "other's", "issued", "version", "past", "long", "nan", "nan issued"],
)
def test_a_false_record_is_refused(directory: DomainDirectory, false: DomainRecord, why: str) -> None:
    assert given(directory, false) == [Refused(0, 2, why, false)]
    assert directory.record(2) is None


def test_an_older_record_is_ignored_and_a_newer_one_held(directory: DomainDirectory) -> None:
    newer = record(2, version=int(STARTED_S) + 5, url="new")
    given(directory, newer)
    given(directory, record(2))
    assert directory.record(2) == newer


def test_two_records_of_one_version_are_proof_of_equivocation_once(directory: DomainDirectory) -> None:
    one, other = record(2), record(2, url="https://other.example")
    given(directory, one)
    proofs = [event for event in given(directory, other) + given(directory, other) if isinstance(event, Equivocated)]
    assert [(proof.domain, proof.proof.one, proof.proof.other) for proof in proofs] == [(2, one, other)]


def test_two_newcomers_with_one_number_convict_their_sponsor(directory: DomainDirectory) -> None:
    given(directory, record(2))
    out = given(directory, record(3))
    assert [event.domain for event in out if isinstance(event, Equivocated)] == [0]
    assert directory.record(3) is None


def test_a_domain_answers_a_newer_record_of_itself_with_a_newer_one_still(directory: DomainDirectory) -> None:
    before = directory.record(1)
    assert before is not None
    given(directory, record(1, version=before.version + 50, url="from before a restart"))
    now = directory.record(1)
    assert now is not None
    assert now.version == before.version + 51
    assert now.url == URL


def test_a_record_leaves_by_its_expiry_only(directory: DomainDirectory) -> None:
    given(directory, record(2))
    root = directory.fingerprint()
    out = directory.handle(Fired(EXPIRE_DUE), EXPIRY_S - 1, CHANCE, ())
    assert not [event for event in out if isinstance(event, DomainExpired)]
    out = directory.handle(Fired(EXPIRE_DUE), EXPIRY_S + 1, CHANCE, ())
    assert {event.domain for event in out if isinstance(event, DomainExpired)} == {0, 1, 2}
    assert directory.count == 0
    assert directory.fingerprint() == 0 != root


def test_a_domain_and_all_that_it_brought_in_bring_in_no_more_than_its_quota(directory: DomainDirectory) -> None:
    given(directory, record(2, number=1))
    chain = [record(3 + at, sponsor=2 + at) for at in range(3 * QUOTA_PER_DAY)]
    events = given(directory, *chain)
    assert [event.why for event in events if isinstance(event, Refused)] == ["quota"]
    assert directory.count == 3 + QUOTA_PER_DAY


@pytest.mark.parametrize("day", [-1, 10, 12, 2**64 - 1], ids=["negative", "before the sponsor", "tomorrow", "huge"])
def test_a_sponsorship_of_another_day_is_refused(directory: DomainDirectory, day: int) -> None:
    given(directory, record(2, number=1))
    false = record(3, sponsorship=Sponsorship(2, 3, day, 0))
    assert given(directory, false) == [Refused(0, 3, "false sponsorship", false)]


def test_a_domain_keeps_its_sponsor_while_it_is_in_the_directory(directory: DomainDirectory) -> None:
    given(directory, record(2, number=1))
    other = record(2, number=2, version=int(STARTED_S) + 1)
    assert given(directory, other) == [Refused(0, 2, "other sponsorship", other)]


def test_a_domain_whose_sponsor_has_gone_goes_on(directory: DomainDirectory) -> None:
    given(directory, record(2, number=1))
    given(directory, record(3, sponsor=2, expires_s=STARTED_S + EXPIRY_S))
    later = EXPIRY_S - 60.0
    renewed = record(3, sponsor=2, version=int(STARTED_S + later), issued_s=STARTED_S + later)
    given(directory, msgspec.structs.replace(renewed, expires_s=STARTED_S + later + EXPIRY_S), now=later)
    directory.handle(Fired(EXPIRE_DUE), EXPIRY_S + 1, CHANCE, ())
    assert directory.record(2) is None
    assert directory.record(3) is not None


def test_requests_for_records_are_bounded_and_go_to_nobody_twice(directory: DomainDirectory) -> None:
    for first in range(0, 3 * WANTED_MAX, LISTED_MAX):
        entries = tuple((10_000 + first + at, int(STARTED_S), 0) for at in range(LISTED_MAX))
        directory.handle(MessageReceived(9, News(entries)), 0.0, CHANCE, ())
    assert len(directory._wanted) <= WANTED_MAX
    news = News(((7, int(STARTED_S), 0),))
    assert directory.handle(MessageReceived(9, news), 0.0, CHANCE, ()) == [SendMessage(9, Want((7,)))]
    assert directory.handle(MessageReceived(8, news), 1.0, CHANCE, ()) == []
    assert directory.handle(MessageReceived(9, news), 2 * WANT_S, CHANCE, ()) == []
    assert directory.handle(MessageReceived(8, news), 2 * WANT_S, CHANCE, ()) == [SendMessage(8, Want((7,)))]


def test_versions_that_nobody_holds_are_discarded(directory: DomainDirectory) -> None:
    for at in range(0, 20 * int(EXPIRY_S), 1800):
        newer = record(2, version=int(STARTED_S) + at, issued_s=STARTED_S + at, expires_s=STARTED_S + at + EXPIRY_S)
        given(directory, newer, now=float(at))
        directory.handle(Fired(EXPIRE_DUE), float(at), CHANCE, ())
    table = directory._table
    assert len(table.records[table.number[2]]) <= 2 * EXPIRY_S / 1800 + 2


def test_directories_that_began_as_copies_change_each_by_itself(directory: DomainDirectory) -> None:
    def again(me: int) -> DomainDirectory:
        made = DomainDirectory(
            me,
            directory._table,
            issue=lambda version, wall_s: record(me, version=version),
            genuine=lambda one: True,
            founders=frozenset({0}),
            started_s=STARTED_S,
        )
        made.copy_records(directory)
        return made

    one, other, third = again(1), again(1), again(1)
    prints = {each.fingerprint() for each in (directory, one, other, third)}
    assert len(prints) == 1
    given(one, record(2, number=1))
    given(directory, record(3, number=2))
    assert [each.count for each in (directory, one, other, third)] == [3, 3, 2, 2]
    assert [list(each.domains()) for each in (one, other)] == [[0, 1, 2], [0, 1]]
    assert one.record(3) is None
    assert directory.record(2) is None
    assert {other.fingerprint(), third.fingerprint()} == prints
    other.handle(Fired(EXPIRE_DUE), EXPIRY_S + 1, CHANCE, ())
    assert (other.count, third.count) == (0, 2)
