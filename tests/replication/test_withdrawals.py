"""An admission that was taken back is told to its domain, by the home and by whoever else is its peer, until it knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from eventing.peering.selectors.peers import peers_forget
from eventing.peering.services.peers import peer_resume, peer_suspend
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError
from eventing.replication.joining import announcements
from eventing.replication.joining.sweeping import replicas_sweep
from eventing.replication.models import ReplicaAdmission, ReplicaEnd
from eventing.replication.services.replica_admissions import replica_admit
from eventing.replication.services.withdrawals import AGAIN_S_MAX, AGAIN_S_MIN, withdrawals_due, withdrawals_try
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import admission_read
from eventing.rps.services.rendezvous_points import (
    rendezvous_point_create,
    rendezvous_point_delete,
    rendezvous_point_update,
)
from tests.peering.other_domain import OtherDomain
from tests.replication.homes import ANN, OPEN_TO_B, ROOT, Home, join_of, make, now_ms, peer, taken

pytestmark = pytest.mark.usefixtures("home_stores")
LEASE_S = 3600


class Told:
    """Who is told, and what they answer: codes by domain, or no answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[tuple[str, wire.ExchangeRequest]] = []
        self.answers: dict[str, str | None] = {}
        monkeypatch.setattr(announcements, "call", self._call)

    def _call(self, url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        assert path == "/federation/v1/exchange"
        request = wire.request(body)
        self.requests.append((domain, request))
        code = self.answers.get(domain, "not-found")
        if code is None:
            raise PeerError("unreachable", "Nobody there.")
        return wire.encode(
            wire.ExchangeAnswer(wire.VERSION, [wire.RpAnswer(part.rp, error=code) for part in request.parts])
        )


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    return Told(monkeypatch)


def taken_back() -> RendezvousPoint:
    """An RP of ours to which b was admitted until the policy changed."""
    peer(OtherDomain())
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B, lease_s=2 * LEASE_S)
    replica_admit(join=join_of("b.test", row.id, lease_s=LEASE_S))
    rendezvous_point_update(reference=row.id, principal=ANN, changes={"policy": []})
    return row


def in_s(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def test_the_home_tells_whom_it_admits_no_longer_until_it_knows(told: Told) -> None:
    row = taken_back()
    told.answers["b.test"] = None
    replicas_sweep()
    assert [domain for domain, _ in told.requests] == ["b.test"]
    assert not withdrawals_due(), "not at once again"
    told.answers["b.test"] = ""
    replicas_sweep(now=in_s(AGAIN_S_MIN))
    assert withdrawals_due(now=in_s(2 * AGAIN_S_MAX)), "it says that it participates still"
    del told.answers["b.test"]
    replicas_sweep(now=in_s(2 * AGAIN_S_MAX))
    assert not withdrawals_due(now=in_s(LEASE_S - 60))
    (part,) = told.requests[-1][1].parts
    said = admission_read(part.statements[0])
    assert (part.rp, said.domain, said.publishes) == (row.id, "b.test", False)


def test_who_was_away_long_is_asked_less_often() -> None:
    taken_back()
    for since_s, again_s in ((10, AGAIN_S_MIN), (600, 60), (3200, AGAIN_S_MAX)):
        withdrawals_try(withdrawals_due(now=in_s(LEASE_S - 60)), now=in_s(since_s))
        assert not withdrawals_due(now=in_s(since_s + 0.9 * again_s))
        assert withdrawals_due(now=in_s(since_s + again_s + 1))


def test_nobody_is_told_when_its_lease_would_be_over_anyway() -> None:
    taken_back()
    assert withdrawals_due(now=in_s(LEASE_S - 10))
    assert not withdrawals_due(now=in_s(LEASE_S + 1))


def test_who_is_admitted_again_is_told_nothing() -> None:
    row = taken_back()
    (old,) = withdrawals_due()
    rendezvous_point_update(reference=row.id, principal=ANN, changes={"policy": OPEN_TO_B})
    replica_admit(join=join_of("b.test", row.id, lease_s=LEASE_S, at_ms=now_ms() + 1))
    assert not withdrawals_due()
    withdrawals_try([old])
    assert not withdrawals_due(now=in_s(60)), "a sweep that had begun before changes nothing"


def test_a_suspended_peer_is_told_when_it_is_a_peer_again() -> None:
    taken_back()
    peer_suspend(principal=ROOT, name="b.test")
    peers_forget()
    assert not withdrawals_due()
    peer_resume(principal=ROOT, name="b.test")
    peers_forget()
    assert withdrawals_due()


def test_the_end_of_the_rp_is_told_to_who_does_not_know_that_its_admission_was_taken_back() -> None:
    row = taken_back()
    rendezvous_point_delete(reference=row.id, principal=ANN)
    assert ReplicaEnd.objects.get().pending == ["b.test"]


def test_a_replica_tells_its_peers_that_the_home_took_back_their_admission(a: Home, told: Told) -> None:
    """The home may be no peer of theirs."""
    peer(OtherDomain("c.test"))
    make(a, admissions=[a.admission(), a.admission("c.test"), a.admission("d.test")])
    withdrawn = [a.admission(name, publishes=False, issued_at_ms=now_ms() + 1) for name in ("c.test", "d.test")]
    assert taken(a, *withdrawn) == []
    replicas_sweep()
    ((domain, request),) = told.requests
    assert (domain, request.parts[0].statements) == ("c.test", [withdrawn[0]])
    assert not ReplicaAdmission.objects.filter(domain="c.test", tell_at__isnull=False).exists()
