"""Joins, renewals and leaves of this domain that cross each other: each is answered, and none undoes another."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.utils import timezone

from demo.harness.servers import wait_for
from eventing.core.errors import Conflict, NotFound, QuotaExceeded, Unavailable
from eventing.peering.models import Misbehaviour
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import VERSION
from eventing.replication.joining import announcements, next_hops, sweeping
from eventing.replication.joining import client as replica_asking
from eventing.replication.joining import handler as replica_answering
from eventing.replication.joining.messages import DONE, JoinAnswer, JoinRequest, LeaveRequest, decoded, encode
from eventing.replication.joining.next_hops import JOIN_PATH
from eventing.replication.models import ReplicaEnd
from eventing.replication.services import replicas
from eventing.replication.services.replicas import replica_leave, replicas_to_renew
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules import statements
from eventing.rps.rules.statements import Join, join_read, packed
from tests.peering.other_domain import OtherDomain
from tests.replication.homes import ROOT, Home, make, now_ms, row_of
from tests.replication.shared_rp import peer_made

pytestmark = pytest.mark.usefixtures("home_stores")


@dataclass
class Asked:
    """The home as it is asked: `during` a join something else happens here, or the home says something else."""

    home: Home
    during: list[Callable[[], object]] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)
    leaves: list[Join] = field(default_factory=list)

    def call(self, url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        if path != JOIN_PATH:
            self.leaves.append(join_read(decoded(body, LeaveRequest).statement))
            return DONE
        self.joins.append(join_read(decoded(body, JoinRequest).join))
        if self.during:
            self.during.pop(0)()
        admission = self.home.admission(issued_at_ms=now_ms() + len(self.joins))
        return encode(JoinAnswer(VERSION, self.home.descriptor(), [admission], [self.home.document()]))

    def join(self) -> RendezvousPoint:
        return replica_asking.replica_join(rp=self.home.rp, principal=ROOT, via=self.home.name)


@pytest.fixture
def asked(a: Home, monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked(a)
    for module in (replica_asking, announcements):
        monkeypatch.setattr(module, "call", made.call)
    return made


def test_two_joins_at_once_make_one_replica_and_neither_leaves(a: Home, asked: Asked) -> None:
    """A client that waited long asks again."""
    asked.during.append(asked.join)
    row = asked.join()
    assert len(asked.joins) == 2
    assert asked.leaves == []
    assert row.id == row_of(a).id
    assert row.version == a.version, "what was answered last is taken over"


def test_a_join_that_another_one_overtook_at_the_home_is_answered_with_the_replica(asked: Asked) -> None:
    def overtaken() -> None:
        asked.join()
        raise PeerError("refused", "You have joined since.", code=Conflict.code, status=409)

    asked.during.append(overtaken)
    assert asked.join().id == asked.home.rp
    assert asked.leaves == []


def test_a_join_without_a_place_here_takes_back_itself_and_no_later_one(
    asked: Asked, configure: Callable[..., None]
) -> None:
    configure(history_quota_bytes=1)
    asked.during.append(lambda: wait_for(lambda: now_ms() > asked.joins[0].at_ms + 10))
    with pytest.raises(QuotaExceeded):
        asked.join()
    (join,), (leave,) = asked.joins, asked.leaves
    assert leave.lease_s == 0
    assert join.at_ms < leave.at_ms < join.at_ms + 10, "a join that was signed after this one stands"


def test_a_replica_that_is_left_while_it_is_renewed_is_left_at_the_home_too(a: Home, asked: Asked) -> None:
    row = make(a)
    asked.during.append(lambda: replica_leave(rp=a.rp, principal=ROOT))
    with pytest.raises(NotFound, match="ended while"):
        replica_asking.replica_renew(row, 60)
    (leave,) = asked.leaves
    assert leave.at_ms > asked.joins[0].at_ms
    assert not RendezvousPoint.objects.exists()


def test_a_join_whose_answer_is_malformed_fails_as_the_other_domains_fault(
    a: Home, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [b"\x94\x01\x93\xc4\x00\xa1\xff\xc4\x00\x90\x90", b"\x91" * 100_000, b"junk"]
    monkeypatch.setattr(replica_asking, "call", lambda *given: answers.pop(0))
    while answers:
        with pytest.raises(Unavailable, match=r"a\.test: Its answer to a join is malformed"):
            asked.join()
    noted = Misbehaviour.objects.get()
    assert (noted.kind, noted.carrier, noted.count) == ("malformed", "a.test", 3)
    assert not RendezvousPoint.objects.exists()


def test_a_relayed_join_whose_answer_is_malformed_is_not_the_fault_of_who_sent_it(
    a: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    joining = OtherDomain("c.test", url="https://c.test")
    row = make(a)
    wish = statements.Join(a.rp, "c.test", "https://c.test", 60, now_ms())
    request = JoinRequest(VERSION, statements.join_make(wish, joining.keys[-1]), [joining.document()], ["c.test"])
    monkeypatch.setattr(next_hops, "call", lambda *given: b"\x94\x01\xa1\xff")
    with pytest.raises(Unavailable, match=r"a\.test: Its answer to a join is malformed"):
        replica_answering.join(Sender("c.test", joining.fingerprint, peer_made(joining)), encode(request))
    assert [noted.carrier for noted in Misbehaviour.objects.all()] == [row.home]


def test_a_replica_that_was_just_left_is_not_joined_again_by_the_sweep(
    a: Home, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep had listed what it renews before."""
    make(a)
    RendezvousPoint.objects.filter(id=a.rp).update(renew_at=timezone.now() - timedelta(seconds=1))
    listed = replicas_to_renew()
    assert listed
    monkeypatch.setattr(sweeping, "replicas_to_renew", lambda now: listed)
    replica_leave(rp=a.rp, principal=ROOT)
    sweeping.replicas_sweep()
    assert asked.joins == []


def test_a_home_that_answers_slowly_delays_the_leases_of_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [RendezvousPoint(id=f"slow{number}", home="slow.test") for number in range(5)]
    rows.append(RendezvousPoint(id="quick", home="quick.test"))
    renewed, others = threading.Event(), []

    def renew(row: RendezvousPoint, lease_s: int | None, timeout_s: float) -> None:
        if row.home == "quick.test":
            renewed.set()
            return
        others.append(row.id)
        if not renewed.wait(timeout_s):  # as long as it takes to find that nobody answers
            raise Unavailable("No answer.", retry_after_s=1)

    monkeypatch.setattr(sweeping, "replicas_to_renew", lambda now: rows)
    monkeypatch.setattr(sweeping, "renewal_note_failed", lambda rp: True)
    monkeypatch.setattr(sweeping, "replica_renew", renew)
    sweeping.replicas_sweep()
    assert renewed.is_set()
    assert others == [f"slow{number}" for number in range(5)], "which has its time for its own"


def test_a_home_that_does_not_answer_is_asked_once_in_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def renew(row: RendezvousPoint, lease_s: int | None, timeout_s: float) -> None:
        asked.append(row.id)
        raise Unavailable("No answer.", retry_after_s=1)

    rows = [RendezvousPoint(id=f"{home}{number}", home=home) for number in range(3) for home in ("a.test", "b.test")]
    monkeypatch.setattr(sweeping, "replicas_to_renew", lambda now: rows)
    monkeypatch.setattr(sweeping, "renewal_note_failed", lambda rp: True)
    monkeypatch.setattr(sweeping, "replica_renew", renew)
    sweeping.replicas_sweep()
    assert sorted(asked) == ["a.test0", "b.test0"]


def test_a_home_with_many_short_leases_leaves_room_for_the_others(a: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "RENEW_BATCH", 4)
    row, now = make(a), timezone.now()
    for number in range(8):
        row.pk = f"{number:a>26}".translate(str.maketrans("0123456789", "bcdefghijk"))
        row.name, row.home = None, "a.test" if number < 6 else "b.test"
        row.renew_at, row.expires_at = now, row.expires_at + timedelta(seconds=1)
        row.save(force_insert=True)
    assert Counter(due.home for due in replicas_to_renew(now=now)) == {"a.test": 2, "b.test": 2}


def test_a_domain_that_does_not_answer_is_asked_once_about_the_ends_of_a_sweep(
    a: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def unreachable(url: str, domain: str, *rest: object) -> bytes:
        asked.append(domain)
        raise PeerError("unreachable", "No answer in time.")

    monkeypatch.setattr(announcements, "call", unreachable)
    ends = [
        ReplicaEnd(rp=f"rp{number}", reason=reason, pending=[a.name], home="localhost")
        for number, reason in enumerate([ReplicaEnd.Reason.DELETED, ReplicaEnd.Reason.LEFT] * 3)
    ]
    for end in ends:
        end.statement = packed(a.descriptor())
    monkeypatch.setattr(sweeping, "ends_due", lambda now: ends)
    sweeping.replicas_sweep()
    assert asked == [a.name]
