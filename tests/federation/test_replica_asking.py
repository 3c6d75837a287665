"""Joins, renewals and leaves of this domain that cross each other: each is answered, and none undoes another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.utils import timezone

from eventing.core.errors import Conflict, NotFound, QuotaExceeded
from eventing.core.rps.replicas import Join, join_read
from eventing.federation.client import PeerError
from eventing.federation.replicas import replica_asking, replica_sweeping, replica_telling
from eventing.federation.replicas.replica_messages import DONE, JoinAnswer, JoinRequest, LeaveRequest, decoded, encode
from eventing.federation.replicas.replica_ways import JOIN_PATH
from eventing.federation.wire import VERSION
from eventing.models import RendezvousPoint
from eventing.services.rps.replicas import replica_leave, replicas_to_renew
from tests.federation.homes import ROOT, Home, make, now_ms, row_of
from tests.servers import wait_for

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
def asked(a: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    made = Asked(a)
    for module in (replica_asking, replica_telling):
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
    with pytest.raises(NotFound, match="left"):
        replica_asking.replica_renew(row, 60)
    (leave,) = asked.leaves
    assert leave.at_ms > asked.joins[0].at_ms
    assert not RendezvousPoint.objects.exists()


def test_a_replica_that_was_just_left_is_not_joined_again_by_the_sweep(
    a: Home, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep had listed what it renews before."""
    make(a)
    RendezvousPoint.objects.filter(id=a.rp).update(renew_at=timezone.now() - timedelta(seconds=1))
    listed = replicas_to_renew()
    assert listed
    monkeypatch.setattr(replica_sweeping, "replicas_to_renew", lambda now: listed)
    replica_leave(rp=a.rp, principal=ROOT)
    replica_sweeping.replicas_sweep()
    assert asked.joins == []
