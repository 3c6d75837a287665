"""A sponsorship holds by its sponsor's signature as of its time, and brings in no more for a sponsor that has left."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from eventing.overlay.directory import DomainDirectory
from eventing.overlay.directory_messages import EXPIRE_DUE, DomainAdmitted, Records, Refused, SponsorRemembered, Want
from eventing.overlay.directory_records import DAY_S, EXPIRY_S, DomainRecord, Sponsorship
from eventing.overlay.directory_table import DirectoryTable
from eventing.overlay.machine import Fired, MessageReceived, SendMessage
from eventing.overlay.past_sponsors import PAST_MAX
from eventing.sim.federation import URL, mixed

STARTED_S = 1_000_000.0
DAY = int(STARTED_S // DAY_S)
LATER = EXPIRY_S + 600.0
"""When the sponsors' records of the start have expired."""
CHANCE = Random(1)


def record(domain: int, sponsor: int | None = 0, *, at: float = 0.0, number: int = 0, **changes: Any) -> DomainRecord:
    wall_s = STARTED_S + at
    day = changes.pop("day", DAY)
    given = None if sponsor is None else Sponsorship(sponsor, domain, day, number)
    made = DomainRecord(domain, int(wall_s), wall_s, wall_s + EXPIRY_S, url=URL, sponsorship=given)
    return msgspec.structs.replace(made, **changes)


def directory(me: int = 1, stored: dict[int, DomainRecord] | None = None) -> DomainDirectory:
    """A directory that holds the founder's record of LATER and its own."""
    made = DomainDirectory(
        me,
        DirectoryTable(mixed),
        issue=lambda version, wall_s: record(me, at=wall_s - STARTED_S, number=7, version=version),
        genuine=lambda one: one.signature != b"forged",
        founders=frozenset({0}),
        started_s=STARTED_S,
        remembered=(stored or {}).get,
    )
    given(made, record(0, None, at=LATER - 60))
    made.begin(LATER, CHANCE)
    return made


def given(of: DomainDirectory, *records: DomainRecord, peer: int = 0, now: float = LATER) -> list[Any]:
    return of.handle(MessageReceived(peer, Records(records)), now, CHANCE, ())


SPONSOR = record(2, number=1)
NEWCOMER = record(3, sponsor=2, at=LATER - 60)


def admitted(out: list[Any]) -> list[Any]:
    return [event.domain for event in out if isinstance(event, DomainAdmitted)]


def test_a_newcomer_admits_a_domain_whose_sponsor_has_left() -> None:
    """It asks for the sponsor's last record, which vouches and is in no directory."""
    newcomer = directory()
    out = given(newcomer, NEWCOMER, peer=9)
    assert SendMessage(9, Want((2,))) in out
    assert newcomer.record(3) is None
    out = given(newcomer, SPONSOR, peer=9)
    assert SponsorRemembered(SPONSOR) in out
    assert admitted(out) == [3]
    assert newcomer.record(2) is None
    assert newcomer.count == 3
    assert 2 not in list(newcomer.domains())


def test_the_records_may_arrive_together_and_the_sponsors_sponsor_may_have_left_too() -> None:
    newcomer = directory()
    grandchild = record(4, sponsor=3, at=LATER - 60)
    assert admitted(given(newcomer, record(3, sponsor=2), grandchild, peer=9)) == []
    assert admitted(given(newcomer, SPONSOR, peer=9)) == [4]


def test_a_domain_that_held_the_sponsor_answers_with_its_last_record() -> None:
    older = DomainDirectory(
        5,
        DirectoryTable(mixed),
        issue=lambda version, wall_s: record(5, at=wall_s - STARTED_S, number=6, version=version),
        genuine=lambda one: True,
        founders=frozenset({0}),
        started_s=STARTED_S,
    )
    given(older, record(0, None), SPONSOR, record(3, sponsor=2), now=0.0)
    child = record(3, sponsor=2, at=EXPIRY_S - 60)
    given(older, record(0, None, at=EXPIRY_S - 60), child, now=EXPIRY_S - 1)
    older.handle(Fired(EXPIRE_DUE), LATER, CHANCE, ())
    assert older.record(2) is None
    assert older.record(3) == child, "it stays"
    out = older.handle(MessageReceived(1, Want((2, 77))), LATER, CHANCE, ())
    assert SendMessage(1, Records((SPONSOR,))) in out


def test_a_restart_takes_the_sponsor_from_storage() -> None:
    stored = {2: SPONSOR}
    assert admitted(given(directory(stored=stored), NEWCOMER)) == [3]


def test_an_expired_record_that_nobody_waits_for_is_refused() -> None:
    newcomer = directory()
    assert given(newcomer, SPONSOR) == [Refused(0, 2, "expired", SPONSOR)]
    assert not newcomer.past


def test_who_was_asked_for_a_past_record_is_blamed_for_nothing() -> None:
    """Meanwhile somebody else may have sent it, or those who waited may have gone."""
    newcomer = directory()
    given(newcomer, NEWCOMER, peer=9)
    newcomer._orphans.clear()
    assert not [event for event in given(newcomer, SPONSOR, peer=9) if isinstance(event, Refused)]
    introduced = given(directory(stored={2: SPONSOR}), SPONSOR, NEWCOMER)
    assert not [event for event in introduced if isinstance(event, Refused)]


def test_a_sponsor_that_has_left_vouches_for_nobody_afterwards() -> None:
    """A sponsorship of a day after its last record is refused; its numbers are bounded as ever."""
    late = 3 * DAY_S
    newcomer = directory(stored={2: SPONSOR})
    given(newcomer, record(0, None, at=late - 60), now=late)
    forged = record(3, sponsor=2, at=late - 60, day=DAY + 1)
    assert given(newcomer, forged, now=late) == [Refused(0, 3, "false sponsorship", forged)]
    assert admitted(given(newcomer, record(4, sponsor=2, at=late - 60), now=late)) == [4]


def test_a_forged_record_of_a_sponsor_vouches_for_nobody() -> None:
    newcomer = directory()
    given(newcomer, NEWCOMER, peer=9)
    forged = record(2, number=1, signature=b"forged")
    assert Refused(9, 2, "signature", forged) in given(newcomer, forged, peer=9)
    unrooted = record(2, None)
    assert Refused(9, 2, "no sponsor", unrooted) in given(newcomer, unrooted, peer=9)
    assert newcomer.record(3) is None


def test_what_a_sponsor_that_left_brought_in_counts_for_its_own_sponsor() -> None:
    """Letting one's newcomers expire buys no further newcomers."""
    late = LATER
    newcomer = directory()
    given(newcomer, record(2, number=1, at=late - 60))
    past = [record(10 + number, sponsor=2, number=number) for number in range(4)]
    children = [
        record(100 + 10 * at + number, sponsor=one.domain, at=late - 60, number=number)
        for at, one in enumerate(past)
        for number in range(8)
    ]
    for child in children:
        given(newcomer, child, peer=9)
    given(newcomer, *past, peer=9)
    brought = [child.domain for child in children if newcomer.record(child.domain) is not None]
    assert len(brought) == 8, "what one domain and all that it brought in may bring in on a day"


def test_the_memory_of_past_sponsors_is_bounded() -> None:
    newcomer = directory()
    for number in range(PAST_MAX + 10):
        newcomer.past.add(record(1000 + number))
    assert newcomer.sizes()["past"] == PAST_MAX
